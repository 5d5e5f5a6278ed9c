package adoptions_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/admission"
	"portcullis/api/adoptions"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// site is a service over a store in memory.
type site struct {
	*adoptions.Service
	t       *testing.T
	store   *store.Store
	adm     *admission.Service
	now     time.Time
	stopped error // why the clock is not believed
}

func (s *site) Halted() error { return s.stopped }

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, store: store.New(memory.New(time.Now), ""), now: time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return s.now }
	s.adm = admission.New(admission.Options{Store: s.store, Policy: attest.DefaultPolicy(), Log: storetest.Quiet(), Now: clock, PKeyFirst: 0x100, PKeyLast: 0x103})
	s.Service = adoptions.New(adoptions.Options{
		Store: s.store, Log: storetest.Quiet(), PKeys: s.adm.Tenancy(), Brake: s.adm, Reserved: []ib.PKey{0x8666}, Now: clock, Clock: s,
	})
	return s
}

func (s *site) ctx() context.Context { return s.t.Context() }

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) refused(err error, code string) {
	s.t.Helper()
	e, ok := errors.AsType[*refusal.Error](err)
	if !ok || e.Code != code {
		s.t.Errorf("got %v, want a refusal %s", err, code)
	}
}

func (s *site) write(fn func(tx *store.Tx) error) {
	s.t.Helper()
	_, err := s.store.Update(s.ctx(), fn)
	s.must(err)
}

func (s *site) settle() time.Time {
	s.t.Helper()
	next, err := s.Settle(s.ctx())
	s.must(err)
	return next
}

func place(n int) ib.Place { return ib.Place{Switch: 0x10, Port: ib.PortNum(n)} }

func port(n int, keys ...ib.PKey) v1.AdoptedPort {
	return v1.AdoptedPort{GUID: ib.GUID(n), Place: place(n), PKeys: keys, Device: fmt.Sprintf("node-%d", n)}
}

func key(n int, k ib.PKey) records.Key {
	return records.Key{PKey: k.Base(), GUID: ib.GUID(n), Place: place(n)}
}

// adopt stages ports as ann and confirms them as bob.
func (s *site) adopt(ports ...v1.AdoptedPort) string {
	s.t.Helper()
	a, err := s.Start(s.ctx(), "ann", s.list(ports...))
	s.must(err)
	_, err = s.Confirm(s.ctx(), "bob", a.ID, v1.AdoptionConfirm{Digest: a.Digest, Confirm: a.Memberships})
	s.must(err)
	return a.ID
}

func (s *site) list(ports ...v1.AdoptedPort) *v1.NewAdoption {
	in := &v1.NewAdoption{Ports: ports, Deadline: s.now.Add(24 * time.Hour), Reason: "the site moves in"}
	for i := range ports {
		in.Confirm += len(ports[i].PKeys)
	}
	return in
}

