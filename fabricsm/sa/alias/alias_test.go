package alias_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/registry/registrytest"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
)

const (
	alice ib.GUID = 0x101
	alan  ib.GUID = 0x102
	bob   ib.GUID = 0x201
	loose ib.GUID = 0x301 // behind no switch
)

// inventory lets each port have a hundred GUIDs that follow from its own.
type inventory struct{}

func vf(port ib.GUID, n int) ib.GUID { return 0x1400_0000_0000_0000 | port<<8 | ib.GUID(n) }

func (inventory) Allows(port, g ib.GUID) bool { return g>>8 == vf(port, 0)>>8 && g&0xFF < 100 }

func (inventory) Choose(port ib.GUID, taken func(ib.GUID) bool) ib.GUID {
	for n := range 100 {
		if g := vf(port, n); !taken(g) {
			return g
		}
	}
	return 0
}

// rig is a registry with a fabric, the saved facts and the input for the Subnet Manager.
type rig struct {
	t testing.TB
	*alias.Registry
	f     *registrytest.Fabric
	saved registrytest.Saved
	told  map[ib.GUID][]ib.GUID
}

func newRig(t testing.TB, cfg alias.Config) *rig {
	f := registrytest.New()
	f.Add(alice, 0x8001, 0x7fff)
	f.Add(alan, 0x8001, 0x7fff)
	f.Add(bob, 0x8002, 0x7fff)
	f.Add(loose, 0x8001, 0x7fff).Home = -1
	cfg.Inventory = inventory{}
	r := &rig{t: t, Registry: alias.New(cfg), f: f, saved: make(registrytest.Saved), told: make(map[ib.GUID][]ib.GUID)}
	r.Follow(f)
	return r
}

func (r *rig) take(e alias.Effects) {
	r.saved.Take(e.Save)
	if e.Aliases != nil {
		for _, p := range e.Aliases.Ports {
			if delete(r.told, p.GUID); len(p.Aliases) > 0 {
				r.told[p.GUID] = p.Aliases
			}
		}
	}
}

type request struct {
	asker portindex.Asker
	rec   mad.GUIDInfoRecord
	mask  mad.ComponentMask
}

// want asks for entries of block 0 from 1 on.
func (r *rig) want(port ib.GUID, guids ...ib.GUID) request {
	q := request{r.f.Asker(port), mad.GUIDInfoRecord{LID: r.f.Ports[port].LID}, mad.GUIDInfoComponentLID | mad.GUIDInfoComponentBlockNum}
	for i, g := range guids {
		q.rec.GUID[i+1] = g
		q.mask |= mad.GUIDInfoComponentGUID(i + 1)
	}
	return q
}

func (r *rig) set(q request) alias.Answer {
	a := r.Set(q.asker, &q.rec, q.mask)
	r.take(a.Effects)
	return a
}

func (r *rig) del(q request) alias.Answer {
	a := r.Delete(q.asker, &q.rec, q.mask)
	r.take(a.Effects)
	return a
}

func (r *rig) must(a alias.Answer) mad.GUIDInfoRecord {
	r.t.Helper()
	if a.Verdict != trust.OK || a.Status != mad.StatusOK {
		r.t.Fatalf("verdict %v, status %v, %v", a.Verdict, a.Status, a.Events)
	}
	return a.Record
}

