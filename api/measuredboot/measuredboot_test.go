package measuredboot_test

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/inventory"
	"portcullis/api/measuredboot"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest/eventlog"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/attest/reference"
	"portcullis/fabricsm/topospec/approval"
)

var shared storetest.Shared

func TestMain(m *testing.M) { os.Exit(storetest.Run(m, &shared)) }

var began = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// site is a service over a store, and a clock that a test sets.
type site struct {
	*measuredboot.Service
	t     *testing.T
	store *store.Store
	now   time.Time
}

func newSite(t *testing.T, alone bool) *site {
	t.Helper()
	s := &site{t: t, store: shared.Open(t), now: began}
	s.Service = measuredboot.New(measuredboot.Options{
		Store: s.store, Log: slog.New(slog.DiscardHandler), PCRs: []int{0, 1, 2, 3, 4, 5, 6, 7, 9}, Approval: approval.Rule{Alone: alone},
		Now: func() time.Time { return s.now },
	})
	return s
}

// shown keeps what a host measured, as admission does of one that is refused.
func (s *site) shown(host string, m eventlogtest.Machine) {
	s.t.Helper()
	w := m.Boot()
	kept := attestation.MeasuredBoot{Time: s.now, Class: "gpu-node"}
	all := w.Registers()
	for _, pcr := range []int{0, 1, 2, 3, 4, 5, 6, 7, 9} {
		kept.Quoted = append(kept.Quoted, eventlog.Quoted{PCR: pcr, Value: all[pcr]})
	}
	l, err := eventlog.Parse(w.Bytes())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range l.Events {
		kept.Events = append(kept.Events, attestation.MeasuredEvent{PCR: e.PCR, Type: e.Type, Digest: e.Digest, Data: e.Brief()})
	}
	if _, err := s.store.Update(s.t.Context(), func(tx *store.Tx) error {
		return errors.Join(attestation.MeasuredBoots().Put(tx, host, kept), inventory.Hosts().Put(tx, host, inventory.Host{ID: host, Class: "gpu-node"}))
	}); err != nil {
		s.t.Fatal(err)
	}
}

// trusts asks as admission does.
func (s *site) trusts(m eventlogtest.Machine) string {
	s.t.Helper()
	sets, err := attestation.ReferencesOf(s.t.Context(), s.store, "gpu-node")
	if err != nil {
		s.t.Fatal(err)
	}
	s.shown("asked", m)
	rec, err := attestation.MeasuredBoots().Get(s.t.Context(), s.store, "asked")
	if err != nil {
		s.t.Fatal(err)
	}
	b := rec.Value.Boot()
	match, _ := reference.Judge(sets, "gpu-node", s.now, &b)
	return match.Set
}

func (s *site) learn(actor string, in v1.NewReference) *v1.Reference {
	s.t.Helper()
	in.Class, in.Reason = "gpu-node", "test"
	r, err := s.Learn(s.t.Context(), actor, in)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) refused(err error, code string) {
	s.t.Helper()
	if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != code || e.Detail == "" || e.Hint == "" {
		s.t.Errorf("%#v, want a refusal with code %s and a hint", err, code)
	}
}

