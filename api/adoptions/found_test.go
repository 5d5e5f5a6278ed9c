package adoptions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/adoption"
	"portcullis/api/adoptions"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// finds has the subnet manager report what ports had at a takeover.
func (s *site) finds(ports ...v1.AdoptedPort) {
	s.t.Helper()
	s.write(func(tx *store.Tx) error {
		for _, p := range ports {
			f := records.Found{GUID: p.GUID, Place: p.Place, PKeys: p.PKeys, Device: p.Device}
			if err := records.Finds().Put(tx, f.Key(), f); err != nil {
				return err
			}
		}
		return nil
	})
}

// left returns how many reports are not decided about.
func (s *site) left() int {
	s.t.Helper()
	list, _, err := records.Finds().List(s.ctx(), s.store, "")
	s.must(err)
	return len(list)
}

func (s *site) takeover(state string) {
	s.t.Helper()
	s.write(func(tx *store.Tx) error {
		return records.Takeovers().Put(tx, records.Master, records.Takeover{State: state})
	})
}

func (s *site) show(id string) *v1.AdoptionView {
	s.t.Helper()
	a, err := s.Show(s.ctx(), id)
	s.must(err)
	return a
}

// TestFound: what a takeover found is kept without a deadline, whatever the time, until persons decide: one names the deadline,
// another one confirms it. Then it is as any other adoption.
func TestFound(t *testing.T) {
	s := newSite(t)
	s.takeover(records.TakeoverOpen)
	s.finds(port(1, 0x8100, 0x0101), port(2, 0x8100))
	s.settle()
	const id = "adoption-0001"
	s.wants("1 0x0101 "+id, "1 0x8100 "+id, "2 0x8100 "+id)
	if s.left() != 0 || s.pkey(0x100) != tenancy.PKeyAdopted {
		t.Errorf("%d reports are left, the P_Key is %s", s.left(), s.pkey(0x100))
	}
	if told := s.told(events.AdoptionFound); len(told) != 1 || !strings.Contains(told[0].Seen, "3 memberships of 2 ports") {
		t.Errorf("events %+v", told)
	}
	a := s.show(id)
	if a.State != v1.AdoptionFound || !a.Deadline.IsZero() || a.By != "service" || a.Memberships != 3 || len(a.Digest) != 64 || a.Members[0].Device != "node-1" {
		t.Errorf("found as %+v", a)
	}
	confirm := func(actor string, in v1.AdoptionConfirm) error {
		_, err := s.Confirm(s.ctx(), actor, id, in)
		return err
	}
	deadline := s.now.Add(20 * 24 * time.Hour)
	first := v1.AdoptionConfirm{Digest: a.Digest, Confirm: 3, Deadline: deadline}
	s.refused(confirm("ann", first), "takeover_open")
	s.takeover(records.TakeoverOver)

	// A year passes, and nothing ends.
	was := s.now
	s.now = s.now.Add(365 * 24 * time.Hour)
	if next := s.settle(); !next.IsZero() {
		t.Errorf("looks again at %v", next)
	}
	s.wants("1 0x0101 "+id, "1 0x8100 "+id, "2 0x8100 "+id)
	s.now = was

	s.refused(confirm("ann", v1.AdoptionConfirm{Digest: a.Digest, Confirm: 3}), "deadline_missing")
	s.refused(confirm("ann", v1.AdoptionConfirm{Digest: strings.Repeat("0", 64), Confirm: 3, Deadline: deadline}), "adoption_changed")
	s.refused(confirm("ann", v1.AdoptionConfirm{Digest: a.Digest, Confirm: 2, Deadline: deadline}), "not_confirmed")
	s.refused(confirm("ann", v1.AdoptionConfirm{Digest: a.Digest, Confirm: 3, Deadline: s.now}), "deadline_invalid")
	s.must(confirm("ann", first))
	if a := s.show(id); a.State != v1.AdoptionFound || a.By != "ann" || !a.Deadline.Equal(deadline) {
		t.Errorf("named by one person: %+v", a)
	}
	s.now = deadline.Add(-time.Hour)
	s.settle()
	s.wants("1 0x0101 "+id, "1 0x8100 "+id, "2 0x8100 "+id)
	s.now = was
	second := v1.AdoptionConfirm{Digest: a.Digest, Confirm: 3}
	s.refused(confirm("ann", second), "two_persons")

	// One membership ends meanwhile: what was looked at is not what is kept.
	_, err := s.End(s.ctx(), "ann", id, &v1.AdoptionEnd{Ports: []ib.GUID{2}, Confirm: 1, Reason: "unknown host"})
	s.must(err)
	s.refused(confirm("bob", second), "adoption_changed")
	a = s.show(id)
	second = v1.AdoptionConfirm{Digest: a.Digest[:12], Confirm: 2}
	s.refused(confirm("bob", second), "adoption_changed")
	s.must(confirm("ann", v1.AdoptionConfirm{Digest: a.Digest, Confirm: 2, Deadline: deadline}))
	s.must(confirm("bob", second))
	if a := s.show(id); a.State != v1.AdoptionKept || a.ConfirmedBy != "bob" || a.Memberships != 2 {
		t.Errorf("confirmed: %+v", a)
	}
	if told := s.told(events.AdoptionBegan); len(told) != 1 {
		t.Errorf("events %+v", told)
	}
	s.gone()
	s.now = deadline.Add(time.Second)
	s.settle()
	s.wants("1 0x0101 "+id+" leaving", "1 0x8100 "+id+" leaving")
}

