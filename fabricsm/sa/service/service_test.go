package service_test

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry/registrytest"
	"portcullis/fabricsm/sa/service"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
)

const (
	alice = registrytest.Alice
	alan  = registrytest.Alan
	bob   = registrytest.Bob
	lim   = registrytest.Lim
	vport = registrytest.VPort

	tenantA = registrytest.TenantA
	tenantB = registrytest.TenantB
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rig is a registry with a fabric, a clock and its saved facts.
type rig struct {
	t testing.TB
	*service.Registry
	f     *registrytest.Fabric
	now   time.Time
	saved registrytest.Saved
}

func newRig(t testing.TB, cfg service.Config) *rig {
	r := &rig{t: t, Registry: service.New(cfg), f: registrytest.Tenants(), now: start, saved: make(registrytest.Saved)}
	r.take(r.Follow(r.f))
	return r
}

func (r *rig) take(e service.Effects) service.Effects {
	r.saved.Take(e.Save)
	return e
}

type request struct {
	asker portindex.Asker
	rec   mad.ServiceRecord
	mask  mad.ComponentMask
}

func key(b byte) ib.ServiceKey {
	if b == 0 {
		return ib.ServiceKey{}
	}
	return ib.NewServiceKey([16]byte{b, 15: b})
}

const withKey = mad.ServiceComponentServiceKey

// offer registers a service of a port under a name, without a P_Key.
func (r *rig) offer(port ib.GUID, id ib.ServiceID, name string) request {
	q := request{r.f.Asker(port), mad.ServiceRecord{ServiceID: id, ServiceGID: ib.MakeGID(ib.DefaultPrefix, port), ServiceLease: 60}, mad.ServiceComponentServiceID |
		mad.ServiceComponentServiceGID | mad.ServiceComponentServiceLease | mad.ServiceComponentServiceName}
	copy(q.rec.ServiceName[:], name)
	return q
}

func (q request) with(change func(*request)) request { change(&q); return q }

func in(k ib.PKey) func(*request) {
	return func(q *request) { q.rec.ServicePKey = k; q.mask |= mad.ServiceComponentServicePKey }
}

func under(k byte) func(*request) {
	return func(q *request) { q.rec.ServiceKey = key(k); q.mask |= withKey }
}

func lease(s uint32) func(*request) { return func(q *request) { q.rec.ServiceLease = s } }

func (r *rig) set(q request) service.Answer {
	a := r.Set(r.now, q.asker, &q.rec, q.mask)
	r.take(a.Effects)
	return a
}

func (r *rig) del(q request) service.Answer {
	a := r.Delete(r.now, q.asker, &q.rec, q.mask)
	r.take(a.Effects)
	return a
}

func (r *rig) must(a service.Answer) mad.ServiceRecord {
	r.t.Helper()
	if a.Verdict != trust.OK || a.Status != mad.StatusOK {
		r.t.Fatalf("verdict %v, status %v: %v", a.Verdict, a.Status, a.Events)
	}
	return a.Record
}

// ask returns the names of the records that answer a query, and whether one shows a key.
func (r *rig) ask(a portindex.Asker, mask mad.ComponentMask, rec mad.ServiceRecord) (names []string, keys bool) {
	r.t.Helper()
	q := r.Now().Query(r.now, r.f, a, &rec, mask)
	buf := make([]byte, mad.RecordSize(mad.AttrServiceRecord))
	for {
		n, ok := registrytest.Next(&q, buf)
		if !ok {
			return names, keys
		}
		var got mad.ServiceRecord
		if err := mad.Decode(buf[:n], &got); err != nil {
			r.t.Fatal(err)
		}
		names, keys = append(names, got.Name()), keys || !got.ServiceKey.IsZero()
	}
}

func TestSetRules(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*request)
		want    mad.Status
		verdict trust.Verdict
		pkey    ib.PKey
		lease   uint32
	}{
		{"as it is", func(*request) {}, mad.StatusOK, 0, 0xFFFF, 60},
		{"no ServiceID", func(q *request) { q.mask &^= mad.ServiceComponentServiceID }, mad.StatusInsufficientComponents, 0, 0, 0},
		{"no ServiceGID", func(q *request) { q.mask &^= mad.ServiceComponentServiceGID }, mad.StatusInsufficientComponents, 0, 0, 0},
		{"no lease", func(q *request) { q.mask &^= mad.ServiceComponentServiceLease }, mad.StatusOK, 0, 0xFFFF, 604800},
		{"no lease, trusted", func(q *request) { q.mask &^= mad.ServiceComponentServiceLease; q.asker.Trusted = true }, mad.StatusOK, 0, 0xFFFF, mad.LeaseForever},
		{"P_Key", in(tenantA), mad.StatusOK, 0, tenantA, 60},
		{"P_Key without a base", in(0x8000), mad.StatusInvalidRequest, 0, 0, 0},
		{"P_Key of another", in(tenantB), mad.StatusInvalidRequest, 0, 0, 0},
		{"foreign prefix", func(q *request) { q.rec.ServiceGID[0] = 1 }, mad.StatusInvalidGID, 0, 0, 0},
		{"no prefix", func(q *request) { q.rec.ServiceGID = ib.MakeGID(0, alice) }, mad.StatusOK, 0, 0xFFFF, 60},
		{"for another", func(q *request) { q.rec.ServiceGID = ib.MakeGID(0, alan) }, mad.StatusOK, trust.Proxy, 0, 0},
		{"for nobody", func(q *request) { q.rec.ServiceGID = ib.MakeGID(0, 0x999) }, mad.StatusOK, trust.Proxy, 0, 0},
		{"for another, trusted", func(q *request) { q.rec.ServiceGID = ib.MakeGID(0, bob); q.asker.Trusted = true }, mad.StatusOK, 0, 0xFFFF, 60},
		{"for nobody, trusted", func(q *request) { q.rec.ServiceGID = ib.MakeGID(0, 0x999); q.asker.Trusted = true }, mad.StatusInvalidRequest, 0, 0, 0},
		{"for its alias", func(q *request) { q.rec.ServiceGID = ib.MakeGID(ib.DefaultPrefix, vport) }, mad.StatusOK, 0, 0xFFFF, 60},
		{"from nowhere", func(q *request) { q.asker.Port = -1 }, mad.StatusOK, trust.UnknownSource, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, service.Config{})
			a := r.set(r.offer(alice, 7, "x").with(tt.change))
			if a.Status != tt.want || a.Verdict != tt.verdict {
				t.Fatalf("status %v, verdict %v, want %v, %v", a.Status, a.Verdict, tt.want, tt.verdict)
			}
			if made := tt.want == mad.StatusOK && tt.verdict == trust.OK; made != (r.Now().Len() == 1) || made != (len(a.Save) == 1) {
				t.Fatalf("%d records, saved %v", r.Now().Len(), a.Save)
			}
			if a.Record.ServicePKey != tt.pkey || a.Record.ServiceLease != tt.lease {
				t.Errorf("P_Key %v, lease %d, want %v, %d", a.Record.ServicePKey, a.Record.ServiceLease, tt.pkey, tt.lease)
			}
		})
	}
}