// TestLifeOfASet: learned from a host, trusted by no judgement, approved by another person, in force until it ends, every
// step audited.
func TestLifeOfASet(t *testing.T) {
	s, ctx, m := newSite(t, false), t.Context(), eventlogtest.Example()
	s.shown("gpu-1", m)
	r := s.learn("ann", v1.NewReference{Hosts: []string{"gpu-1"}})
	if r.Name != "gpu-node/1" || r.State != "draft" || r.InForce || r.Owner != "ann" || len(r.Registers) != 9 || r.Source != "hosts gpu-1" {
		t.Errorf("learned %+v", r)
	}
	if got := s.trusts(m); got != "" {
		t.Errorf("a draft is trusted: %s", got)
	}
	_, err := s.Approve(ctx, "ann", "gpu-node", 1, v1.ReferenceApprove{})
	s.refused(err, "two_persons")
	if r, err = s.Approve(ctx, "bob", "gpu-node", 1, v1.ReferenceApprove{Expires: began.Add(48 * time.Hour)}); err != nil || !r.InForce || r.Approver != "bob" {
		t.Fatalf("approved %+v, %v", r, err)
	}
	_, err = s.Approve(ctx, "cyd", "gpu-node", 1, v1.ReferenceApprove{})
	s.refused(err, "reference_state")
	if got := s.trusts(m); got != "gpu-node/1" {
		t.Errorf("an approved set is not trusted: %q", got)
	}
	_, err = s.Expire(ctx, "ann", "gpu-node", 1, v1.ReferenceExpire{At: began.Add(72 * time.Hour), Reason: "longer"})
	s.refused(err, "reference_longer")
	if r, err = s.Expire(ctx, "ann", "gpu-node", 1, v1.ReferenceExpire{At: began.Add(24 * time.Hour), Reason: "roll-out"}); err != nil || !r.InForce {
		t.Fatalf("ends tomorrow: %+v, %v", r, err)
	}
	s.now = began.Add(24 * time.Hour)
	if got := s.trusts(m); got != "" {
		t.Errorf("trusted after its end: %s", got)
	}
	if r, err = s.Show(ctx, "gpu-node", 1); err != nil || r.State != "expired" || r.InForce {
		t.Errorf("after its end: %+v, %v", r, err)
	}
	if _, err = s.Expire(ctx, "ann", "gpu-node", 1, v1.ReferenceExpire{Reason: "put away"}); err != nil {
		t.Error(err)
	}
	_, err = s.Expire(ctx, "ann", "gpu-node", 1, v1.ReferenceExpire{Reason: "again"})
	s.refused(err, "reference_state")
	if got := s.audited(); got != "ann learn draft, bob approve approved, ann expire approved, ann expire ended" {
		t.Errorf("audit log: %s", got)
	}
}