// grants returns the ledger: "1 0x0100 adoption-0001", with "leaving" for what is to be proven absent.
func (s *site) grants() []string {
	s.t.Helper()
	list, _, err := records.Grants().List(s.ctx(), s.store, "")
	s.must(err)
	var out []string
	for i := range list {
		k, err := records.ParseKey(list[i].Key)
		s.must(err)
		g := &list[i].Value
		form := k.PKey.Full()
		if g.Limited {
			form = k.PKey.Limited()
		}
		text := fmt.Sprintf("%d %v %s", uint64(k.GUID), form, cmp.Or(g.Adopted, g.Host))
		if g.Withdrawn {
			text += " leaving"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func (s *site) wants(want ...string) {
	s.t.Helper()
	if got := s.grants(); !slices.Equal(got, want) {
		s.t.Errorf("the ledger has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// gone has the subnet manager find withdrawn memberships absent.
func (s *site) gone() {
	s.t.Helper()
	list, _, err := records.Grants().List(s.ctx(), s.store, "")
	s.must(err)
	s.write(func(tx *store.Tx) error {
		for i := range list {
			if list[i].Value.Withdrawn {
				m := records.Membership{State: records.Removed, HCAProven: true, Revision: list[i].Modified, Time: s.now}
				if err := records.Memberships().Put(tx, list[i].Key, m); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// host puts a host with port n into the inventory.
func (s *site) host(n int, rec hostrecord.Record) {
	s.t.Helper()
	id := fmt.Sprintf("h%d", n)
	h := inventory.Host{ID: id, HCAs: []inventory.HCA{{NodeGUID: ib.GUID(0x100 + n), Ports: []inventory.Port{{GUID: ib.GUID(n), Cable: place(n)}}}}}
	s.write(func(tx *store.Tx) error {
		return errors.Join(inventory.Hosts().Put(tx, id, h), hostrecord.Records().Put(tx, id, rec))
	})
}

func (s *site) told(kind string) []v1.Event {
	s.t.Helper()
	list, err := events.Book{Store: s.store}.List(s.ctx(), v1.EventQuery{Type: kind})
	s.must(err)
	return list.Items
}

func (s *site) state(id string) string {
	s.t.Helper()
	a, err := s.Show(s.ctx(), id)
	s.must(err)
	return a.State
}

func (s *site) pkey(k ib.PKey) tenancy.PKeyState {
	s.t.Helper()
	r, err := store.Optional(tenancy.PKeys().Get(s.ctx(), s.store, k.Base().String()))
	s.must(err)
	return r.State
}

// Nothing is kept before a second person confirmed just what was listed.
func TestTwoPersons(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	in := s.list(port(1, 0x8101, 0x0102), port(2, 0x8101))
	in.Confirm = 2
	_, err := s.Start(s.ctx(), "ann", in)
	s.refused(err, "not_confirmed")
	in.Confirm, in.Reason = 3, " "
	_, err = s.Start(s.ctx(), "ann", in)
	s.refused(err, "reason_missing")
	in.Reason, in.Deadline = "moving", s.now
	_, err = s.Start(s.ctx(), "ann", in)
	s.refused(err, "deadline_invalid")
	in.Deadline = s.now.Add(time.Hour)
	a, err := s.Start(s.ctx(), "ann", in)
	s.must(err)
	s.wants()
	for _, tt := range []struct {
		actor, digest string
		n             int
		code          string
	}{
		{"ann", a.Digest, 3, "two_persons"},
		{"", a.Digest, 3, "two_persons"},
		{"bob", a.Digest[:4], 3, "adoption_changed"},
		{"bob", strings.Repeat("0", 64), 3, "adoption_changed"},
		{"bob", a.Digest, 2, "not_confirmed"},
	} {
		_, err := s.Confirm(s.ctx(), tt.actor, a.ID, v1.AdoptionConfirm{Digest: tt.digest, Confirm: tt.n})
		s.refused(err, tt.code)
	}
	s.wants()
	for _, id := range []string{"", "adoption-1", "adoption-0002", "adoption-00001", "x"} {
		_, err := s.Confirm(s.ctx(), "bob", id, v1.AdoptionConfirm{Digest: a.Digest, Confirm: 3})
		s.refused(err, "adoption_unknown")
	}
	_, err = s.Confirm(s.ctx(), "bob", a.ID, v1.AdoptionConfirm{Digest: a.Digest[:12], Confirm: 3})
	s.must(err)
	s.wants("1 0x0102 adoption-0001", "1 0x8101 adoption-0001", "2 0x8101 adoption-0001")
	_, err = s.Confirm(s.ctx(), "bob", a.ID, v1.AdoptionConfirm{Digest: a.Digest, Confirm: 3})
	s.refused(err, "adoption_not_staged")
	_, err = s.Start(s.ctx(), "ann", s.list(port(2, 0x8102)))
	s.refused(err, "not_adoptable")
	if got := s.told(events.AdoptionBegan); len(got) != 1 || !strings.Contains(got[0].Seen, "bob confirmed that 3 memberships") {
		t.Errorf("told %+v", got)
	}
}

// What was staged is checked again when it is confirmed.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, err := s.Start(s.ctx(), "ann", s.list(port(1, 0x8101)))
	s.must(err)
	confirm := func() error {
		_, err := s.Confirm(s.ctx(), "bob", a.ID, v1.AdoptionConfirm{Digest: a.Digest, Confirm: 1})
		return err
	}
	s.stopped = errors.New("the clock went back")
	s.refused(confirm(), v1.CodeUnavailable)
	s.stopped = nil
	s.write(func(tx *store.Tx) error {
		return tenancy.PKeys().Put(tx, "0x0101", tenancy.PKeyRecord{State: tenancy.PKeyUsed, Cluster: "blue"})
	})
	s.refused(confirm(), "not_adoptable")
	s.now = s.now.Add(24 * time.Hour)
	s.refused(confirm(), "adoption_late")
	s.wants()
	_, err = s.End(s.ctx(), "ann", a.ID, &v1.AdoptionEnd{All: true, Reason: "too late"})
	s.must(err)
	if s.state(a.ID) != v1.AdoptionOver {
		t.Error("it is not over")
	}
}

// An operator ends one P_Key of one port, and the port loses just that one.
func TestEndOne(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.adopt(port(1, 0x8101, 0x8102), port(2, 0x8101))
	end := func(in v1.AdoptionEnd) error {
		in.Reason = "decided"
		_, err := s.End(s.ctx(), "ann", id, &in)
		return err
	}
	s.refused(end(v1.AdoptionEnd{Confirm: 3}), "ports_missing")
	s.refused(end(v1.AdoptionEnd{All: true, Ports: []ib.GUID{1}, Confirm: 3}), "ports_missing")
	s.refused(end(v1.AdoptionEnd{All: true, Confirm: 2}), "not_confirmed")
	s.refused(end(v1.AdoptionEnd{Ports: []ib.GUID{3}}), "port_not_adopted")
	s.refused(end(v1.AdoptionEnd{Ports: []ib.GUID{2}, PKeys: []ib.PKey{0x8102}}), "port_not_adopted")
	s.refused(end(v1.AdoptionEnd{PKeys: []ib.PKey{0x8103}}), "p_key_not_adopted")
	s.must(end(v1.AdoptionEnd{Ports: []ib.GUID{1}, PKeys: []ib.PKey{0x8102}, Confirm: 1}))
	s.wants("1 0x8101 adoption-0001", "1 0x8102 adoption-0001 leaving", "2 0x8101 adoption-0001")
	s.settle()
	if s.pkey(0x8102) != tenancy.PKeyAdopted {
		t.Error("the P_Key is free before it is proven absent")
	}
	s.gone()
	s.settle()
	s.wants("1 0x8101 adoption-0001", "2 0x8101 adoption-0001")
	if s.pkey(0x8102) != tenancy.PKeyAbsent || s.pkey(0x8101) != tenancy.PKeyAdopted {
		t.Errorf("the P_Keys are %q and %q", s.pkey(0x8102), s.pkey(0x8101))
	}
	s.must(end(v1.AdoptionEnd{All: true, Confirm: 2}))
	s.settle()
	s.gone()
	s.settle()
	s.wants()
	if s.state(id) != v1.AdoptionOver {
		t.Error("it is not over")
	}
	s.refused(end(v1.AdoptionEnd{All: true}), "adoption_over")
}

// What admission grants replaces what was adopted. The rest ends when the host is admitted. What was replaced does not come
// back.
func TestProof(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.adopt(port(1, 0x8101, 0x8102), port(2, 0x8101))
	s.host(1, hostrecord.Record{Cluster: "blue", PKey: 0x0101, Epoch: 1, Granted: true})
	k := key(1, 0x8101).String()
	s.write(func(tx *store.Tx) error {
		return records.Grants().Put(tx, k, records.Grant{Host: "h1", Cluster: "blue", Epoch: 1, Since: s.now})
	})
	s.settle()
	s.wants("1 0x8101 h1", "1 0x8102 adoption-0001", "2 0x8101 adoption-0001")
	s.host(1, hostrecord.Record{Cluster: "blue", PKey: 0x0101, Epoch: 1, Granted: true, Admitted: true, Phase: v1.PhaseAdmitted})
	s.settle()
	s.wants("1 0x8101 h1", "1 0x8102 adoption-0001 leaving", "2 0x8101 adoption-0001")
	s.write(func(tx *store.Tx) error { records.Grants().Delete(tx, k); return nil })
	s.gone()
	s.settle()
	s.wants("2 0x8101 adoption-0001")
	if got := s.told(events.AdoptionEnded); len(got) != 1 || got[0].Cause != "proven" || got[0].Count != 2 {
		t.Errorf("told %+v", got)
	}
	if view, err := s.Show(s.ctx(), id); err != nil || len(view.Members) != 1 || view.Members[0].State != "waiting" {
		t.Errorf("it shows %+v, %v", view, err)
	}
}

// A release, and an order that was given while the store was away, end what the ports of the host have by adoption, also of a host
// that is in no cluster.
func TestReleased(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.adopt(port(1, 0x8101, 0x8102), port(2, 0x8101), port(3, 0x8101))
	s.host(1, hostrecord.Record{})
	s.host(2, hostrecord.Record{})
	others := tenancy.Within(s.ctx(), &tenancy.Scope{PKeys: tenancy.Ranges{{First: 0x101, Last: 0x102}}, Hosts: []string{"gpu-*"}})
	_, err := s.adm.Release(others, "slurm", "h1")
	s.refused(err, "host_out_of_scope")
	if n := s.leaving(); n != 0 {
		t.Errorf("%d memberships of a host are taken by a credential that may not take it", n)
	}
	_, err = s.adm.Release(s.ctx(), "ann", "h1")
	s.must(err)
	s.wants("1 0x8101 adoption-0001 leaving", "1 0x8102 adoption-0001 leaving", "2 0x8101 adoption-0001", "3 0x8101 adoption-0001")
	_, err = s.adm.Release(s.ctx(), "ann", "h1")
	s.refused(err, "host_not_assigned")
	s.settle()
	s.settle()
	if got := s.told(events.AdoptionEnded); len(got) != 1 || got[0].Cause != "taken" || got[0].Count != 1 {
		t.Errorf("told %+v", got)
	}
	for _, o := range []admission.Ordered{{Host: "h2", Epoch: 9}, {Host: "h2", Cluster: "blue"}} {
		o.Actor, o.Time = "local socket, uid 0", s.now
		_, err = s.adm.Record(s.ctx(), o)
		s.must(err)
	}
	if n := s.leaving(); n != 3 {
		t.Errorf("%d are leaving, want those of h1 and h2", n)
	}
	s.gone() // before the service looks
	s.settle()
	s.wants("3 0x8101 adoption-0001")
	if got := s.told(events.AdoptionEnded); len(got) != 1 || got[0].Count != 2 {
		t.Errorf("told %+v", got)
	}
	s.host(3, hostrecord.Record{})
	s.must(s.adm.RemoveHost(s.ctx(), "ann", "h3", v1.HostRemoval{Reason: "scrapped"}))
	s.wants("3 0x8101 adoption-0001 leaving")
	s.gone()
	s.settle()
	if s.state(id) != v1.AdoptionOver {
		t.Error("it is not over")
	}
}

// While no membership is kept, changes of other records wake nothing; while some are, those of their ports and hosts do.
func TestRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	idle := s.look()
	for key, want := range map[string]bool{
		"adoptions/adoption-0001": true, "grants/" + key(1, 0x8101).String(): false, "hosts/h1": false,
	} {
		if got := idle(key); got != want {
			t.Errorf("without memberships %s matters: %v", key, got)
		}
	}
	s.adopt(port(1, 0x8101))
	s.host(1, hostrecord.Record{})
	busy := s.look()
	for key, want := range map[string]bool{
		"adoptions/adoption-0001": true, "grants/" + key(1, 0x8101).String(): true, "grants/" + key(2, 0x8101).String(): false,
		"fabric/memberships/" + key(1, 0x8101).String(): true, "fabric/memberships/" + key(2, 0x8101).String(): false,
	} {
		if got := busy(key); got != want {
			t.Errorf("with a membership %s matters: %v", key, got)
		}
	}
}

// look returns what would wake the service.
func (s *site) look() func(key string) bool {
	s.t.Helper()
	wakes, err := s.Wakes(s.ctx())
	s.must(err)
	return wakes
}

// Deadlines end adoptions, of a few hosts by themselves, of many once an operator has released the brake.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var ports []v1.AdoptedPort
	for n := 1; n <= 30; n++ {
		ports = append(ports, port(n, 0x8101))
	}
	early := s.list(port(31, 0x8102))
	early.Deadline = s.now.Add(2 * time.Hour)
	a, err := s.Start(s.ctx(), "ann", early)
	s.must(err)
	_, err = s.Confirm(s.ctx(), "bob", a.ID, v1.AdoptionConfirm{Digest: a.Digest, Confirm: 1})
	s.must(err)
	id := s.adopt(ports...)
	if next := s.settle(); !next.Equal(s.now.Add(90 * time.Minute)) {
		t.Errorf("looks again at %v", next)
	}
	s.now = s.now.Add(90 * time.Minute)
	if next := s.settle(); !next.Equal(early.Deadline) {
		t.Errorf("looks again at %v, want the deadline", next)
	}
	if got := s.told(events.AdoptionDue); len(got) != 1 || !strings.Contains(got[0].Seen, a.ID) {
		t.Errorf("told %+v", got)
	}
	s.now = early.Deadline
	s.stopped = errors.New("the clock went ahead")
	s.settle()
	if n := s.leaving(); n != 0 {
		t.Errorf("%d are taken by a clock that is not believed", n)
	}
	s.stopped = nil
	s.settle()
	if n := s.leaving(); n != 1 {
		t.Errorf("%d are taken, want that of the earlier deadline", n)
	}
	s.now = s.now.Add(48 * time.Hour)
	for range 3 {
		s.settle()
	}
	if n := s.leaving(); n != 1 {
		t.Errorf("%d are taken while the brake holds them", n)
	}
	b, err := s.adm.BrakeState(s.ctx())
	s.must(err)
	if i := slices.IndexFunc(b.Items, func(b v1.Brake) bool { return b.Class == admission.BrakeAdoption }); i < 0 || b.Items[i].Held != 30 {
		t.Errorf("the brakes are %+v", b.Items)
	}
	_, err = s.End(s.ctx(), "ann", id, &v1.AdoptionEnd{Ports: []ib.GUID{1}, Confirm: 1, Reason: "it is off"})
	s.must(err)
	s.gone()
	s.settle()
	if b, err = s.adm.BrakeState(s.ctx()); err != nil || b.Items[2].Held != 29 {
		t.Errorf("the brakes are %+v, %v", b.Items, err)
	}
	_, err = s.adm.ReleaseBrake(s.ctx(), "ann", v1.BrakeRelease{Class: admission.BrakeAdoption, Reason: "they never came"})
	s.must(err)
	s.settle()
	if n := s.leaving(); n != 29 {
		t.Errorf("%d are taken, want 29", n)
	}
}

func (s *site) leaving() (n int) {
	for _, g := range s.grants() {
		if strings.HasSuffix(g, " leaving") {
			n++
		}
	}
	return n
}

// No cluster gets an adopted P_Key unless it is named, and none after that while a port has it.
func TestClusters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.adopt(port(1, 0x8100), port(2, 0x8101))
	ten := s.adm.Tenancy()
	_, err := ten.CreateTenant(s.ctx(), "ann", v1.NewTenant{Name: "acme"})
	s.must(err)
	c, err := ten.CreateCluster(s.ctx(), "ann", v1.NewCluster{Name: "one", Tenant: "acme"})
	s.must(err)
	if c.PKey.Base() != 0x0102 {
		t.Errorf("it got P_Key %v, want the first that is not adopted", c.PKey)
	}
	named := ib.PKey(0x8101)
	all, err := ib.ParsePKeyRange("0x0100-0x0103")
	s.must(err)
	scoped := tenancy.Within(s.ctx(), &tenancy.Scope{PKeys: tenancy.Ranges{all}})
	_, err = ten.CreateTenant(scoped, "ann", v1.NewTenant{Name: "moved", PKeys: []string{"0x0100-0x0103"}})
	s.must(err)
	_, err = ten.CreateCluster(scoped, "slurm", v1.NewCluster{Name: "two", Tenant: "moved", PKey: &named})
	s.refused(err, "p_key_adopted")
	scoped = tenancy.Within(s.ctx(), &tenancy.Scope{PKeys: tenancy.Ranges{all}, Adopted: true})
	c, err = ten.CreateCluster(scoped, "ann", v1.NewCluster{Name: "two", Tenant: "moved", PKey: &named})
	s.must(err)
	if c.PKey.Base() != 0x0101 || s.pkey(named) != tenancy.PKeyUsed {
		t.Errorf("it got P_Key %v, which is %q", c.PKey, s.pkey(named))
	}
	s.must(ten.DeleteCluster(s.ctx(), "ann", "two"))
	if s.pkey(named) != tenancy.PKeyQuarantined {
		t.Errorf("the P_Key is %q while an adopted port has it", s.pkey(named))
	}
}