// TestReplace: the same ServiceID, GID and P_Key are the same record.
func TestReplace(t *testing.T) {
	lims := trust.NewLimits()
	r := newRig(t, service.Config{Limits: lims})
	r.must(r.set(r.offer(alice, 7, "one")))
	r.must(r.set(r.offer(alice, 7, "two").with(lease(5))))
	r.must(r.set(r.offer(alice, 7, "three").with(in(tenantA))))
	r.must(r.set(r.offer(alan, 7, "four")))
	if names, _ := r.ask(r.f.Asker(alice), 0, mad.ServiceRecord{}); strings.Join(names, " ") != "three two four" {
		t.Errorf("records %q", names)
	}
	if n := lims.Count(trust.Services, alice); n != 2 {
		t.Errorf("alice counts %d", n)
	}
	if got := r.Next(); !got.Equal(start.Add(5 * time.Second)) {
		t.Errorf("next %v", got)
	}
	r.must(r.del(r.offer(alice, 7, "")))
	if names, _ := r.ask(r.f.Asker(alice), 0, mad.ServiceRecord{}); strings.Join(names, " ") != "three four" {
		t.Errorf("records %q", names)
	}
	if a := r.del(r.offer(alice, 7, "")); a.Status != mad.StatusNoRecords {
		t.Errorf("deleted twice: %v", a.Status)
	}
	// Delete by the record that a Get returned, without the bits of the mask.
	q := r.offer(alice, 7, "three").with(in(tenantA))
	q.mask = mad.ServiceComponentServiceName
	r.must(r.del(q))
}

