package exits

import (
	"slices"
	"strconv"
	"time"

	"portcullis/api/events"
	v1 "portcullis/api/v1"
)

// hold is how long an alert fires that is not sent again, and how long the end of a condition is repeated.
const hold = time.Hour

// Alert is one of the list that POST /api/v2/alerts of Alertmanager takes. Its labels say which one it is.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// key names an alert: what begins and what ends a condition have the same one.
type key struct {
	kind, host, adapter, cause string
}

// keyOf returns the key of an event of a type that begins a condition or reports a moment.
func keyOf(kind string, e *v1.Event) key {
	k := key{kind: kind, host: e.Host}
	if e.Adapter != 0 {
		k.adapter = e.Adapter.String()
	}
	if end, same := events.EndOf(kind); end == "" || same {
		k.cause = e.Cause
	}
	return k
}

// labels returns the labels of an alert, with those of the site.
func (k key) labels(site map[string]string) map[string]string {
	kind, _ := events.KindOf(k.kind)
	out := map[string]string{"alertname": k.kind, "severity": kind.Severity}
	for name, value := range map[string]string{"host": k.host, "guid": k.adapter, "cause": k.cause} {
		if value != "" {
			out[name] = value
		}
	}
	for name, value := range site {
		out[name] = value
	}
	return out
}

// Labels are the names of labels that the service sets.
func Labels() []string { return []string{"alertname", "severity", "host", "guid", "cause"} }

func annotations(e *v1.Event) map[string]string {
	return map[string]string{
		"summary": events.Text(e), "cause": e.Cause, "by": e.By, "expected": e.Expected, "seen": e.Seen, "do": e.Do, "count": strconv.FormatUint(e.Count, 10),
	}
}

// OfEvent returns the alerts that an event is about at now: one that fires, or those that it ends. An event of an unknown type, as that of a
// test, fires for a minute.
func OfEvent(e *v1.Event, now time.Time, site map[string]string) []Alert {
	var out []Alert
	for _, begin := range events.BegunBy(e.Type) {
		at := earlier(e.Last, now)
		out = append(out, Alert{Labels: keyOf(begin, e).labels(site), Annotations: annotations(e), StartsAt: at, EndsAt: at})
	}
	if out != nil {
		return out
	}
	until := now.Add(hold)
	if _, ok := events.KindOf(e.Type); !ok {
		until = now.Add(time.Minute)
	}
	return []Alert{{Labels: keyOf(e.Type, e).labels(site), Annotations: annotations(e), StartsAt: earlier(e.Last, now), EndsAt: until}}
}

// earlier returns the earlier time. A clock that was set back leaves events of later than now, and Alertmanager refuses an alert that ends
// before it starts.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Standing returns the alerts of all events on record at now: conditions that last, those that ended within an hour, and moments of
// the last hour. wanted selects the types that begin them.
func Standing(all []v1.Event, now time.Time, site map[string]string, wanted func(*v1.Event) bool) []Alert {
	begun, ends := map[key]*v1.Event{}, map[key]time.Time{}
	for i := range all {
		e := &all[i]
		if types := events.BegunBy(e.Type); types != nil {
			for _, begin := range types {
				if k := keyOf(begin, e); e.Last.After(ends[k]) {
					ends[k] = e.Last
				}
			}
			continue
		}
		if k := keyOf(e.Type, e); wanted(e) && (begun[k] == nil || e.Last.After(begun[k].Last)) {
			begun[k] = e
		}
	}
	var out []Alert
	for k, e := range begun {
		a := Alert{Labels: k.labels(site), Annotations: annotations(e), StartsAt: earlier(e.Last, now), EndsAt: now.Add(hold)}
		end, _ := events.EndOf(k.kind)
		switch at := ends[k]; {
		case end == "":
			a.EndsAt = a.StartsAt.Add(hold)
		case !at.Before(e.Last):
			a.EndsAt = earlier(at, now)
		}
		if a.EndsAt.After(now) || end != "" && now.Sub(a.EndsAt) < hold {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Alert) int { return a.StartsAt.Compare(b.StartsAt) })
	return out
}

// EndsOf returns the types that end what the selected types begin.
func EndsOf(selected func(*v1.Event) bool) []string {
	var out []string
	for _, k := range events.Kinds() {
		end, _ := events.EndOf(k.Type)
		if end != "" && selected(&v1.Event{Type: k.Type, Severity: k.Severity}) && !slices.Contains(out, end) {
			out = append(out, end)
		}
	}
	return out
}
