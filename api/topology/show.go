package topology

import (
	"context"
	"fmt"
	"slices"
	"time"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec/format"
	"portcullis/fabricsm/topospec/history"
	"portcullis/fabricsm/topospec/simulate"
)

// Limits of answers.
const (
	pageSize = 100
	maxHits  = 2000 // ports of a simulation that are listed
)

// Status returns what is wanted in force, and its state.
func (s *Service) Status(ctx context.Context) (*v1.Topospec, error) {
	b, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	h := &b.head
	out := &v1.Topospec{Source: v1.TopospecNone, Two: !s.rules().Alone, Version: versionOf(b.headed)}
	for _, e := range b.history.Entries() {
		if e.Status == history.Draft {
			out.Drafts++
		}
	}
	if h.Revision != 0 {
		out.Source, out.Revision, out.Digest, out.Mode = v1.TopospecOfRevisions, h.Revision, h.Digest.String(), h.Mode.String()
		out.By, out.Reason, out.Since = h.By, h.Why, h.Since
	}
	if w := h.Watch; w != nil {
		out.Watch = &v1.TopospecWatch{Until: w.Until, Back: w.Back, BackMode: w.BackMode.String(), Foretold: w.Foretold, Least: w.least()}
	}
	placed := s.placed()
	out.InForce = showPlaced(placed)
	out.Applied = s.o.Look != nil && h.isPlaced(placed)
	out.Problem = s.problem(h, placed)
	if s.fromFile() {
		out.Source, out.Applied = v1.TopospecOfFile, false
	}
	return out, nil
}

// placed returns what the Subnet Manager compares the fabric with, nil without one.
func (s *Service) placed() *declared.TopologyView {
	if s.o.Look == nil {
		return nil
	}
	seen, err := s.o.Look()
	if err != nil {
		return nil
	}
	return seen.Placed
}

// isPlaced reports whether the Subnet Manager has what the head wants. In which mode it may be in force its own guards
// decide, too.
func (h *Head) isPlaced(v *declared.TopologyView) bool {
	if h.Revision == 0 || v == nil {
		return h.Revision == 0 && v == nil
	}
	return v.Digest == h.Digest && v.Wanted == h.Mode
}

func (s *Service) problem(h *Head, placed *declared.TopologyView) string {
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	switch {
	case s.fromFile() && h.Revision != 0:
		return fmt.Sprintf("fabric.topology.file of the configuration is in force; revision %d is when that is taken out", h.Revision)
	case broken != "":
		return broken
	case s.o.Look == nil:
		return "another process has the subnet manager; what it compares the fabric with is not known here"
	case h.Revision != 0 && !h.isPlaced(placed):
		return "the subnet manager has not taken it yet"
	case placed != nil && placed.Mode != placed.Wanted:
		return "it is in force in mode " + placed.Mode.String() + ", since the fabric does not allow " + placed.Wanted.String() + ": portcullis sm status shows why"
	case placed != nil && !placed.Rooted:
		return "the subnet manager is not where the topology has it, so nothing can be verified"
	}
	return ""
}

func showPlaced(v *declared.TopologyView) *v1.TopospecPlaced {
	if v == nil {
		return nil
	}
	out := &v1.TopospecPlaced{
		Fabric: v.Fabric, Revision: v.Revision, Digest: v.Digest.String(), Mode: v.Mode.String(), Wanted: v.Wanted.String(), Rooted: v.Rooted,
		Verified: v.Verified, Expected: v.Expected, Missing: v.Missing, Score: int(v.Score), Differ: len(v.Ports) + v.More,
		Told: make(map[string]uint64, len(v.Told)),
	}
	for verdict, n := range v.Told {
		out.Told[verdict.String()] = n
	}
	return out
}

// Revision returns one revision, except for its content.
func (s *Service) Revision(ctx context.Context, number uint64) (*v1.TopospecRevision, error) {
	b, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	e, err := b.entry(number)
	if err != nil {
		return nil, explain(err)
	}
	return b.show(e), nil
}

