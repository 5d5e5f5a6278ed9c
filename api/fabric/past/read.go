package past

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"portcullis/api/fabric/timeline"
	"portcullis/api/fabric/timeline/spool"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

const (
	// mostGaps is how many gaps an answer lists.
	mostGaps = 500
	// defaultPage is the size of a page of changes when none is asked for.
	defaultPage = 1000
)

// Reader answers how the fabric was.
type Reader struct {
	Spool func() *spool.Spool // nil while it is not open
	Every func() time.Duration
	Keep  time.Duration // 0: nothing is recorded
	Why   func() string // the spool is not open
	Now   func() time.Time
}

// spool returns what is read, or why there is nothing.
func (r *Reader) spool() (*spool.Spool, error) {
	if r.Keep == 0 {
		return nil, refusal.New(refusal.NotFound, "history_off", "set history.keep in the configuration of the service and restart it", "how the fabric was is not recorded (history.keep is 0)")
	}
	if s := r.Spool(); s != nil {
		return s, nil
	}
	why := r.Why()
	if why == "" {
		why = "this instance has not begun to lead"
	}
	return nil, refusal.New(refusal.Unavailable, v1.CodeUnavailable, "ask again; the log of the service says more", "what was recorded is not open: %s", why)
}

// classOf is what a reader sees, who may see proofs or not.
func classOf(proofs bool) spool.Class {
	if proofs {
		return spool.Confined
	}
	return spool.All
}

// Known says of which times it is known how the fabric was. A reader who may see no proofs has no marks of them.
func (r *Reader) Known(_ context.Context, proofs bool) (*v1.FabricHistory, error) {
	s, err := r.spool()
	if err != nil {
		return nil, err
	}
	k := s.Known(r.Now(), classOf(proofs))
	out := &v1.FabricHistory{
		From: k.From, Until: k.Until, Changed: k.Changed, Why: k.Why, Failure: k.Failed, Keep: r.Keep.Seconds(), Every: r.Every().Seconds(), Short: k.Short,
		Gaps: []v1.FabricGap{}, Marks: make([]v1.FabricMark, 0, len(k.Marks)),
	}
	out.Cut = max(0, len(k.Gaps)-mostGaps)
	for _, g := range k.Gaps[out.Cut:] {
		out.Gaps = append(out.Gaps, v1.FabricGap(g))
	}
	for _, m := range k.Marks {
		out.Marks = append(out.Marks, v1.FabricMark(m))
	}
	return out, nil
}

// At returns the fabric as it was.
func (r *Reader) At(ctx context.Context, q v1.PastQuery, proofs bool) (*v1.FabricPast, error) {
	s, err := r.spool()
	if err != nil {
		return nil, err
	}
	m, err := s.At(ctx, q.At, classOf(proofs))
	if err != nil {
		return nil, err
	}
	out := &v1.FabricPast{
		At: q.At.UTC(), Known: m.Table != nil, Why: m.Why, Previous: m.Previous, Next: m.Next,
		Switches: []v1.PastSwitch{}, Trunks: []v1.PastTrunk{}, Ports: []v1.PastPort{},
	}
	if m.Table != nil {
		show(out, m.Table, proofs)
	}
	return out, nil
}

// show fills an answer with a table.
func show(out *v1.FabricPast, table *timeline.State, proofs bool) {
	about, _ := table.Get(aboutHosts)
	out.HostsWhy = about[0]
	pairs := map[[2]string]int{}
	var verdicts []v1.IsolationPortVerdict
	for _, r := range table.Rows() {
		v := &r.Value
		switch r.Kind {
		case kindSwitch:
			out.Switches = append(out.Switches, v1.PastSwitch{GUID: r.ID, Name: v[0], Problem: v[1]})
		case kindTrunk:
			addTrunk(out, pairs, r.ID, v)
		case kindPort:
			p := v1.PastPort{Place: r.ID, Node: v[0], Num: v[1], Host: v[2], Name: v[3], State: v[4], Problem: v[5]}
			if p.Host != "" && out.HostsWhy == "" {
				p.Phase = string(v1.PhaseQuarantined) // a host without a record
				if h, ok := table.Get(timeline.Key{Kind: kindHost, ID: p.Host}); ok {
					p.Phase, p.Tenant = h[0], h[1]
				}
			}
			out.Ports = append(out.Ports, p)
		case kindProof:
			verdicts = append(verdicts, verdict(r.ID, v))
		}
	}
	if !proofs {
		out.ProofWhy = "the role of this credential may not see what was proven of all tenants"
		return
	}
	about, known := table.Get(aboutProof)
	out.Proof, out.ProofWhy = proofAt(out.At, &about, known, verdicts)
}

func addTrunk(out *v1.FabricPast, pairs map[[2]string]int, id string, v *timeline.Value) {
	a, _, _ := strings.Cut(id, "/")
	b, _, _ := strings.Cut(v[0], "/")
	at, ok := pairs[[2]string{a, b}]
	if !ok {
		at = len(out.Trunks)
		pairs[[2]string{a, b}] = at
		out.Trunks = append(out.Trunks, v1.PastTrunk{A: a, B: b})
	}
	out.Trunks[at].Links++
	if v[3] == ib.PortActive.String() {
		out.Trunks[at].Active++
	}
}

