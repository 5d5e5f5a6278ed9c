package fencing_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/fabric/records"
	"portcullis/api/isolation/remedy"
	"portcullis/api/removals"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/fencing"
)

var _ remedy.Fencer = (*fencing.Fencer)(nil)

const rack = `hosts:
- id: h1
  ek_sha256: 1111111111111111111111111111111111111111111111111111111111111111
  hcas:
  - {node_guid: 0x100, ports: [{port: 1, guid: 0x101, cable: 0x10/1}, {port: 2, guid: 0x102, cable: 0x11/1}]}
- id: h2
  ek_sha256: 2222222222222222222222222222222222222222222222222222222222222222
  hcas:
  - {node_guid: 0x200, ports: [{port: 1, guid: 0x201, cable: 0x10/2}]}
`

// site is an installation with two hosts in one cluster.
type site struct {
	*admissiontest.Site
	*fencing.Fencer
	marks  []string
	refuse error // of a mark
}

func newSite(t *testing.T) *site {
	s := &site{Site: admissiontest.New(t)}
	s.Expect("h1", []byte(rack))
	s.Assign("h2")
	s.Fencer = &fencing.Fencer{Admission: s.Service(), Removals: removals.New(removals.Options{
		Admission: s.Service(), Owed: owed.New(storetest.Quiet()), Link: func() *fabric.Link { return nil }, Acts: func() bool { return true }, Log: storetest.Quiet(),
		Mark: func(_ context.Context, actor string, m v1.HealthMark) (*v1.FabricHealth, error) {
			s.marks = append(s.marks, strings.Join([]string{actor, m.Mark, m.Place, m.Reason}, " "))
			return &v1.FabricHealth{}, s.refuse
		},
	})}
	return s
}

// may asks whether a host may be fenced.
func (s *site) may(t *testing.T, host string) bool {
	t.Helper()
	var may bool
	_, err := s.Store.Update(t.Context(), func(tx *store.Tx) (err error) {
		may, err = s.MayFence(t.Context(), tx, host, "a stray P_Key", []string{"h1", "h2"}[:1])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return may
}

// A host that is fenced is in no cluster, and its ports are marked, by the service. One that is in none has its ports marked alone.
func TestFence(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 2 {
		s.marks = nil
		if err := s.Fence(t.Context(), "h1", "a stray P_Key"); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"service unhealthy 0x0000000000000010/1 fence: a stray P_Key", "service unhealthy 0x0000000000000011/1 fence: a stray P_Key",
		}
		if !slices.Equal(s.marks, want) {
			t.Errorf("marks %q, want %q", s.marks, want)
		}
	}
	if h := s.Host("h1"); h.Cluster != "" {
		t.Errorf("h1 is %+v", h.Status)
	}
	if h := s.Host("h2"); h.Cluster == "" {
		t.Errorf("h2 is %+v", h.Status)
	}
	log, err := audit.Book{Store: s.Store}.List(t.Context(), v1.AuditQuery{Actor: "service"})
	if err != nil || !slices.ContainsFunc(log.Items, func(e v1.AuditEntry) bool { return e.Action == "host.release" && e.Object == "host/h1" }) {
		t.Errorf("audit %+v, %v", log, err)
	}
	s.refuse = errors.New("it is busy")
	if err := s.Fence(t.Context(), "h2", "a stray P_Key"); err == nil {
		t.Error("no error although a port was not marked")
	}
}

// While the Subnet Manager does not see the fabric that it knows, no host is fenced because of drift.
func TestBlind(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if _, err := s.Store.Update(t.Context(), func(tx *store.Tx) error {
		return records.Sights().Put(tx, records.Master, v1.Sight{State: v1.SightBlind})
	}); err != nil {
		t.Fatal(err)
	}
	if s.may(t, "h1") {
		t.Error("a host may be fenced")
	}
}

// The brake of drift keeps hosts beyond its limit until an operator has it go on, or until they have no drift any more.
func TestBrake(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 2 { // a fence that failed is tried again
		if !s.may(t, "h1") {
			t.Fatal("the first host may not be fenced")
		}
	}
	if s.may(t, "h2") {
		t.Fatal("two of two hosts may be fenced within the time of the brake")
	}
	list, err := events.Book{Store: s.Store}.List(t.Context(), v1.EventQuery{Type: events.BrakeEngaged})
	if err != nil || len(list.Items) != 1 || list.Items[0].Cause != admission.BrakeDrift || !strings.Contains(list.Items[0].Do, "--class drift") {
		t.Fatalf("events %+v, %v", list, err)
	}
	engaged := func() bool {
		t.Helper()
		state, err := s.Service().BrakeState(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(state.Items, func(b v1.Brake) bool { return b.Class == admission.BrakeDrift })
		return state.Items[i].Engaged
	}
	if !engaged() {
		t.Error("the brake is not engaged")
	}
	if _, err := s.Service().ReleaseBrake(t.Context(), "alice", v1.BrakeRelease{Class: admission.BrakeDrift, Reason: "both are broken"}); err != nil {
		t.Fatal(err)
	}
	if !s.may(t, "h2") {
		t.Error("an operator had the brake go on, and the host may not be fenced")
	}
	s = newSite(t)
	if !s.may(t, "h1") || s.may(t, "h2") {
		t.Fatal("the brake does not keep the second host")
	}
	if _, err := s.Store.Update(t.Context(), func(tx *store.Tx) error { return s.NotFenced(t.Context(), tx, "h2") }); err != nil {
		t.Fatal(err)
	}
	if engaged() {
		t.Error("the brake is engaged although it keeps no host")
	}
}