// Revisions lists revisions, the newest first, a page at a time.
func (s *Service) Revisions(ctx context.Context, q v1.TopospecQuery) (*v1.TopospecRevisions, error) {
	if q.Status != "" {
		var st history.Status
		if err := st.UnmarshalText([]byte(q.Status)); err != nil {
			return nil, refuse(refusal.Invalid, "status_unknown", "want draft, active, superseded, rolled_back or rejected", "%v", err)
		}
	}
	b, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = pageSize
	}
	out := &v1.TopospecRevisions{Items: []v1.TopospecRevision{}}
	for _, number := range b.numbers() {
		e, err := b.entry(number)
		if err != nil {
			return nil, err
		}
		if q.Before != 0 && number >= q.Before || q.Status != "" && e.Status.String() != q.Status {
			continue
		}
		if len(out.Items) == limit {
			out.Next = out.Items[limit-1].Revision
			break
		}
		out.Items = append(out.Items, *b.show(e))
	}
	return out, nil
}

// Content returns the content of a revision, in one of the forms of package format.
func (s *Service) Content(ctx context.Context, number uint64, form string) (string, error) {
	if form != "" && !slices.Contains(format.Names(), form) {
		return "", refuse(refusal.Invalid, "form_unknown", "portcullis topospec convert --help lists them", "form %.40q: want one of %q", form, format.Names())
	}
	c, err := s.contents(ctx, number)
	if err != nil {
		return "", err
	}
	if form == "" {
		form = format.Names()[0]
	}
	text, err := format.Text(c.next, form)
	if err != nil {
		return "", refuse(refusal.Invalid, "form_impossible", "take another form", "revision %d as %s: %v", number, form, err)
	}
	return text, nil
}

func (b *book) show(e *Entry) *v1.TopospecRevision {
	out := &v1.TopospecRevision{
		Revision: e.Number, Digest: e.Digest.String(), Fabric: e.Fabric, Status: e.Status.String(), Author: string(e.Author),
		Drafted: e.Drafted, Reason: e.Reason, Source: e.Source, Devices: e.Devices, Links: e.Links, Expected: e.Expected,
		Approvals: []v1.TopospecApproval{}, Needed: e.Needed, Checked: showNote(e.Checked), Simulated: showNote(e.Simulated),
		Activated: e.Activated, Last: e.Why, Version: versionOf(b.version[e.Number]),
	}
	if !e.Parent.IsZero() {
		out.Parent = e.Parent.String()
	}
	if !e.Activated.IsZero() {
		out.Mode = e.Mode.String()
	}
	for _, t := range e.Touches {
		out.Touches = append(out.Touches, t.String())
	}
	for _, a := range e.Approvals {
		out.Approvals = append(out.Approvals, v1.TopospecApproval{By: string(a.By), At: a.At})
	}
	return out
}

func showNote(n *Note) *v1.TopospecNote {
	if n == nil {
		return nil
	}
	return &v1.TopospecNote{By: n.By, At: n.At, Outcome: n.Outcome}
}

func showSimulation(e *Entry, r *simulate.Report, at time.Time) *v1.TopospecSimulation {
	out := &v1.TopospecSimulation{
		Revision: e.Number, Digest: e.Digest.String(), Observed: at.UTC(), Expected: r.Expected, Verified: r.Verified, Score: int(r.Score),
		Live: r.Live, Covered: int(r.Covered), Flips: r.Flips, Limit: r.Limit, Missing: r.Missing, Hits: []v1.TopospecHit{}, Recover: r.Recover,
		Changed: r.Changed, Hosts: r.Hosts, Tenants: r.Tenants, Refused: showRefusals(r.Refused), Cautions: showRefusals(r.Cautions),
		Mode: r.Mode.String(), Would: r.Would,
	}
	for i := range r.Hits {
		h := &r.Hits[i]
		if i == maxHits {
			out.More = len(r.Hits) - i
			break
		}
		out.Hits = append(out.Hits, v1.TopospecHit{
			At: h.At, Where: h.Where, Verdict: h.Verdict.String(), Action: h.Action.String(), Expected: h.Expected, Seen: h.Seen,
			Host: h.Host, Tenant: h.Tenant, New: h.New,
		})
	}
	return out
}

func showRefusals(list []simulate.Refusal) []v1.TopospecRefusal {
	out := make([]v1.TopospecRefusal, 0, len(list))
	for _, r := range list {
		out = append(out, v1.TopospecRefusal{Guard: string(r.Guard), Text: r.Text, Do: r.Do})
	}
	return out
}