func TestLeases(t *testing.T) {
	r := newRig(t, service.Config{MaxLease: time.Hour})
	r.must(r.set(r.offer(alice, 1, "short").with(lease(4))))
	r.must(r.set(r.offer(alice, 2, "long").with(lease(7200))))
	r.must(r.set(r.offer(alice, 3, "nothing").with(lease(0))))
	trusted := r.offer(alice, 4, "forever").with(lease(mad.LeaseForever))
	trusted.asker.Trusted = true
	r.must(r.set(trusted))
	see := func(want string) {
		t.Helper()
		if names, _ := r.ask(r.f.Asker(alice), 0, mad.ServiceRecord{}); strings.Join(names, " ") != want {
			t.Errorf("after %v: %q, want %q", r.now.Sub(start), names, want)
		}
	}
	see("short long forever")
	r.now = r.now.Add(3500 * time.Millisecond)
	see("short long forever")
	if got := r.Now().Get(service.RID{ID: 1, GUID: alice, PKey: 0xFFFF}); got == nil {
		t.Error("gone before its time")
	}
	r.now = r.now.Add(500 * time.Millisecond)
	see("long forever") // before Expire is called
	if e := r.take(r.Expire(r.now)); len(e.Events) != 2 || e.Events[0].Kind != service.Expired {
		t.Errorf("expired %v", e.Events)
	}
	see("long forever")
	r.now = start.Add(time.Hour)
	r.take(r.Expire(r.now))
	see("forever")
	if !r.Next().IsZero() || len(r.saved) != 1 {
		t.Errorf("next %v, %d facts", r.Next(), len(r.saved))
	}
}

// TestLeasesThatEndTogether end some at a time.
func TestLeasesThatEndTogether(t *testing.T) {
	r := newRig(t, service.Config{})
	const all = 600
	for i := range ib.ServiceID(all) {
		q := r.offer(alice, i+1, "one of many").with(lease(4))
		q.asker.Trusted = true
		r.must(r.set(q))
	}
	r.now = r.now.Add(time.Minute)
	calls := 0
	for ; !r.Next().IsZero() && calls < all; calls++ {
		if e := r.take(r.Expire(r.now)); len(e.Events) == 0 || len(e.Events) > all/2 {
			t.Errorf("%d end in one call", len(e.Events))
		}
	}
	if calls < 2 || r.Len() != 0 || len(r.saved) != 0 {
		t.Errorf("after %d calls %d are left, and %d facts", calls, r.Len(), len(r.saved))
	}
}

