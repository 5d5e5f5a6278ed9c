package rma

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/refusal"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/rma"
	"portcullis/fabricsm/topospec/verify"
)

// drafted is the state of a flow whose window is not in force yet.
const drafted = "drafted"

// stage is where a flow stands now: its record, and what revisions, fabric and host say.
type stage struct {
	rec      *Record
	active   *topospec.Spec // nil: nothing is in force
	inForce  bool           // the window was put into force
	resumed  string         // a step that was taken and not written down, in words
	attested time.Time      // when the host proved to have the candidate
	why      string         // what the second person said of it, "" nothing
	missing  error          // what the next step waits for, nil: for a second person
}

// look finds out where a flow stands. It changes nothing.
func (s *Service) look(ctx context.Context, kept *Record) (*stage, error) {
	st := &stage{rec: kept.clone()}
	wanted, err := s.o.Revisions.Wanted(ctx)
	if err != nil {
		return nil, explain(err)
	}
	st.active = wanted.Spec
	if st.rec.tick(s.now()) || st.rec.state().Over() {
		return st, nil
	}
	window, err := s.status(ctx, st.rec.Window)
	if err != nil {
		return nil, err
	}
	switch {
	case window == "draft" || st.active == nil:
		return st, nil
	case window == "rejected":
		st.rec.setState(rma.Cancelled)
		return st, nil
	}
	st.inForce = true
	if err := s.resume(ctx, st); err != nil || st.rec.state().Over() {
		return st, err
	}
	if st.rec.Switch != nil {
		s.lookSwitch(st)
		return st, nil
	}
	return st, s.lookAdapter(ctx, st)
}

// resume takes a revision of the flow that was put into force, when the service ended
// before that was written down.
func (s *Service) resume(ctx context.Context, st *stage) error {
	r := st.rec
	number, next, what := r.Replace, rma.Accepted, "the new device has the place of the old one, which is retired"
	if r.Switch != nil {
		next = rma.Replaced
		if r.Switch.State == rma.Replaced {
			number, next, what = r.Open, rma.Accepted, "the hosts of the new switch are let in"
		}
	}
	status, err := s.status(ctx, number)
	if err == nil && (status == "active" || status == "superseded") {
		r.setState(next)
		st.resumed = what
	}
	return err
}

// status returns the status of a revision, "" of none.
func (s *Service) status(ctx context.Context, number uint64) (string, error) {
	if number == 0 {
		return "", nil
	}
	rev, err := s.o.Revisions.Revision(ctx, number)
	if err != nil {
		return "", err
	}
	return rev.Status, nil
}

// lookAdapter takes what is seen at the place of an adapter, and what its host proved.
func (s *Service) lookAdapter(ctx context.Context, st *stage) error {
	a := st.rec.Adapter
	if link, _ := st.active.LinkAt(st.active.SlotOf(a.At)); link == nil || link.State != topospec.Maintenance {
		st.missing = refuse(refusal.Conflict, "window_gone", "cancel it, and begin again", "%s is not under maintenance any more: another revision is in force", st.active.Where(a.At))
		return nil
	}
	seen, err := s.candidates()
	if err != nil {
		st.missing = err
		return nil
	}
	i := slices.IndexFunc(seen, func(c sighting) bool { return c.at == a.At.Place() })
	if i < 0 {
		st.missing = refuse(refusal.Conflict, "no_candidate", "put the new adapter in; it must be a spare of the topology, of the same model",
			"no candidate is seen at %s", st.active.Where(a.At))
		return nil
	}
	if err := a.Seen(st.active, a.At, seen[i].guid, s.now()); err != nil {
		st.missing = explain(err)
		return nil
	}
	proof, err := s.o.Proofs.Evidence(ctx, a.Host)
	if err != nil {
		return err
	}
	st.attest(proof, s.now())
	return nil
}

// attest takes what the host of an adapter proved since the window was opened.
func (st *stage) attest(proof attestation.Proof, now time.Time) {
	a := st.rec.Adapter
	fresh := proof.Verified.After(a.Opened)
	var has *attestation.ProvenHCA
	for i := range proof.HCAs {
		h := &proof.HCAs[i]
		switch {
		case h.NodeGUID == a.New:
			has = h
		case h.NodeGUID == a.Old && fresh:
			st.missing = refuse(refusal.Conflict, "old_attested", "take it out, and have the host attest again", "host %s attests that the old adapter %v is still in it", a.Host, a.Old)
			return
		}
	}
	if !fresh || has == nil {
		st.missing = refuse(refusal.Conflict, "not_attested", "import the inventory with the new adapter, assign the host, and run its agent: portcullis host show "+a.Host,
			"host %s has not attested %v since the window was opened", a.Host, a.New)
		return
	}
	if err := a.Attest(st.active, rma.Proof{Host: proof.Host, GUID: has.NodeGUID, PSID: has.PSID, Fresh: true}, now); err != nil {
		st.missing = explain(err)
		return
	}
	st.attested = proof.Verified
}

// lookSwitch takes what is seen at the cables of a switch.
func (s *Service) lookSwitch(st *stage) {
	w := st.rec.Switch
	if w.State == rma.Replaced {
		_, st.missing = s.opened(st)
		return
	}
	if st.active.DeviceByGUID(w.New) == topospec.None {
		st.missing = refuse(refusal.Conflict, "window_gone", "cancel it, and begin again", "%v is not in the topology any more", w.New)
		return
	}
	seen, err := s.candidates()
	if err != nil {
		st.missing = err
		return
	}
	i := slices.IndexFunc(seen, func(c sighting) bool { return c.guid == w.New })
	if i < 0 {
		st.missing = refuse(refusal.Conflict, "no_candidate", "cable the new switch as the old one was, and switch it on", "%v is not seen at any cable of %v", w.New, w.Old)
		return
	}
	if err := w.Seen(seen[i].guid, s.now()); err != nil {
		st.missing = explain(err)
	}
}

