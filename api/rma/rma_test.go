package rma_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/rma"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/topospec/topospectest"
	"portcullis/fabricsm/topospec/verify"
)

var shared storetest.Shared

func TestMain(m *testing.M) { os.Exit(storetest.Run(m, &shared)) }

const (
	spare1   ib.GUID = 0x0020000000009001
	spare2   ib.GUID = 0x0020000000009101
	otherHCA ib.GUID = 0x0020000000009201
	spareSW  ib.GUID = 0x0010000000009001
	host             = "host-0002"
)

var began = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// site is a service over a fabric and hosts that a test makes up.
type site struct {
	t     *testing.T
	store *store.Store
	keep  *topology.Service
	rma   *rma.Service
	rev   *topospec.Revision
	now   time.Time
	rows  []declared.TopologyPort
	proof attestation.Proof
	moved []ib.GUID
	alone bool
}

func newSite(t *testing.T, alone bool) *site {
	t.Helper()
	s := &site{t: t, store: shared.Open(t), now: began, alone: alone, rev: topospectest.Revision(t, topospectest.Small(),
		"spare-1,0x0020000000009001,ConnectX-6,,spare", "spare-2,0x0020000000009101,ConnectX-6,,spare",
		"other,0x0020000000009201,ConnectX-7,,spare", "switch-2,0x0010000000009001,MSX6036,,spare")}
	topospectest.Device(t, s.rev, "spare-2").PSID = "MT_0000000223"
	clock := func() time.Time { return s.now }
	log := slog.New(slog.DiscardHandler)
	s.keep = topology.New(topology.Options{Store: s.store, Log: log, Look: s.look, Now: clock, Rules: topology.Rules{Alone: alone}})
	s.rma = rma.New(rma.Options{Store: s.store, Log: log, Revisions: s.keep, Proofs: s, Hosts: s, Look: s.look, Now: clock})
	d, err := s.keep.Draft(t.Context(), "ada", v1.NewTopospec{Name: "f", Content: string(native.AppendTo(nil, s.rev, native.JSON)), Reason: "first"})
	if err != nil {
		t.Fatal(err)
	}
	s.activate(d)
	return s
}