func TestQueries(t *testing.T) {
	r := newRig(t, service.Config{})
	r.must(r.set(r.offer(alice, 1, "open")))
	r.must(r.set(r.offer(alice, 2, "closed").with(in(tenantA)).with(under(9))))
	r.must(r.set(r.offer(bob, 3, "other").with(in(tenantB))))
	r.must(r.set(r.offer(lim, 4, "limited").with(in(tenantA.Limited()))))
	named := func(n string) (rec mad.ServiceRecord) { copy(rec.ServiceName[:], n); return rec }
	for _, tt := range []struct {
		name  string
		asker portindex.Asker
		mask  mad.ComponentMask
		rec   mad.ServiceRecord
		want  string
	}{
		{"all", r.f.Asker(alan), 0, mad.ServiceRecord{}, "open closed limited"},
		{"all of a limited member", r.f.Asker(lim), 0, mad.ServiceRecord{}, "open closed limited"},
		{"all of another tenant", r.f.Asker(bob), 0, mad.ServiceRecord{}, "other"},
		{"trusted", r.f.Trusted(bob), 0, mad.ServiceRecord{}, "open closed other limited"},
		{"by name", r.f.Asker(alan), mad.ServiceComponentServiceName, named("closed"), "closed"},
		{"by another's name", r.f.Asker(bob), mad.ServiceComponentServiceName, named("closed"), ""},
		{"by ServiceID", r.f.Asker(alan), mad.ServiceComponentServiceID, mad.ServiceRecord{ServiceID: 2}, "closed"},
		{"by ServiceID 0", r.f.Asker(alan), mad.ServiceComponentServiceID, mad.ServiceRecord{}, ""},
		{"by GID", r.f.Asker(alan), mad.ServiceComponentServiceGID, mad.ServiceRecord{ServiceGID: ib.MakeGID(ib.DefaultPrefix, lim)}, "limited"},
		{"by P_Key", r.f.Asker(alan), mad.ServiceComponentServicePKey, mad.ServiceRecord{ServicePKey: tenantA}, "closed"},
		{"by key", r.f.Asker(alan), withKey, mad.ServiceRecord{ServiceKey: key(9)}, "closed"},
		{"by a wrong key", r.f.Asker(alan), withKey, mad.ServiceRecord{ServiceKey: key(8)}, ""},
		{"by data", r.f.Asker(alan), 1 << 7, mad.ServiceRecord{ServiceData8: [16]uint8{1}}, ""},
	} {
		names, keys := r.ask(tt.asker, tt.mask, tt.rec)
		if strings.Join(names, " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, names, tt.want)
		}
		if keys && !tt.asker.Trusted {
			t.Errorf("%s: shows a key", tt.name)
		}
	}
	if _, keys := r.ask(r.f.Trusted(bob), 0, mad.ServiceRecord{}); !keys {
		t.Error("trusted: no key is shown")
	}
}

// TestUnknownIsAsForeign: a query for a ServiceID of other ports takes as many steps as one for a ServiceID that no port
// has.
func TestUnknownIsAsForeign(t *testing.T) {
	r := newRig(t, service.Config{})
	r.must(r.set(r.offer(alice, 1, "open")))
	r.must(r.set(r.offer(alice, 2, "closed").with(in(tenantA))))
	r.must(r.set(r.offer(alan, 2, "closed").with(in(tenantA))))
	steps := func(a portindex.Asker, id ib.ServiceID) int {
		q := r.Now().Query(r.now, r.f, a, &mad.ServiceRecord{ServiceID: id}, mad.ServiceComponentServiceID)
		if _, ok := registrytest.Next(&q, make([]byte, 176)); ok {
			t.Errorf("service %d is shown", id)
		}
		return q.Steps()
	}
	want := steps(r.f.Asker(bob), 77)
	for _, id := range []ib.ServiceID{1, 2} {
		if got := steps(r.f.Asker(bob), id); got != want {
			t.Errorf("ServiceID %d, of others: %d steps, want %d as for nobody's", id, got, want)
		}
	}
	if got := steps(r.f.Trusted(bob), 77); got != 1 {
		t.Errorf("trusted: %d steps", got)
	}
}

// TestKeysOfTenantsGo: a record goes with the P_Key, and with its port if so
// configured.
func TestKeysOfTenantsGo(t *testing.T) {
	for _, drop := range []bool{false, true} {
		r := newRig(t, service.Config{DropWithPort: drop})
		r.must(r.set(r.offer(alice, 1, "open")))
		r.must(r.set(r.offer(alice, 2, "closed").with(in(tenantA))))
		r.must(r.set(r.offer(alice, 3, "alias").with(func(q *request) { q.rec.ServiceGID = ib.MakeGID(ib.DefaultPrefix, vport) }).with(in(tenantA))))
		whole := r.f
		r.f = whole.With(alice, func(e *portindex.EndPort) { e.PKeys = []ib.PKey{0x7fff} })
		r.f.Busy, r.f.Doubt[alice] = true, true
		if e := r.take(r.Follow(r.f)); len(e.Events) > 0 {
			t.Errorf("while tables are read: %v", e.Events)
		}
		r.f = r.f.Clone()
		r.f.Busy = false
		if e := r.take(r.Follow(r.f)); len(e.Events) != 3 || e.Events[0].Reason != service.NotInPartition {
			t.Errorf("the P_Key is gone: %v", e.Events)
		}
		r.f = whole
		r.take(r.Follow(r.f))
		r.must(r.set(r.offer(alice, 1, "open")))
		r.f = r.f.Without(alice)
		r.take(r.Follow(r.f))
		if n := r.Now().Len(); n != map[bool]int{false: 1, true: 0}[drop] {
			t.Errorf("drop %v: %d records", drop, n)
		}
		if names, _ := r.ask(r.f.Asker(alan), 0, mad.ServiceRecord{}); len(names) != 0 {
			t.Errorf("shown of a port that is gone: %q", names)
		}
	}
}