func TestSetRules(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*rig, *request)
		want    mad.Status
		verdict trust.Verdict
		has     []ib.GUID
	}{
		{"as it is", func(*rig, *request) {}, mad.StatusOK, 0, []ib.GUID{vf(alice, 1)}},
		{"no LID", func(_ *rig, q *request) { q.mask &^= mad.GUIDInfoComponentLID }, mad.StatusInsufficientComponents, 0, nil},
		{"no block", func(_ *rig, q *request) { q.mask &^= mad.GUIDInfoComponentBlockNum }, mad.StatusInsufficientComponents, 0, nil},
		{"entry 0", func(_ *rig, q *request) { q.mask |= mad.GUIDInfoComponentGUID(0) }, mad.StatusInvalidRequest, 0, nil},
		{"block 1", func(_ *rig, q *request) { q.rec.BlockNum = 1 }, mad.StatusOK, 0, []ib.GUID{8: vf(alice, 1)}},
		{"block 2", func(_ *rig, q *request) { q.rec.BlockNum = 2 }, mad.StatusInvalidRequest, 0, nil},
		{"another port", func(r *rig, q *request) { q.asker = r.f.Asker(alan) }, mad.StatusOK, trust.Proxy, nil},
		{"no port", func(_ *rig, q *request) { q.rec.LID = 0x999 }, mad.StatusOK, trust.Proxy, nil},
		{"another port, trusted", func(r *rig, q *request) { q.asker = r.f.Trusted(bob) }, mad.StatusOK, 0, []ib.GUID{vf(alice, 1)}},
		{"no port, trusted", func(_ *rig, q *request) { q.asker.Trusted, q.rec.LID = true, 0x999 }, mad.StatusInvalidRequest, 0, nil},
		{"from nowhere", func(_ *rig, q *request) { q.asker.Port = -1 }, mad.StatusOK, trust.UnknownSource, nil},
		{"behind no switch", func(r *rig, q *request) { *q = r.want(loose, vf(loose, 1)) }, mad.StatusInvalidRequest, 0, nil},
		{"none named", func(_ *rig, q *request) { q.mask &^= mad.GUIDInfoComponentGUID(1) }, mad.StatusOK, 0, nil},
		{"chosen", func(_ *rig, q *request) { q.rec.GUID[1] = 0 }, mad.StatusOK, 0, []ib.GUID{vf(alice, 0)}},
		{"three", func(r *rig, q *request) { *q = r.want(alice, vf(alice, 5), 0, vf(alice, 0)) }, mad.StatusOK, 0, []ib.GUID{vf(alice, 5), vf(alice, 1), vf(alice, 0)}},
		{"no GUID", func(_ *rig, q *request) { q.rec.GUID[1] = ^ib.GUID(0) }, mad.StatusOK, 0, nil},
		{"twice", func(r *rig, q *request) { *q = r.want(alice, vf(alice, 5), vf(alice, 5)) }, mad.StatusOK, 0, []ib.GUID{vf(alice, 5)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, alias.Config{Untrusted: true})
			q := r.want(alice, vf(alice, 1))
			tt.change(r, &q)
			a := r.set(q)
			if a.Status != tt.want || a.Verdict != tt.verdict {
				t.Fatalf("status %v, verdict %v, want %v, %v", a.Status, a.Verdict, tt.want, tt.verdict)
			}
			if got := r.Of(alice); !slices.Equal(got, tt.has) || !slices.Equal(got, r.told[alice]) || len(r.saved) != min(1, len(tt.has)) {
				t.Errorf("has %v, told %v, %d facts, want %v", got, r.told[alice], len(r.saved), tt.has)
			}
			if a.Status == mad.StatusOK && a.Verdict == trust.OK && q.rec.BlockNum == 0 && a.Record.GUID[0] != alice {
				t.Errorf("answered %v", a.Record)
			}
		})
	}
}