// TestFoundButNotKept: what clusters have, what is reserved, and ports that the records have elsewhere or that have memberships
// are not kept. What is reported again is not recorded twice.
func TestFoundButNotKept(t *testing.T) {
	s := newSite(t)
	_, err := s.adm.Tenancy().CreateTenant(s.ctx(), "ann", v1.NewTenant{Name: "acme"})
	s.must(err)
	cluster, err := s.adm.Tenancy().CreateCluster(s.ctx(), "ann", v1.NewCluster{Name: "blue", Tenant: "acme"})
	s.must(err)
	s.host(3, hostrecord.Record{})
	listed := s.adopt(port(4, 0x8102))
	moved := port(3, 0x8102)
	moved.Place = place(9)
	s.finds(port(1, cluster.PKey.Full(), 0x8103), port(2, cluster.PKey.Full(), 0x8666), moved, port(4, 0x8103))
	s.settle()
	const id = "adoption-0002"
	want := []string{"1 0x8103 " + id, "4 0x8102 " + listed}
	s.wants(want...)
	told := s.told(events.AdoptionFound)
	if len(told) != 1 || !strings.Contains(told[0].Seen, "1 memberships of 1 ports") || !strings.Contains(told[0].Seen, "not kept, 5: ") {
		t.Errorf("events %+v", told)
	}
	if s.left() != 0 {
		t.Errorf("%d reports are left", s.left())
	}

	// An instance that leads later reports the same.
	s.finds(port(1, 0x8103))
	s.settle()
	s.wants(want...)
	if told := s.told(events.AdoptionFound); told[0].Count != 1 {
		t.Errorf("told again: %+v", told)
	}

	// A P_Key that was ended is not kept again, while its removal is not proven.
	_, err = s.End(s.ctx(), "ann", id, &v1.AdoptionEnd{All: true, Confirm: 1, Reason: "nobody needs it"})
	s.must(err)
	s.finds(port(1, 0x8103))
	s.settle()
	s.wants("1 0x8103 "+id+" leaving", "4 0x8102 "+listed)
}

// TestFoundEnds: a host that is admitted has what its cluster has, and an adoption that keeps nothing is over.
func TestFoundEnds(t *testing.T) {
	s := newSite(t)
	s.finds(port(1, 0x8100), port(2, 0x8100))
	s.settle()
	s.host(1, hostrecord.Record{Admitted: true, Cluster: "blue"})
	s.settle()
	s.wants("1 0x8100 adoption-0001 leaving", "2 0x8100 adoption-0001")
	s.gone()
	_, err := s.End(s.ctx(), "ann", "adoption-0001", &v1.AdoptionEnd{All: true, Confirm: 1, Reason: "nobody needs it"})
	s.must(err)
	s.settle()
	s.gone()
	s.settle()
	s.settle()
	if s.wants(); s.state("adoption-0001") != v1.AdoptionOver || s.pkey(0x100) != tenancy.PKeyAbsent {
		t.Errorf("the adoption is %s, its P_Key %s", s.state("adoption-0001"), s.pkey(0x100))
	}
}

// TestFoundMany: one adoption has room for so many memberships, and what no adoption has room for waits.
func TestFoundMany(t *testing.T) {
	s := newSite(t)
	const ports, each = 45, 100
	var keys []ib.PKey
	for k := range each {
		keys = append(keys, ib.PKey(0x9000+k))
	}
	var all []v1.AdoptedPort
	for n := range ports {
		all = append(all, port(n+1, keys...))
	}
	s.finds(all...)
	s.settle()
	list, err := s.List(s.ctx())
	s.must(err)
	var got []int
	for _, a := range list.Items {
		got = append(got, a.Memberships)
	}
	if want := []int{ports*each - 4000, 4000}; !slices.Equal(got, want) || got[1] > adoption.MaxMemberships {
		t.Errorf("adoptions keep %v memberships, want %v", got, want)
	}
	for n := len(list.Items); n < 64; n++ {
		s.write(func(tx *store.Tx) error {
			return adoptions.Records().Put(tx, fmt.Sprintf("adoption-%04d", n+1), adoptions.Record{State: v1.AdoptionStaged})
		})
	}
	s.write(func(tx *store.Tx) error { // the last one is full
		rec := adoptions.Record{State: v1.AdoptionFound, By: "service", Memberships: adoption.MaxMemberships}
		return adoptions.Records().Put(tx, "adoption-0002", rec)
	})
	s.finds(port(ports+1, keys...))
	if next := s.settle(); next.IsZero() || s.left() != 1 {
		t.Errorf("%d reports are left, and are looked at again at %v", s.left(), next)
	}
}