// A record that was registered without a P_Key is removed when the port moves to another tenant. Otherwise the hosts of the
// next tenant would trust a service of the previous one.
func TestOpenRecordsDoNotChangeHands(t *testing.T) {
	in := func(r *rig, keys ...ib.PKey) *registrytest.Fabric {
		return r.f.With(alice, func(e *portindex.EndPort) { e.PKeys = keys })
	}
	for _, tt := range []struct {
		name     string
		was, now []ib.PKey
		stays    bool
	}{
		{"another tenant's", []ib.PKey{0x8001, 0x7fff}, []ib.PKey{0x8002, 0x7fff}, false},
		{"nobody's", []ib.PKey{0x8001, 0x7fff}, []ib.PKey{0x7fff}, false},
		{"of nobody before", []ib.PKey{0x7fff}, []ib.PKey{0x8002, 0x7fff}, false},
		{"limited now", []ib.PKey{0x8001, 0x7fff}, []ib.PKey{0x0001, 0x7fff}, true},
		{"in one more", []ib.PKey{0x8001, 0x7fff}, []ib.PKey{0x8001, 0x8002, 0x7fff}, true},
		{"out of another", []ib.PKey{0x8001, 0x8002, 0x7fff}, []ib.PKey{0x8001, 0x7fff}, true},
		{"of a fabric without tenants", []ib.PKey{0xffff}, []ib.PKey{0x7fff}, true},
	} {
		r := newRig(t, service.Config{})
		r.f = in(r, tt.was...)
		r.take(r.Follow(r.f))
		r.must(r.set(r.offer(alice, 1, "open")))
		saved := slices.Collect(maps.Values(r.saved))
		r.f = in(r, tt.now...)
		if r.take(r.Follow(r.f)); (r.Now().Len() == 1) != tt.stays {
			t.Errorf("%s: %d records", tt.name, r.Now().Len())
		}
		again := service.New(service.Config{})
		again.Restore(saved)
		if again.Follow(r.f); (again.Now().Len() == 1) != tt.stays {
			t.Errorf("%s, after a restart: %d records", tt.name, again.Now().Len())
		}
	}
}