// TestLives: aliases are kept, replaced and taken back, and come back after a restart.
func TestLives(t *testing.T) {
	lims := trust.NewLimits()
	r := newRig(t, alias.Config{Untrusted: true, Limits: lims})
	r.must(r.set(r.want(alice, vf(alice, 1), vf(alice, 2))))
	if got := r.must(r.set(r.want(alice, 0))); got.GUID[1] != vf(alice, 1) {
		t.Errorf("asked to choose where there is one: %v", got.GUID)
	}
	if a := r.set(r.want(alice, vf(alice, 1))); len(a.Save)+len(a.Events) > 0 || a.Aliases != nil {
		t.Errorf("the same again: %+v", a)
	}
	if got := r.must(r.set(r.want(alice, vf(bob, 1)))); got.GUID[1] != 0 || !slices.Equal(r.Of(alice), []ib.GUID{vf(alice, 1), vf(alice, 2)}) {
		t.Errorf("a refused one: answered %v, has %v", got.GUID, r.Of(alice))
	}
	r.must(r.set(r.want(alice, vf(alice, 3))))

	lims.Add(trust.Groups, vf(alice, 2))
	if a := r.set(r.want(alice, 0, vf(alice, 4))); a.Status != mad.StatusDenied {
		t.Errorf("replaced a member: %v", a.Status)
	}
	if a := r.del(r.want(alice, 0, vf(alice, 2))); a.Status != mad.StatusDenied || len(a.Save) > 0 {
		t.Errorf("deleted a member: %v", a.Status)
	}
	lims.Remove(trust.Groups, vf(alice, 2))

	var facts []sm.Fact
	for _, f := range r.saved {
		facts = append(facts, f)
	}
	bad := []sm.Fact{
		{Kind: sm.FactSAAlias, Name: "x", Body: "01"},
		{Kind: sm.FactSAAlias, Name: "0000000000000201", Body: "01" + strings.Repeat("0", 18)},
		{Kind: sm.FactSAAlias, Name: "0000000000000201", Body: facts[0].Body},
	}
	fresh := newRig(t, alias.Config{})
	if e := fresh.Restore(append(facts, bad...)); len(e.Save) != len(bad) {
		t.Errorf("taken back %v", e.Save)
	}
	want := &sm.AliasesSet{Ports: []sm.AliasGUIDs{{GUID: alice, Place: ib.Place{Switch: 0x5000, Port: 1}, Aliases: []ib.GUID{vf(alice, 3), vf(alice, 2)}}}}
	if d := cmp.Diff(want, fresh.Input()); d != "" {
		t.Errorf("after a restart (-want +got):\n%s", d)
	}
	got := r.must(r.del(r.want(alice, 0, 0)))
	if got.GUID[1] != 0 || len(r.saved) != 0 || len(r.told) != 0 || len(r.Input().Ports) != 0 {
		t.Errorf("deleted: %v, %d facts", got.GUID, len(r.saved))
	}
}

// T77: false claims of aliases: those of other ports, those of no port, claims by virtual functions, and claims by
// untrusted requesters.
func TestT77Claims(t *testing.T) {
	r := newRig(t, alias.Config{Untrusted: true})
	for _, claim := range []ib.GUID{alice, alan, bob, registrytest.SM, vf(bob, 1), 0x1234} {
		a := r.set(r.want(alice, claim))
		if got := r.must(a); got.GUID[1] != 0 || len(a.Save) > 0 || a.Aliases != nil || a.Events[0].Reason == alias.NoReason {
			t.Errorf("claims %v: %v, %v", claim, got.GUID, a.Events)
		}
	}
	// An alias that the inventory allows, but that another port has.
	r.f = r.f.With(bob, func(e *portindex.EndPort) { e.Aliases = []ib.GUID{vf(alice, 7)} })
	r.Follow(r.f)
	if a := r.set(r.want(alice, vf(alice, 7))); r.must(a).GUID[1] != 0 || a.Events[0].Reason != alias.Taken {
		t.Errorf("claims what another port shows: %v", a.Events)
	}
	closed := newRig(t, alias.Config{})
	if a := closed.set(closed.want(alice, vf(alice, 1))); a.Verdict != trust.AliasRefused {
		t.Errorf("by default: %v", a.Verdict)
	}
	q := closed.want(alice, vf(alice, 1))
	q.asker.Trusted = true
	closed.must(closed.set(q))
	none := alias.New(alias.Config{Untrusted: true})
	none.Follow(closed.f)
	if a := none.Set(q.asker, &q.rec, q.mask); a.Record.GUID[1] != 0 || a.Events[0].Reason != alias.NotAllowed {
		t.Errorf("without an inventory: %v", a.Events)
	}
	const want = "port 0x0000000000000101: alias GUID 0x1400000000010101 refused, asked by LID 257: the inventory does not let the port have it"
	if a := none.Set(q.asker, &q.rec, q.mask); a.Events[0].String() != want {
		t.Errorf("told %s", a.Events[0])
	}
}

