package trace

import (
	"slices"
	"strings"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/tracecontext"
	v1 "portcullis/api/v1"
)

// Ended is an admission or a release that has ended.
type Ended struct {
	Host    string
	Outcome Outcome

	release         bool
	epoch           int64
	cluster, tenant string
	parent          tracecontext.Parent
	start, end      time.Time
	record          *hostrecord.Record // of an admission
	refused         []Refusal
	refusals        int
}

func compareEnded(a, b Ended) int { return strings.Compare(a.Host, b.Host) }

// Took is the time from the order to the effect.
func (e *Ended) Took() time.Duration { return e.end.Sub(e.start) }

// Keys returns the memberships in the partition of the cluster that the trace has spans of, at most MaxPorts, sorted.
func (e *Ended) Keys() ([]records.Key, error) {
	if e.record == nil {
		return nil, nil
	}
	all, err := e.record.Keys()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(k records.Key) bool { return k.PKey.Base() != e.record.PKey.Base() })
	return all[:min(len(all), MaxPorts)], nil
}

// Trace returns the trace, with what is on record of some of the memberships of Keys.
func (e *Ended) Trace(of map[records.Key]records.Standing) Trace {
	name := "admission"
	if e.release {
		name = "release"
	}
	t := Trace{ID: idOf(name, e.Host, e.epoch, e.start), Parent: e.parent, Root: Span{Name: name, Start: e.start, End: e.end}}
	root := &t.Root
	root.Attributes = append(texts("portcullis.host", e.Host, "portcullis.cluster", e.cluster, "portcullis.tenant", e.tenant, "portcullis.outcome", string(e.Outcome)),
		Attribute{Key: "portcullis.epoch", Number: e.epoch})
	if e.release {
		return t
	}
	root.Attributes = append(root.Attributes, texts("portcullis.phase", string(hostrecord.PhaseOf(*e.record)))...)
	if e.Outcome != Admitted {
		root.Failed = string(e.Outcome)
	}
	e.addRefusals(root)
	if ev := e.record.Evidence; ev != nil {
		t.Link = ev.Course.Host
	}
	e.addSteps(root, of)
	return t
}

func (e *Ended) addRefusals(root *Span) {
	if e.refusals > 0 {
		root.Attributes = append(root.Attributes, Attribute{Key: "portcullis.refusals", Number: int64(e.refusals)})
	}
	for _, r := range e.refused {
		root.Events = append(root.Events, Event{Name: "attestation refused", Time: newCourse(root).within(r.Time), Attributes: texts("portcullis.reason", r.Code, "portcullis.proven", proven(r.Proven))})
	}
}

func proven(p hostrecord.Proven) string {
	switch p {
	case hostrecord.ProvenTPM:
		return "tpm"
	case hostrecord.ProvenEK:
		return "ek"
	default:
		return "nothing"
	}
}

// addSteps adds what happened one after another. The step that an admission ended in is the last one, and it failed.
func (e *Ended) addSteps(root *Span, of map[records.Key]records.Standing) {
	steps, rec := newCourse(root), e.record
	ended := func(name string) {
		s := steps.step(name, root.End)
		s.Failed = string(e.Outcome)
	}
	ev := rec.Evidence
	if ev == nil {
		ended("wait for host")
		return
	}
	if c := &ev.Course; !c.Asked.IsZero() {
		steps.step("wait for host", c.Asked)
		steps.step("challenge", c.Received)
		addParts(steps.step("verification", ev.Time), c)
	} else { // recorded by an earlier release
		steps.step("wait for host", ev.Time)
	}
	if rec.Sealed.IsZero() && e.Outcome != Admitted {
		ended("hand-over")
		return
	}
	steps.step("hand-over", later(rec.Sealed, ev.Time))
	granted := firstGrant(of, rec.Epoch)
	if granted.IsZero() && e.Outcome != Admitted {
		ended("guards")
		return
	}
	steps.step("guards", later(granted, ev.Time)).Attributes = []Attribute{{Key: "portcullis.ports", Number: int64(len(of))}}
	if e.Outcome != Admitted {
		addPorts(steps.step("memberships", root.End), of)
		root.Children[len(root.Children)-1].Failed = string(e.Outcome)
		return
	}
	addPorts(steps.step("memberships", lastFound(of)), of)
	steps.step("confirmation", root.End).Attributes = texts("portcullis.phase", string(v1.PhaseAdmitted))
}

// addParts adds the parts of the verification of evidence.
func addParts(s *Span, c *hostrecord.Course) {
	parts := newCourse(s)
	if at := parts.within(c.Began); at.After(s.Start) {
		parts.step("read", at)
	}
	for _, p := range c.Parts {
		parts.step(string(p.Part), parts.at.Add(max(0, p.Time)))
	}
	if s.End.After(parts.at) {
		parts.step("record", s.End)
	}
}

// firstGrant returns when the first membership was granted in an assignment; zero: none was.
func firstGrant(of map[records.Key]records.Standing, epoch int64) (first time.Time) {
	for _, s := range of {
		if at := s.Grant.Since; !s.Grant.Withdrawn && s.Grant.Epoch == epoch && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// lastFound returns when the last membership was read back; zero: none was.
func lastFound(of map[records.Key]records.Standing) (last time.Time) {
	for _, s := range of {
		if s.Applied() {
			last = later(s.Found.Time, last)
		}
	}
	return last
}

// addPorts adds a span for each port. They run at once.
func addPorts(s *Span, of map[records.Key]records.Standing) {
	keys := make([]records.Key, 0, len(of))
	for k := range of {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b records.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys[:min(len(keys), MaxPorts)] {
		st, ports := of[k], newCourse(s)
		if st.Grant.Withdrawn {
			continue
		}
		ports.at = ports.within(st.Grant.Since)
		end := s.End
		if st.Applied() {
			end = st.Found.Time
		}
		port := ports.step("port", end)
		port.Attributes = texts("portcullis.port.guid", k.GUID.String(), "portcullis.port.place", k.Place.String(), "portcullis.membership", string(st.Found.State))
		if !st.Applied() {
			port.Failed = "not read back"
			continue
		}
		if steps := newCourse(port); !st.Found.Ordered.IsZero() {
			steps.step("order", st.Found.Ordered)
			steps.step("write and read back", port.End)
		}
	}
}