// activate has bob approve a draft and put it into force.
func (s *site) activate(d *v1.TopospecRevision) {
	s.t.Helper()
	if _, err := s.keep.Approve(s.t.Context(), "bob", d.Revision, "", v1.TopospecApprove{Digest: d.Digest}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.keep.Activate(s.t.Context(), "bob", d.Revision, "", v1.TopospecActivate{Reason: "test"}); err != nil {
		s.t.Fatal(err)
	}
}

// active returns the topology in force.
func (s *site) active() *topospec.Spec {
	s.t.Helper()
	w, err := s.keep.Wanted(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return w.Spec
}

// look shows the fabric as it is declared, and the rows of the test.
func (s *site) look() (*topology.Sight, error) {
	w, err := s.keep.Wanted(context.Background())
	if err != nil {
		return nil, err
	}
	rev := s.rev
	view := &declared.TopologyView{}
	if w.Spec != nil {
		rev = w.Spec.Revision()
		*view = declared.TopologyView{Revision: rev.Number, Digest: w.Spec.Digest(), Mode: w.Mode, Wanted: w.Mode, Rooted: true, Ports: s.rows}
	}
	f, own := topospectest.Fabric(s.t, rev)
	return &topology.Sight{At: s.now, Fabric: f, SM: own, Complete: true, Placed: view}, nil
}

// Evidence implements rma.Hosts.
func (s *site) Evidence(context.Context, string) (attestation.Proof, error) { return s.proof, nil }

// MoveCables implements rma.Hosts.
func (s *site) MoveCables(_ context.Context, _ string, from, to ib.GUID, _ string) (int, error) {
	s.moved = append(s.moved, from, to)
	return 3, nil
}

// candidate has the Subnet Manager hold a device.
func (s *site) candidate(at topospec.End, g ib.GUID) {
	s.rows = []declared.TopologyPort{{Place: at.Place(), Verdict: verify.RMACandidate, State: verify.StateHeld, Seen: topospec.End{GUID: g, Port: 1}}}
}

// attests has a host prove that it has an adapter.
func (s *site) attests(host string, at time.Time, hcas ...attestation.ProvenHCA) {
	s.proof = attestation.Proof{Host: host, Verified: at, HCAs: hcas}
}

func (s *site) start(kind string, old, now ib.GUID) {
	s.t.Helper()
	_, err := s.rma.Start(s.t.Context(), "ada", v1.NewRMA{Kind: kind, Ticket: "T-7", Old: old, New: now, Window: 3600, Reason: "broken"})
	if err != nil {
		s.t.Fatal(err)
	}
}

// word is what second persons say of what they confirm.
const word = "looked at in the rack"

// confirm takes a step, and requires a code of refusal, "" for none.
func (s *site) confirm(by, code string) {
	s.t.Helper()
	_, err := s.rma.Confirm(s.t.Context(), by, "T-7", v1.RMAConfirm{Reason: word})
	s.wants(code, err)
}

func (s *site) wants(code string, err error) {
	s.t.Helper()
	e, ok := errors.AsType[*refusal.Error](err)
	switch {
	case code == "" && err != nil:
		s.t.Fatal(err)
	case code != "" && (!ok || e.Code != code):
		s.t.Fatalf("error %v, want code %s", err, code)
	}
}

func (s *site) state(want string) *v1.RMA {
	s.t.Helper()
	r, err := s.rma.Show(s.t.Context(), "T-7")
	if err != nil {
		s.t.Fatal(err)
	}
	if r.State != want || r.Next == "" {
		s.t.Fatalf("state %s, next %q, want %s", r.State, r.Next, want)
	}
	return r
}

// opened is a site with an open window for the adapter of host-0002.
func opened(t *testing.T) (s *site, old ib.GUID, at topospec.End) {
	t.Helper()
	s = newSite(t, false)
	old = topospectest.Device(t, s.rev, "host-0002 mlx5_1").GUID
	s.start(v1.RMAAdapter, old, 0)
	s.confirm("bob", "")
	spec := s.active()
	return s, old, spec.Home(spec.DeviceByGUID(old))
}

// TestAdapter is the flow, with everything that is to be refused on the way.
func TestAdapter(t *testing.T) {
	s, old, at := opened(t)
	s.state("open")
	s.confirm("bob", "no_candidate")
	s.candidate(at, spare1)
	s.state("candidate")
	s.confirm("bob", "not_attested")
	s.now = s.now.Add(time.Minute)
	s.attests(host, s.now, attestation.ProvenHCA{NodeGUID: spare1})
	if r := s.state("attested"); r.New != spare1 || !r.Attested.Equal(s.now) {
		t.Errorf("%+v", r)
	}
	s.confirm("ada", "topospec_refused") // who opened it
	s.confirm("bob", "")
	s.state("accepted")
	spec := s.active()
	if d := spec.Device(spec.DeviceByGUID(spare1)); d.Host != host || d.Stock != topospec.InUse || spec.Home(spec.DeviceByGUID(spare1)) != at {
		t.Errorf("the new one: %+v", d)
	}
	if d := spec.Device(spec.DeviceByGUID(old)); d.Stock != topospec.Retired {
		t.Errorf("the old one: %+v", d)
	}
	for _, l := range spec.Revision().Links {
		if l.State == topospec.Maintenance {
			t.Errorf("%v is still under maintenance", l.A)
		}
	}
	s.confirm("carl", "rma_over")
	_, err := s.rma.Cancel(t.Context(), "carl", "T-7", v1.RMACancel{Reason: "late"})
	s.wants("rma_over", err)
	entries, _, err := audit.Entries().List(t.Context(), s.store, "")
	if err != nil {
		t.Fatal(err)
	}
	if steps := s.state("accepted").Steps; !slices.ContainsFunc(steps, func(step v1.RMAStep) bool { return step.What == "the window is open: "+word }) {
		t.Errorf("no step has what the second person said: %+v", steps)
	}
	var said, approvals []string
	for _, e := range entries {
		if e.Value.Action == "topospec.approve" {
			approvals = append(approvals, e.Value.Detail)
		}
		if strings.HasPrefix(e.Value.Action, "topospec.rma.") {
			said = append(said, e.Value.Actor+" "+strings.TrimPrefix(e.Value.Action, "topospec.rma."))
		}
	}
	// The first is that of the topology which the site began with.
	if len(approvals) != 3 || !strings.HasSuffix(approvals[1], ": "+word) || !strings.HasSuffix(approvals[2], ": "+word) {
		t.Errorf("approvals in the audit log: %q, want two that end in %q", approvals, word)
	}
	if got, want := strings.Join(said, ", "), "ada start, bob confirm, ada draft, bob confirm"; got != want {
		t.Errorf("the audit log has %q, want %q", got, want)
	}
}

// TestAdapterIsNotTaken: a host says what it wants; none of it is enough.
func TestAdapterIsNotTaken(t *testing.T) {
	mine := attestation.ProvenHCA{NodeGUID: spare1}
	for _, tt := range []struct {
		name string
		do   func(s *site, old ib.GUID, at topospec.End)
		code string
	}{
		{"proof from before the window", func(s *site, _ ib.GUID, at topospec.End) {
			s.candidate(at, spare1)
			s.attests(host, began.Add(-time.Second), mine)
		}, "not_attested"},
		{"proof of another adapter", func(s *site, _ ib.GUID, at topospec.End) {
			s.candidate(at, spare1)
			s.attests(host, s.now, attestation.ProvenHCA{NodeGUID: spare2})
		}, "not_attested"},
		{"proof of another host", func(s *site, _ ib.GUID, at topospec.End) {
			s.candidate(at, spare1)
			s.attests("host-0003", s.now, mine)
		}, "rma_refused"},
		{"the old adapter is still in the host", func(s *site, old ib.GUID, at topospec.End) {
			s.candidate(at, spare1)
			s.attests(host, s.now, mine, attestation.ProvenHCA{NodeGUID: old})
		}, "old_attested"},
		{"another parameter set than inventory has", func(s *site, _ ib.GUID, at topospec.End) {
			s.candidate(at, spare2)
			s.attests(host, s.now, attestation.ProvenHCA{NodeGUID: spare2, PSID: "MT_0000000999"})
		}, "rma_refused"},
		{"another model", func(s *site, _ ib.GUID, at topospec.End) {
			s.candidate(at, otherHCA)
			s.attests(host, s.now, attestation.ProvenHCA{NodeGUID: otherHCA})
		}, "rma_refused"},
		{"no spare", func(s *site, _ ib.GUID, at topospec.End) {
			s.candidate(at, 0x99)
			s.attests(host, s.now, attestation.ProvenHCA{NodeGUID: 0x99})
		}, "rma_refused"},
		{"at another place", func(s *site, _ ib.GUID, at topospec.End) {
			at.Port++
			s.candidate(at, spare1)
			s.attests(host, s.now, mine)
		}, "no_candidate"},
		{"too late", func(s *site, _ ib.GUID, at topospec.End) {
			s.candidate(at, spare1)
			s.attests(host, s.now, mine)
			s.now = s.now.Add(time.Hour)
		}, "rma_expired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, old, at := opened(t)
			s.now = s.now.Add(time.Minute)
			tt.do(s, old, at)
			before := s.active().Digest()
			s.confirm("bob", tt.code)
			if s.active().Digest() != before {
				t.Error("another revision is in force")
			}
		})
	}
}

// TestSwitch is the flow, which goes on where a service ended.
func TestSwitch(t *testing.T) {
	s := newSite(t, false)
	old := topospectest.Device(t, s.rev, "leaf-2").GUID
	s.start(v1.RMASwitch, old, spareSW)
	s.state("drafted")
	s.confirm("bob", "")
	up := s.active().Belongs(topospec.End{GUID: old, Port: 19})
	s.confirm("bob", "no_candidate")
	s.candidate(up, spareSW)
	s.state("candidate")
	s.confirm("ada", "topospec_refused")
	// It is put into force, and the service ends before that is written down.
	drafts, err := s.keep.Revisions(t.Context(), v1.TopospecQuery{Status: "draft"})
	if err != nil || len(drafts.Items) != 1 {
		t.Fatalf("%+v, %v", drafts, err)
	}
	s.activate(&drafts.Items[0])
	s.confirm("bob", "")
	s.state("replaced")
	if len(s.moved) != 2 || s.moved[0] != old || s.moved[1] != spareSW {
		t.Errorf("cables were moved: %v", s.moved)
	}
	_, err = s.rma.Cancel(t.Context(), "bob", "T-7", v1.RMACancel{Reason: "no"})
	s.wants("rma_replaced", err)
	s.now = s.now.Add(2 * time.Hour) // a switch that has its place does not expire
	s.confirm("bob", "")
	s.state("accepted")
	spec := s.active()
	for _, slot := range spec.PortsOf(spec.DeviceByGUID(spareSW)) {
		if l, peer := spec.LinkAt(slot); l != nil && !peer.IsZero() && l.State != topospec.Active {
			t.Errorf("%v is %v", l.A, l.State)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Run("before the window is in force", func(t *testing.T) {
		s := newSite(t, false)
		s.start(v1.RMAAdapter, topospectest.Device(t, s.rev, "host-0002 mlx5_1").GUID, 0)
		r, err := s.rma.Cancel(t.Context(), "bob", "T-7", v1.RMACancel{Reason: "wrong ticket"})
		if err != nil || r.State != "cancelled" || r.Close != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if d, err := s.keep.Revision(t.Context(), r.Window); err != nil || d.Status != "rejected" {
			t.Errorf("the draft of the window: %+v, %v", d, err)
		}
	})
	for _, late := range []time.Duration{0, 2 * time.Hour} {
		t.Run("under maintenance, after "+late.String(), func(t *testing.T) {
			s, old, _ := opened(t)
			s.now = s.now.Add(late)
			r, err := s.rma.Cancel(t.Context(), "ada", "T-7", v1.RMACancel{Reason: "not broken"})
			if err != nil || r.Close == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			d, err := s.keep.Revision(t.Context(), r.Close)
			if err != nil {
				t.Fatal(err)
			}
			s.activate(d)
			spec := s.active()
			if l, _ := spec.LinkAt(spec.SlotOf(spec.Home(spec.DeviceByGUID(old)))); l.State != topospec.Active {
				t.Errorf("the place is %v", l.State)
			}
			s.confirm("bob", "rma_over")
		})
	}
}

func TestStartRefused(t *testing.T) {
	s, old, _ := opened(t)
	for _, tt := range []struct {
		name, code string
		in         v1.NewRMA
	}{
		{"ticket that is no key", "ticket_invalid", v1.NewRMA{Kind: v1.RMAAdapter, Ticket: "a/b", Old: 1, Window: 60, Reason: "x"}},
		{"no reason", "reason_missing", v1.NewRMA{Kind: v1.RMAAdapter, Ticket: "T-8", Old: 1, Window: 60, Reason: "  "}},
		{"ticket that is taken", "ticket_taken", v1.NewRMA{Kind: v1.RMAAdapter, Ticket: "T-7", Old: 1, Window: 60, Reason: "x"}},
		{"device that is being replaced", "rma_open", v1.NewRMA{Kind: v1.RMAAdapter, Ticket: "T-8", Old: old, Window: 60, Reason: "x"}},
		{"device that is not there", "rma_refused", v1.NewRMA{Kind: v1.RMAAdapter, Ticket: "T-8", Old: 1, Window: 60, Reason: "x"}},
		{"window without end", "rma_refused", v1.NewRMA{Kind: v1.RMAAdapter, Ticket: "T-8", Old: topospectest.Device(t, s.rev, "host-0003 mlx5_1").GUID, Window: 1e8, Reason: "x"}},
		{"no new switch", "new_missing", v1.NewRMA{Kind: v1.RMASwitch, Ticket: "T-8", Old: 1, Window: 60, Reason: "x"}},
		{"the subnet manager's adapter", "rma_refused", v1.NewRMA{Kind: v1.RMAAdapter, Ticket: "T-8", Old: topospectest.Device(t, s.rev, "sm-1").GUID, Window: 60, Reason: "x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.rma.Start(t.Context(), "ada", tt.in)
			s.wants(tt.code, err)
		})
	}
	for _, ticket := range []string{"T-9", "../x", ""} {
		_, err := s.rma.Show(t.Context(), ticket)
		s.wants("rma_unknown", err)
	}
	if all, err := s.rma.List(t.Context()); err != nil || len(all.Items) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestAlone: where one person is enough, it is enough here, too.
func TestAlone(t *testing.T) {
	s := newSite(t, true)
	s.start(v1.RMAAdapter, topospectest.Device(t, s.rev, "host-0002 mlx5_1").GUID, 0)
	s.confirm("ada", "")
	s.state("open")
}
