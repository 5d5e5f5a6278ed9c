package exits

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/events"
	v1 "portcullis/api/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// of returns an event that happened some minutes before noon.
func of(kind, cause, host string, minutes int) v1.Event {
	k, _ := events.KindOf(kind)
	at := noon.Add(-time.Duration(minutes) * time.Minute)
	return v1.Event{Type: kind, Severity: k.Severity, By: events.ByService, Cause: cause, Host: host, Expected: "e", Seen: "s", First: at, Last: at, Count: 1}
}

// said writes alerts as one line each: labels by name, and minutes from noon to the start and the end.
func said(list []Alert) []string {
	var out []string
	for _, a := range list {
		var parts []string
		for name, value := range a.Labels {
			parts = append(parts, name+"="+value)
		}
		slices.Sort(parts)
		out = append(out, strings.Join(parts, " ")+" "+a.StartsAt.Sub(noon).String()+" "+a.EndsAt.Sub(noon).String())
	}
	slices.Sort(out)
	return out
}

func equal(t *testing.T, what string, got []Alert, want ...string) {
	t.Helper()
	if !slices.Equal(said(got), want) {
		t.Errorf("%s:\ngot  %q\nwant %q", what, said(got), want)
	}
}

func TestOfEvent(t *testing.T) {
	t.Parallel()
	ask := func(e v1.Event, site map[string]string) []Alert { return OfEvent(&e, noon, site) }
	equal(t, "a condition begins", ask(of(events.FabricBlind, "nodes", "", 5), map[string]string{"fabric": "a"}), "alertname=fabric.blind fabric=a severity=critical -5m0s 1h0m0s")
	equal(t, "it ends", ask(of(events.FabricSeen, "back", "", 1), map[string]string{"fabric": "a"}), "alertname=fabric.blind fabric=a severity=critical -1m0s -1m0s")
	equal(t, "two end", ask(of(events.IsolationRegained, "proven", "", 0), nil),
		"alertname=isolation.lost severity=critical 0s 0s", "alertname=isolation.unproven severity=warning 0s 0s")
	equal(t, "of a host and a cause", ask(of(events.DriftEnded, "stray", "h1", 0), nil), "alertname=drift.found cause=stray host=h1 severity=warning 0s 0s")
	e := of(events.LockChanged, "epoch", "h1", 90)
	e.Adapter = 0xb83fd20300123400
	equal(t, "a moment, late", ask(e, nil), "alertname=lock.changed cause=epoch guid=0xb83fd20300123400 host=h1 severity=critical -1h30m0s 1h0m0s")
	if a := OfEvent(&e, noon, nil)[0].Annotations; !strings.Contains(a["summary"], "lock.changed (epoch) of host h1") || a["expected"] != "e" || a["seen"] != "s" || a["count"] != "1" {
		t.Errorf("%v", a)
	}
}

func TestStanding(t *testing.T) {
	t.Parallel()
	all := []v1.Event{
		of(events.FabricBlind, "nodes", "", 300), of(events.FabricBlind, "own-port", "", 200), of(events.FabricSeen, "back", "", 250), // it lasts
		of(events.StoreShort, "soon", "", 40), of(events.StoreRoom, "room", "", 30), // ended half an hour ago
		of(events.AuditBroken, "cut", "", 200), of(events.AuditWhole, "verified", "", 100), // ended long ago
		of(events.DriftFound, "stray", "h1", 10), of(events.DriftEnded, "stray", "h2", 5), of(events.DriftEnded, "missing", "h1", 5), // ends of others
		of(events.BrakeEngaged, "evidence", "", 30), of(events.BrakeEngaged, "drift", "", 20), of(events.BrakeEnded, "drift", "", 10), // one class ended
		of(events.LockChanged, "epoch", "h1", 59), of(events.LockChanged, "epoch", "h2", 61), // moments
		of(events.IsolationLost, "leak", "", 20), of(events.IsolationRegained, "proven", "", 20),
		of(events.EvidenceCurrent, "ek", "h9", 1), // of what began before there were records
	}
	want := []string{
		"alertname=admission.brake cause=drift severity=critical -20m0s -10m0s",
		"alertname=admission.brake cause=evidence severity=critical -30m0s 1h0m0s",
		"alertname=drift.found cause=stray host=h1 severity=warning -10m0s 1h0m0s",
		"alertname=fabric.blind severity=critical -3h20m0s 1h0m0s",
		"alertname=isolation.lost severity=critical -20m0s -20m0s",
		"alertname=lock.changed cause=epoch host=h1 severity=critical -59m0s 1m0s",
		"alertname=store.short severity=warning -40m0s -30m0s",
	}
	equal(t, "all", Standing(all, noon, nil, func(*v1.Event) bool { return true }), want...)
	slices.Reverse(all)
	equal(t, "in another order", Standing(all, noon, nil, func(*v1.Event) bool { return true }), want...)
	equal(t, "critical", Standing(all, noon, nil, func(e *v1.Event) bool { return e.Severity == events.Critical }), want[0], want[1], want[3], want[4], want[5])
}

// A clock that was set back leaves events of the future. No alert of them ends before it starts.
func TestFuture(t *testing.T) {
	t.Parallel()
	all := []v1.Event{
		of(events.ClockJump, "ahead", "", -600), of(events.LockChanged, "epoch", "h1", -600),
		of(events.StoreShort, "soon", "", -600), of(events.StoreRoom, "room", "", -700),
	}
	want := []string{
		"alertname=clock.jump severity=critical 0s 1h0m0s", "alertname=lock.changed cause=epoch host=h1 severity=critical 0s 1h0m0s",
		"alertname=store.short severity=warning 0s 0s",
	}
	equal(t, "all", Standing(all, noon, nil, func(*v1.Event) bool { return true }), want...)
	equal(t, "one that lasts", OfEvent(&all[0], noon, nil), want[0])
	equal(t, "a moment", OfEvent(&all[1], noon, nil), want[1])
	equal(t, "an end", OfEvent(&all[3], noon, nil), want[2])
}

func TestEndsOf(t *testing.T) {
	t.Parallel()
	got := EndsOf(func(e *v1.Event) bool { return e.Severity == events.Critical })
	want := []string{events.BrakeEnded, events.AuditWhole, events.FabricSeen, events.ClockSteady, events.IsolationRegained}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Every pair is of types of the catalogue, and where only the same cause ends, both have the same.
func TestPairs(t *testing.T) {
	t.Parallel()
	n := 0
	for _, k := range events.Kinds() {
		end, same := events.EndOf(k.Type)
		if end == "" {
			continue
		}
		n++
		e, ok := events.KindOf(end)
		if !ok || e.About != k.About || same && !slices.Equal(e.Causes, k.Causes) || !slices.Contains(events.BegunBy(end), k.Type) {
			t.Errorf("%s is ended by %s", k.Type, end)
		}
	}
	if n != 11 {
		t.Errorf("%d conditions", n)
	}
}