// TestReview: aliases that the inventory no longer allows are taken back.
func TestReview(t *testing.T) {
	r := newRig(t, alias.Config{Untrusted: true})
	r.must(r.set(r.want(alice, vf(alice, 1), vf(alice, 2))))
	if e := r.Review(); len(e.Save)+len(e.Events) > 0 {
		t.Errorf("nothing changed: %+v", e)
	}
	var facts []sm.Fact
	for _, f := range r.saved {
		facts = append(facts, f)
	}
	strict := alias.New(alias.Config{})
	strict.Restore(facts)
	e := strict.Review()
	if len(e.Events) != 2 || !e.Events[0].Gone || len(strict.Input().Ports) != 0 || len(e.Aliases.Ports) != 1 || len(e.Aliases.Ports[0].Aliases) != 0 {
		t.Errorf("taken back: %+v", e)
	}
}

// TestOnAFabric: assigned aliases are programmed, and the port is found by them.
func TestOnAFabric(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	s, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm", Fabric: sim.Options{Device: sim.Modern()}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Want(sm.Intent{Revision: 1})
	settle := func() *portindex.Book {
		t.Helper()
		if err := s.Settle(time.Minute); err != nil {
			t.Fatal(err)
		}
		return portindex.New(nil, s.View())
	}
	b := settle()
	r := alias.New(alias.Config{Inventory: inventory{}, Untrusted: true})
	r.Follow(registry.Of(b))
	host := b.ByGUID(s.GUID("h2", 1))
	rec := mad.GUIDInfoRecord{LID: host.LID}
	rec.GUID[1] = vf(host.GUID, 9)
	a := r.Set(portindex.Asker{Port: host.Port, As: host.GUID, LID: host.LID}, &rec, mad.GUIDInfoComponentLID|mad.GUIDInfoComponentBlockNum|mad.GUIDInfoComponentGUID(1))
	if a.Aliases == nil || a.Record.GUID[1] != vf(host.GUID, 9) {
		t.Fatalf("%+v", a)
	}
	s.Step(a.Aliases)
	if e := settle().ByGUID(vf(host.GUID, 9)); e == nil || e.GUID != host.GUID {
		t.Errorf("the alias leads to %+v; problems %q", e, s.View().Problems)
	}
}

// FuzzRequests checks that no request gets an alias of another port, and that the saved facts restore the registry.
func FuzzRequests(f *testing.F) {
	var seed [72]byte
	rec := mad.GUIDInfoRecord{LID: 0x101}
	rec.GUID[1] = vf(alice, 1)
	if err := mad.Encode(seed[:], &rec); err != nil {
		f.Fatal(err)
	}
	f.Add(seed[:], uint16(0xFFF), uint8(0))
	f.Fuzz(func(t *testing.T, raw []byte, mask uint16, how uint8) {
		var rec mad.GUIDInfoRecord
		if mad.Decode(raw, &rec) != nil {
			return
		}
		r := newRig(t, alias.Config{Untrusted: true})
		r.must(r.set(r.want(bob, vf(bob, 1))))
		q := request{r.f.Asker([]ib.GUID{alice, alan, bob, loose}[how%4]), rec, mad.ComponentMask(mask)}
		q.asker.Trusted = how&0x80 != 0
		if how&0x40 != 0 {
			r.del(q)
		} else {
			r.set(q)
		}
		for _, port := range []ib.GUID{alice, alan, bob, loose} {
			for _, g := range r.Of(port) {
				if g != 0 && !(inventory{}).Allows(port, g) {
					t.Fatalf("%v has %v", port, g)
				}
			}
		}
		fresh := newRig(t, alias.Config{})
		var facts []sm.Fact
		for _, f := range r.saved {
			facts = append(facts, f)
		}
		if e := fresh.Restore(facts); len(e.Events) > 0 {
			t.Fatal(e.Events)
		}
		if d := cmp.Diff(r.Input(), fresh.Input()); d != "" {
			t.Fatal(d)
		}
	})
}