func verdict(place string, v *timeline.Value) v1.IsolationPortVerdict {
	out := v1.IsolationPortVerdict{Host: v[0], Verdict: v[1], Held: v[2], End: v[3], Other: v[4], Cause: v[5], Detail: v[6]}
	_ = out.Place.UnmarshalText([]byte(place)) // what is no place has none
	return out
}

// proofAt returns what was proven, as it counted at a time; or why that is not known.
func proofAt(at time.Time, about *timeline.Value, known bool, ports []v1.IsolationPortVerdict) (*v1.IsolationPorts, string) {
	if !known {
		return nil, "what was proven was not recorded"
	}
	if about[0] != "" {
		return nil, about[0]
	}
	begun, err := time.Parse(time.RFC3339Nano, about[1])
	most, wrong := strconv.ParseFloat(about[2], 64)
	if errors.Join(err, wrong) != nil {
		return nil, "what was proven cannot be read"
	}
	age := max(0, at.Sub(begun).Seconds())
	out := &v1.IsolationPorts{Begun: begun, Ended: begun, Age: age, MaxAge: most, Current: age <= most, Items: ports}
	if out.Items == nil {
		out.Items = []v1.IsolationPortVerdict{}
	}
	for i := range ports {
		if p := &ports[i]; !out.Current && p.Verdict == v1.Isolated {
			p.Verdict, p.Held, p.Cause = v1.Unproven, "", v1.PortOld
		}
	}
	return out, ""
}

// Changes returns a page of what changed.
func (r *Reader) Changes(ctx context.Context, q v1.PastChangeQuery, proofs bool) (*v1.PastChanges, error) {
	s, err := r.spool()
	if err != nil {
		return nil, err
	}
	from, until := spool.Position{Time: q.From}, q.Until
	if q.After != "" {
		if from, err = parsePosition(q.After); err != nil {
			return nil, err
		}
	}
	if until.IsZero() {
		until = r.Now()
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	all, next, err := s.Changes(ctx, from, until, classOf(proofs), min(limit, v1.MaxPage))
	if err != nil {
		return nil, err
	}
	out := &v1.PastChanges{Items: make([]v1.PastChange, 0, len(all)), Gaps: []v1.FabricGap{}}
	for i := range all {
		out.Items = append(out.Items, change(&all[i]))
	}
	end := until
	if next != nil {
		out.Next, end = next.Time.Format(time.RFC3339Nano)+"+"+strconv.Itoa(next.Skip), next.Time
	}
	known := s.Known(r.Now(), spool.All)
	if !known.Until.IsZero() && end.After(known.Until) && known.Why != "" {
		known.Gaps = append(known.Gaps, spool.Gap{From: known.Until, Until: end, Why: known.Why}) // it goes on
	}
	for _, g := range known.Gaps {
		if g.Until.After(from.Time) && g.From.Before(end) {
			out.Gaps = append(out.Gaps, v1.FabricGap(g))
		}
	}
	out.Gaps = bounded(out.Gaps)
	return out, nil
}

// bounded returns mostGaps gaps at most: the last ones, and one for all before them.
func bounded(all []v1.FabricGap) []v1.FabricGap {
	n := len(all) - mostGaps
	if n <= 0 {
		return all
	}
	all[n].From = all[0].From
	all[n].Why = fmt.Sprintf("%d times of which nothing is known; of the last one: %s", n+1, all[n].Why)
	return all[n:]
}

// parsePosition reads the next of a page.
func parsePosition(text string) (spool.Position, error) {
	at, skip, _ := strings.Cut(text, "Z+")
	when, err := time.Parse(time.RFC3339Nano, at+"Z")
	n, wrong := strconv.Atoi(skip)
	if errors.Join(err, wrong) != nil || n < 0 {
		return spool.Position{}, &refusal.Error{
			Code: v1.CodeCursor, Status: refusal.Invalid, Detail: "the value of after is not one that a page returned as next", Hint: "begin without after",
		}
	}
	return spool.Position{Time: when, Skip: n}, nil
}

// change says in the words of the API what changed.
func change(d *spool.Dated) v1.PastChange {
	out := v1.PastChange{Time: d.Time, Kind: kindNames[d.Kind], Object: d.ID, What: "changed", Fields: []v1.PastField{}}
	var was, now timeline.Value
	switch {
	case d.Was == nil && d.Kind == kindHost:
		was[0], now = string(v1.PhaseQuarantined), *d.Now // it was in inventory, and had no record
	case d.Was == nil:
		out.What, now = "appeared", *d.Now
	case d.Now == nil:
		out.What, was = "gone", *d.Was
	default:
		was, now = *d.Was, *d.Now
	}
	for i, name := range fields[d.Kind] {
		if was[i] != now[i] {
			out.Fields = append(out.Fields, v1.PastField{Field: name, Was: was[i], Now: now[i]})
		}
	}
	seen := &now
	if d.Now == nil {
		seen = &was
	}
	out.Name = nameOf(d.Kind, seen)
	return out
}

func nameOf(k timeline.Kind, v *timeline.Value) string {
	switch k {
	case kindSwitch, kindProof:
		return v[0]
	case kindTrunk:
		return fmt.Sprintf("%s to %s", v[1], v[2])
	case kindPort:
		if v[2] != "" {
			return v[2]
		}
		return v[3]
	default:
		return ""
	}
}