// sighting is a device that the Subnet Manager holds as a candidate.
type sighting struct {
	at   ib.Place
	guid ib.GUID
}

// candidates returns the devices that the Subnet Manager holds as candidates for a replacement.
func (s *Service) candidates() ([]sighting, error) {
	seen, err := s.sight()
	if err != nil {
		return nil, err
	}
	var out []sighting
	for i := range seen.Placed.Ports {
		if p := &seen.Placed.Ports[i]; p.Verdict == verify.RMACandidate {
			out = append(out, sighting{p.Place, p.Seen.GUID})
		}
	}
	return out, nil
}

// sight returns the fabric as it is seen, with what the declared topology says of it.
func (s *Service) sight() (*topology.Sight, error) {
	if s.o.Look == nil {
		return nil, refuse(refusal.Unavailable, v1.CodeSMElsewhere, "ask the process that has the role sm", "the subnet manager runs in another process, and the fabric is seen there")
	}
	seen, err := s.o.Look()
	switch {
	case err != nil:
		return nil, err
	case !seen.Complete || seen.Placed == nil:
		return nil, refuse(refusal.Unavailable, "fabric_unsettled", "portcullis sm status shows how far it is; then ask again", "the subnet manager has not compared the fabric with the topology yet")
	}
	return seen, nil
}

// opened returns the revision that lets the hosts of a new switch in, once its cables to other switches are verified.
func (s *Service) opened(st *stage) (*topospec.Revision, error) {
	seen, err := s.sight()
	if err != nil {
		return nil, err
	}
	if st.active == nil || seen.Placed.Digest != st.active.Digest() {
		return nil, refuse(refusal.Unavailable, "fabric_unsettled", "portcullis topospec status shows how far it is; then ask again", "the subnet manager does not have what is wanted in force yet")
	}
	j := verify.New(st.active, topospec.Observe, nil)
	verify.Sweep(j, seen.Fabric, seen.SM)
	w := *st.rec.Switch
	r, err := w.Open(j)
	return r, explain(err)
}

// text returns the state, and what is to be done next.
func (st *stage) text() (state, next string) {
	r := st.rec
	confirm := "an operator other than " + r.by() + ": portcullis topospec rma confirm " + r.ticket()
	switch {
	case r.state() == rma.Expired:
		return r.state().String(), "the window is over: portcullis topospec rma cancel " + r.ticket() + " --reason TEXT"
	case r.state() == rma.Accepted && r.Adapter != nil:
		return r.state().String(), "nothing; the host is admitted when its guards hold: portcullis host show " + r.Adapter.Host
	case r.state().Over():
		return r.state().String(), "nothing"
	case !st.inForce:
		return drafted, confirm + " (the place goes under maintenance)"
	case st.missing != nil:
		return r.state().String(), hintOf(st.missing)
	case r.Switch != nil && r.state() == rma.Replaced:
		return r.state().String(), confirm + " (its hosts are let in)"
	default:
		return r.state().String(), confirm + " (the new device gets the place)"
	}
}

func hintOf(err error) string {
	e, ok := asError(err)
	if !ok {
		return err.Error()
	}
	return e.Detail + ": " + e.Hint
}

// Show returns the state of a replacement.
func (s *Service) Show(ctx context.Context, ticket string) (*v1.RMA, error) {
	rec, err := s.get(ctx, ticket)
	if err != nil {
		return nil, err
	}
	return s.show(ctx, &rec.Value)
}

func (s *Service) show(ctx context.Context, rec *Record) (*v1.RMA, error) {
	st, err := s.look(ctx, rec)
	if err != nil {
		return nil, err
	}
	r := st.rec
	out := &v1.RMA{
		Ticket: r.ticket(), Old: r.old(), By: r.by(), Reason: r.Reason, Attested: st.attested,
		Window: r.Window, Replace: r.Replace, Open: r.Open, Close: r.Close, Steps: []v1.RMAStep{},
	}
	out.State, out.Next = st.text()
	at := topospec.End{GUID: r.old()}
	if a := r.Adapter; a != nil {
		out.Kind, out.New, out.Place, out.Host, out.Opened, out.Expires = v1.RMAAdapter, a.New, a.At.Place(), a.Host, a.Opened, a.Expires
		at = a.At
	} else {
		w := r.Switch
		out.Kind, out.New, out.Opened, out.Expires = v1.RMASwitch, w.New, w.Opened, w.Expires
		if w.State == rma.Replaced || w.State == rma.Accepted {
			at.GUID = w.New
		}
	}
	if st.active != nil {
		out.Where = st.active.Where(at)
	}
	for _, step := range r.Steps {
		out.Steps = append(out.Steps, v1.RMAStep{At: step.At, By: step.By, What: step.What, Revision: step.Revision})
	}
	return out, nil
}

// List returns the states of all replacements, the newest first.
func (s *Service) List(ctx context.Context) (*v1.RMAs, error) {
	recs, err := s.records(ctx)
	if err != nil {
		return nil, err
	}
	out := &v1.RMAs{Items: make([]v1.RMA, 0, len(recs))}
	for i := range recs {
		one, err := s.show(ctx, &recs[i])
		if err != nil {
			return nil, fmt.Errorf("replacement %s: %w", recs[i].ticket(), err)
		}
		out.Items = append(out.Items, *one)
	}
	slices.SortStableFunc(out.Items, func(a, b v1.RMA) int { return cmp.Or(b.Opened.Compare(a.Opened), cmp.Compare(a.Ticket, b.Ticket)) })
	return out, nil
}