// T84: a reserved name without its key.
func TestT84ReservedNames(t *testing.T) {
	names, err := trust.ParseServiceKeys("map", []byte("SHArP.AggregationManager 500::5"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, service.Config{Names: names, Trust: trust.DefaultOptions()})
	for name, k := range map[string]byte{"SHArP.AggregationManager": 0, "SHArP.Other": 5} {
		if a := r.set(r.offer(alice, 1, name).with(under(k))); a.Verdict == trust.OK || r.Now().Len() != 0 {
			t.Errorf("%s: %v", name, a.Verdict)
		}
	}
	r.must(r.set(r.offer(alice, 1, "SHArP.AggregationManager").with(under(5))))
	// Under another name the record would be out of the way.
	if a := r.set(r.offer(alice, 1, "harmless")); a.Verdict != trust.WrongServiceKey {
		t.Errorf("replaced: %v", a.Verdict)
	}
	if a := r.del(r.offer(alice, 1, "harmless")); a.Verdict != trust.WrongServiceKey {
		t.Errorf("deleted: %v", a.Verdict)
	}
	r.must(r.del(r.offer(alice, 1, "").with(under(5))))
}

// T75, T85: a record is overwritten or deleted by others, or without its key.
func TestT75T85AnothersRecord(t *testing.T) {
	r := newRig(t, service.Config{})
	r.must(r.set(r.offer(alice, 1, "mine").with(under(3))))
	for name, q := range map[string]request{
		"no key": r.offer(alice, 1, "x"), "another key": r.offer(alice, 1, "x").with(under(4)),
		"key without its bit": r.offer(alice, 1, "x").with(func(q *request) { q.rec.ServiceKey = key(3) }),
	} {
		if a := r.set(q); a.Status != mad.StatusDenied || len(a.Save) > 0 {
			t.Errorf("replaced with %s: %v", name, a.Status)
		}
		if a := r.del(q); a.Status != mad.StatusDenied || len(a.Save) > 0 {
			t.Errorf("deleted with %s: %v", name, a.Status)
		}
	}
	thief := r.offer(alice, 1, "x").with(under(3))
	thief.asker = r.f.Asker(alan)
	if a, b := r.set(thief), r.del(thief); a.Verdict != trust.Proxy || b.Verdict != trust.Proxy {
		t.Errorf("by another port: %v, %v", a.Verdict, b.Verdict)
	}
	r.must(r.set(r.offer(alice, 1, "mine still").with(under(3))))
	loose := newRig(t, service.Config{IgnoreKeys: true})
	loose.must(loose.set(loose.offer(alice, 1, "mine").with(under(3))))
	loose.must(loose.del(loose.offer(alice, 1, "")))
	trusted := r.offer(alice, 1, "")
	trusted.asker.Trusted = true
	r.must(r.del(trusted))
}

// T65, T86: records without end, and leases without end.
func TestT65T86TooManyTooLong(t *testing.T) {
	opts := trust.DefaultOptions()
	r := newRig(t, service.Config{Trust: opts, Limits: trust.NewLimits()})
	for i := range opts.MaxServices {
		if got := r.must(r.set(r.offer(alice, ib.ServiceID(i), "x").with(lease(mad.LeaseForever)))); got.ServiceLease != 7*24*3600 {
			t.Fatalf("lease %d", got.ServiceLease)
		}
	}
	if a := r.set(r.offer(alice, 99, "x")); a.Verdict != trust.TooManyServices || a.Verdict.Notice() != 1304 || len(a.Save) > 0 {
		t.Errorf("one too many: %+v", a)
	}
	r.must(r.set(r.offer(alice, 0, "replaced")))
	r.must(r.set(r.offer(alan, 99, "x")))
	few := newRig(t, service.Config{MaxRecords: 2})
	few.must(few.set(few.offer(alice, 1, "")))
	few.must(few.set(few.offer(alan, 1, "")))
	if a := few.set(few.offer(bob, 1, "")); a.Status != mad.StatusNoResources {
		t.Errorf("more than all may have: %v", a.Status)
	}
}

// T87: names that write into logs.
func TestT87NamesInLogs(t *testing.T) {
	r := newRig(t, service.Config{})
	a := r.set(r.offer(alice, 1, "a\nb\x1b[31m\u202e\xff\"c"))
	r.must(a)
	const want = `service 0x0000000000000001 of 0x0000000000000101, P_Key 0xffff, name "a\nb\x1b[31m\u202e\xff\"c", registered, asked by LID 257`
	if got := a.Events[0].String(); got != want {
		t.Errorf("told %s\nwant %s", got, want)
	}
}

// TestRandomly registers, replaces, deletes, lets time pass and restarts.
func TestRandomly(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 8))
		r := newRig(t, service.Config{})
		ports := []ib.GUID{alice, alan, bob, lim}
		for range 1500 {
			port := ports[rng.IntN(len(ports))]
			q := r.offer(port, ib.ServiceID(rng.IntN(5)), "x").with(lease(uint32(rng.IntN(20))))
			if rng.IntN(2) == 0 {
				q = q.with(in([]ib.PKey{tenantA, tenantB}[rng.IntN(2)]))
			}
			if rng.IntN(2) == 0 {
				q = q.with(under(byte(rng.IntN(3))))
			}
			switch rng.IntN(8) {
			case 0:
				r.now = r.now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
			case 1:
				r.take(r.Expire(r.now))
			case 2:
				r.del(q)
			case 3:
				again := newRig(t, service.Config{})
				again.now, again.f, again.saved = r.now, r.f, r.saved
				var facts []sm.Fact
				for _, f := range r.saved {
					facts = append(facts, f)
				}
				if e := again.Restore(facts); len(e.Save)+len(e.Events) > 0 {
					t.Fatalf("restoring does %+v", e)
				}
				same(t, r.Now(), again.Now())
				if !r.Next().Equal(again.Next()) {
					t.Fatalf("next %v, restored %v", r.Next(), again.Next())
				}
				r = again
			default:
				r.set(q)
			}
			if r.Now().Len() != len(r.saved) {
				t.Fatalf("%d records, %d facts", r.Now().Len(), len(r.saved))
			}
		}
	}
}