// TestApproversWord: an approver's remark is in the audit log, beside the owner's. It may be left out.
func TestApproversWord(t *testing.T) {
	s, ctx, m := newSite(t, false), t.Context(), eventlogtest.Example()
	s.shown("gpu-1", m)
	for _, tt := range []struct{ reason, want string }{
		{"", "of ann: test"},
		{"  looked at by hand ", "of ann: test; approved: looked at by hand"},
	} {
		r := s.learn("ann", v1.NewReference{Hosts: []string{"gpu-1"}})
		_, err := s.Approve(ctx, "bob", "gpu-node", r.Version, v1.ReferenceApprove{Reason: strings.Repeat("x", 513)})
		s.refused(err, "reason_too_long")
		if _, err := s.Approve(ctx, "bob", "gpu-node", r.Version, v1.ReferenceApprove{Reason: tt.reason}); err != nil {
			t.Fatal(err)
		}
		list, _, err := audit.Entries().List(ctx, s.store, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := list[len(list)-1].Value; got.Action != "reference.approve" || got.Detail != tt.want {
			t.Errorf("approved for %q: %s %q, want %q", tt.reason, got.Action, got.Detail, tt.want)
		}
		if _, err := s.Expire(ctx, "ann", "gpu-node", r.Version, v1.ReferenceExpire{Reason: "next"}); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *site) audited() string {
	s.t.Helper()
	list, _, err := audit.Entries().List(s.t.Context(), s.store, "")
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		if e.Value.After == "" || !strings.HasPrefix(e.Value.Object, "reference/gpu-node/") {
			s.t.Errorf("entry %+v", e.Value)
		}
		out = append(out, strings.Join([]string{e.Value.Actor, strings.TrimPrefix(e.Value.Action, "reference."), e.Value.Code}, " "))
	}
	return strings.Join(out, ", ")
}

// TestRollOut: two sets in force while firmware is updated, then one.
func TestRollOut(t *testing.T) {
	s, ctx, old, updated := newSite(t, false), t.Context(), eventlogtest.Example(), eventlogtest.Example()
	updated.Firmware = "2.20.0"
	s.learn("ann", v1.NewReference{Logs: [][]byte{old.Boot().Bytes()}})
	s.learn("ann", v1.NewReference{Logs: [][]byte{updated.Boot().Bytes()}})
	for v := range uint64(2) {
		if _, err := s.Approve(ctx, "bob", "gpu-node", v+1, v1.ReferenceApprove{}); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := s.trusts(old), s.trusts(updated); a != "gpu-node/1" || b != "gpu-node/2" {
		t.Errorf("during the roll-out: %q and %q", a, b)
	}
	if _, err := s.Expire(ctx, "ann", "gpu-node", 1, v1.ReferenceExpire{Reason: "done"}); err != nil {
		t.Fatal(err)
	}
	if a, b := s.trusts(old), s.trusts(updated); a != "" || b != "gpu-node/2" {
		t.Errorf("after the roll-out: %q and %q", a, b)
	}
	d, err := s.Diff(ctx, "gpu-node", 1, 2)
	if err != nil || len(d.Differences) != 3 || d.Differences[0].PCR != 0 || d.Differences[2].PCR != 2 {
		t.Errorf("from set to set: %+v, %v", d, err)
	}
}

// TestWiden: a host that is refused for its MAC widens the set of its class.
func TestWiden(t *testing.T) {
	s, ctx, m := newSite(t, true), t.Context(), eventlogtest.Example()
	s.learn("ann", v1.NewReference{Logs: [][]byte{m.Boot().Bytes()}})
	other := m
	other.MAC = "00:00:5e:00:53:02"
	s.shown("gpu-2", other)
	d, err := s.DiffHost(ctx, "gpu-node", 1, "gpu-2")
	if err != nil || len(d.Differences) != 1 || d.Differences[0].PCR != 1 || d.Differences[0].Position != 3 || !strings.Contains(d.Differences[0].Got, "Boot0000") {
		t.Errorf("differs in %+v, %v", d, err)
	}
	if len(d.Events) != len(m.Boot().Measured) {
		t.Errorf("%d events are shown", len(d.Events))
	}
	r := s.learn("ann", v1.NewReference{Base: 1, Hosts: []string{"gpu-2"}})
	if r.Source != "gpu-node/1; hosts gpu-2" {
		t.Errorf("from %q", r.Source)
	}
	if _, err := s.Approve(ctx, "ann", "gpu-node", 2, v1.ReferenceApprove{}); err != nil {
		t.Errorf("alone: %v", err)
	}
	other.MAC = "00:00:5e:00:53:03"
	if got := s.trusts(other); got != "gpu-node/2" {
		t.Errorf("a third MAC: %q", got)
	}
	r = s.learn("ann", v1.NewReference{Logs: [][]byte{m.Boot().Bytes()}, Ignore: []v1.ReferencePosition{{PCR: 1, Position: 3}}})
	if !r.Registers[1].Events[2].Ignore {
		t.Errorf("not ignored: %+v", r.Registers[1].Events[2])
	}
}

// TestWaiver, T106: it has an owner and an end, is approved by another, and
// never gets longer.
func TestWaiver(t *testing.T) {
	s, ctx, m := newSite(t, false), t.Context(), eventlogtest.Example()
	for _, days := range []int{-1, 0, 31} {
		if _, err := s.Waive(ctx, "ann", v1.NewWaiver{Class: "gpu-node", Reason: "INC-7", Expires: began.AddDate(0, 0, days)}); err == nil {
			t.Errorf("a waiver of %d days is taken", days)
		}
	}
	_, err := s.Waive(ctx, "ann", v1.NewWaiver{Class: "gpu-node", Reason: " ", Expires: began.AddDate(0, 0, 1)})
	s.refused(err, "reason_missing")
	r, err := s.Waive(ctx, "ann", v1.NewWaiver{Class: "gpu-node", Reason: "INC-7", Expires: began.AddDate(0, 0, 7)})
	if err != nil || !r.Waiver || r.InForce {
		t.Fatalf("%+v, %v", r, err)
	}
	_, err = s.Approve(ctx, "ann", "gpu-node", 1, v1.ReferenceApprove{})
	s.refused(err, "two_persons")
	_, err = s.Approve(ctx, "bob", "gpu-node", 1, v1.ReferenceApprove{Expires: began.AddDate(0, 0, 8)})
	s.refused(err, "waiver_longer")
	if _, err = s.Approve(ctx, "bob", "gpu-node", 1, v1.ReferenceApprove{}); err != nil {
		t.Fatal(err)
	}
	if got := s.trusts(m); got != "gpu-node/1" {
		t.Errorf("waived: %q", got)
	}
	_, err = s.Expire(ctx, "ann", "gpu-node", 1, v1.ReferenceExpire{At: began.AddDate(0, 0, 20), Reason: "more time"})
	s.refused(err, "reference_longer")
	s.counts(1, 0)
	s.now = began.AddDate(0, 0, 7)
	if got := s.trusts(m); got != "" {
		t.Errorf("an expired waiver counts: %q", got)
	}
	s.counts(0, 1)
	if _, err := s.Expire(ctx, "ann", "gpu-node", 1, v1.ReferenceExpire{Reason: "put away"}); err != nil {
		t.Fatal(err)
	}
	s.counts(0, 0)
	_, err = s.DiffHost(ctx, "gpu-node", 1, "asked")
	s.refused(err, "reference_waiver")
}

func (s *site) counts(inForce, expired int) {
	s.t.Helper()
	if a, b, err := s.Waivers(s.t.Context()); a != inForce || b != expired || err != nil {
		s.t.Errorf("%d waivers in force, %d expired, %v; want %d and %d", a, b, err, inForce, expired)
	}
}

// TestRefusals: inputs that no set is made of.
func TestRefusals(t *testing.T) {
	s, ctx, m := newSite(t, false), t.Context(), eventlogtest.Example()
	log := m.Boot().Bytes()
	s.shown("gpu-1", m)
	var short eventlogtest.Writer
	short.Measure(0, eventlog.Action, nil)
	for _, tt := range []struct {
		code string
		in   v1.NewReference
	}{
		{"class_invalid", v1.NewReference{Class: "../x", Reason: "x", Logs: [][]byte{log}}},
		{"reason_missing", v1.NewReference{Class: "gpu-node", Logs: [][]byte{log}}},
		{"source_missing", v1.NewReference{Class: "gpu-node", Reason: "x"}},
		{"source_many", v1.NewReference{Class: "gpu-node", Reason: "x", Logs: [][]byte{log, log, log, log, log}}},
		{"event_log", v1.NewReference{Class: "gpu-node", Reason: "x", Logs: [][]byte{log[:100]}}},
		{"not_learned", v1.NewReference{Class: "gpu-node", Reason: "x", Logs: [][]byte{short.Bytes()}}},
		{"boot_unknown", v1.NewReference{Class: "gpu-node", Reason: "x", Hosts: []string{"nobody"}}},
		{"other_class", v1.NewReference{Class: "storage", Reason: "x", Hosts: []string{"gpu-1"}}},
		{"reference_unknown", v1.NewReference{Class: "gpu-node", Reason: "x", Base: 9, Logs: [][]byte{log}}},
		{"not_ignorable", v1.NewReference{Class: "gpu-node", Reason: "x", Logs: [][]byte{log}, Ignore: []v1.ReferencePosition{{PCR: 4, Position: 1}}}},
	} {
		_, err := s.Learn(ctx, "ann", tt.in)
		s.refused(err, tt.code)
	}
	_, err := s.Show(ctx, "gpu-node", 1)
	s.refused(err, "reference_unknown")
	_, err = s.Show(ctx, "gpu/../node", 1)
	s.refused(err, "reference_unknown")
	if all, err := s.List(ctx, ""); err != nil || len(all.Items) != 0 || s.audited() != "" {
		t.Errorf("%d sets were kept, %v", len(all.Items), err)
	}
}

// TestRoom: in a full class the oldest set that is over is dropped. No set that is not over is dropped.
func TestRoom(t *testing.T) {
	s, ctx := newSite(t, false), t.Context()
	waive := func() error {
		_, err := s.Waive(ctx, "ann", v1.NewWaiver{Class: "gpu-node", Reason: "x", Expires: began.AddDate(0, 0, 1)})
		return err
	}
	for range 100 {
		if err := waive(); err != nil {
			t.Fatal(err)
		}
	}
	s.refused(waive(), "reference_full")
	for _, v := range []uint64{7, 5} {
		if _, err := s.Expire(ctx, "ann", "gpu-node", v, v1.ReferenceExpire{Reason: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := waive(); err != nil {
		t.Fatal(err)
	}
	all, err := s.List(ctx, "gpu-node")
	if err != nil || len(all.Items) != 100 || all.Items[99].Version != 101 || all.Items[4].Version != 6 {
		t.Errorf("%d sets, %v", len(all.Items), err)
	}
	if others, err := s.List(ctx, "gpu"); err != nil || len(others.Items) != 0 {
		t.Errorf("of class gpu: %+v, %v", others, err)
	}
}

// TestPredicted takes what was computed of an image in place of what a host measured.
func TestPredicted(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	m := eventlogtest.Example()
	l, err := eventlog.Parse(m.Boot().Bytes())
	if err != nil {
		t.Fatal(err)
	}
	// All registers, as a prediction has them, not only those that this service has quoted.
	boot := reference.Boot{Log: l}
	for pcr, value := range l.Replay() {
		if pcr < 15 {
			boot.Quoted = append(boot.Quoted, eventlog.Quoted{PCR: pcr, Value: value})
		}
	}
	registers, err := reference.Learn(nil, []reference.Boot{boot})
	if err != nil {
		t.Fatal(err)
	}
	in := func() v1.NewReference {
		return v1.NewReference{Class: "gpu-node", Reason: "new image", Predicted: &v1.Prediction{Image: "portcullis.efi", Registers: registers}}
	}
	set, err := s.Learn(t.Context(), "olga", in())
	if err != nil {
		t.Fatal(err)
	}
	if set.State != "draft" || set.Source != "predicted of portcullis.efi" || len(set.Registers) != 9 {
		t.Errorf("got a set that is %s, from %q, of %d registers", set.State, set.Source, len(set.Registers))
	}
	if got := s.trusts(m); got != "" {
		t.Errorf("a draft is trusted: %s", got)
	}
	if _, err := s.Approve(t.Context(), "olga", set.Class, set.Version, v1.ReferenceApprove{}); err == nil {
		t.Error("the person who brought the prediction approved it")
	}
	if _, err := s.Approve(t.Context(), "peter", set.Class, set.Version, v1.ReferenceApprove{}); err != nil {
		t.Fatal(err)
	}
	if got := s.trusts(m); got != set.Name {
		t.Errorf("the boot that was predicted is trusted by %q, want %s", got, set.Name)
	}
	other := m
	other.Image = "another image"
	if got := s.trusts(other); got != "" {
		t.Errorf("another image is trusted by %s", got)
	}
	for name, spoil := range map[string]func(*v1.NewReference){
		"hosts as well":    func(in *v1.NewReference) { in.Hosts = []string{"h1"} },
		"a base as well":   func(in *v1.NewReference) { in.Base = 1 },
		"of nothing":       func(in *v1.NewReference) { in.Predicted.Image = " " },
		"lacks a register": func(in *v1.NewReference) { in.Predicted.Registers = registers[1:] },
		"many registers":   func(in *v1.NewReference) { in.Predicted.Registers = make([]reference.Register, 25) },
		"ignores code":     func(in *v1.NewReference) { in.Ignore = []v1.ReferencePosition{{PCR: 4, Position: 1}} },
		"register malformed": func(in *v1.NewReference) {
			in.Predicted.Registers = append([]reference.Register{{PCR: 0, Events: []reference.Position{{}}}}, registers[1:]...)
		},
	} {
		spoiled := in()
		spoil(&spoiled)
		if _, err := s.Learn(t.Context(), "olga", spoiled); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