func same(t *testing.T, a, b service.Snapshot) {
	t.Helper()
	if a.Len() != b.Len() {
		t.Fatalf("%d records, restored %d", a.Len(), b.Len())
	}
	for rid, rec := range a.All {
		o := b.Get(rid)
		if o == nil || !o.Expires.Equal(rec.Expires) || o.Record != rec.Record || o.Open != rec.Open {
			t.Fatalf("record %+v, restored %+v", rec, o)
		}
	}
}

// TestFacts: facts with a key are private, and unreadable facts are deleted.
func TestFacts(t *testing.T) {
	r := newRig(t, service.Config{})
	r.must(r.set(r.offer(alice, 1, "x").with(under(3))))
	r.must(r.set(r.offer(alice, 2, "x")))
	var facts []sm.Fact
	for _, f := range r.saved {
		if private := strings.HasPrefix(f.Name, "0000000000000001"); private != (f.Body == "") || private == f.Private.IsZero() {
			t.Errorf("fact %+v", f)
		}
		facts = append(facts, f)
	}
	bad := []sm.Fact{
		{Kind: sm.FactSAService, Name: "1", Body: "zz"},
		{Kind: sm.FactSAService, Name: "2", Body: strings.Repeat("01", 186)},
		{Kind: sm.FactSAService, Name: "3", Body: "01"},
	}
	for _, f := range facts {
		if f.Body != "" {
			bad = append(bad, sm.Fact{Kind: sm.FactSAService, Name: "another", Body: f.Body})
		}
	}
	again := newRig(t, service.Config{})
	e := again.Restore(append(facts, bad...))
	if len(e.Save) != len(bad) || len(e.Events) != len(bad) || again.Now().Len() != 2 {
		t.Errorf("%d of %d taken back, %d records", len(e.Save), len(bad), again.Now().Len())
	}
}

// FuzzRequests: every request is answered or dropped, and the saved facts restore the registry.
func FuzzRequests(f *testing.F) {
	f.Add(make([]byte, 184), uint8(0))
	seed := &rig{t: f, f: registrytest.Tenants()}
	q := seed.offer(alice, 1, "x").with(in(tenantA)).with(under(1))
	var b [184]byte
	binary.BigEndian.PutUint64(b[:], uint64(q.mask))
	if err := mad.Encode(b[8:], &q.rec); err != nil {
		f.Fatal(err)
	}
	f.Add(b[:], uint8(2))
	f.Fuzz(func(t *testing.T, raw []byte, how uint8) {
		r := newRig(t, service.Config{})
		for ; len(raw) >= 184; raw, how = raw[184:], how+1 {
			q := request{asker: r.f.Asker([]ib.GUID{alice, alan, bob, lim}[how%4]), mask: mad.ComponentMask(binary.BigEndian.Uint64(raw))}
			q.asker.Trusted = how&0x40 != 0
			if err := mad.Decode(raw[8:], &q.rec); err != nil {
				t.Fatal(err)
			}
			if how&0x20 != 0 {
				r.del(q)
			} else {
				r.set(q)
			}
			r.ask(q.asker, q.mask, q.rec)
		}
		var facts []sm.Fact
		for _, f := range r.saved {
			facts = append(facts, f)
		}
		again := service.New(service.Config{})
		if e := again.Restore(facts); len(e.Events) > 0 {
			t.Fatal(e.Events)
		}
		same(t, r.Now(), again.Now())
	})
}
