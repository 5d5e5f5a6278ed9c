package inform_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/registry/registrytest"
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

// rig is a registry with a fabric, a clock, its saved facts and the reports on the wire.
type rig struct {
	t testing.TB
	*inform.Registry
	f     *registrytest.Fabric
	now   time.Time
	saved registrytest.Saved
	wire  []inform.Report
}

func newRig(t testing.TB, cfg inform.Config) *rig {
	r := &rig{t: t, Registry: inform.New(cfg), f: registrytest.Tenants(), now: start, saved: make(registrytest.Saved)}
	r.move(r.f)
	return r
}

func (r *rig) take(e inform.Effects) inform.Effects {
	r.saved.Take(e.Save)
	r.wire = append(r.wire, e.Send...)
	return e
}

func (r *rig) move(f *registrytest.Fabric) inform.Effects {
	r.f = f
	_, e := r.Follow(r.now, f)
	return r.take(e)
}

func (r *rig) wait(d time.Duration) inform.Effects {
	r.now = r.now.Add(d)
	return r.take(r.Expire(r.now))
}

// all is a subscription to a trap of all ports.
func all(trap mad.TrapNum) mad.InformInfo {
	return mad.InformInfo{
		LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: trap, ProducerType: mad.AllProducers, RespTimeValue: 8,
	}
}

func (r *rig) set(a portindex.Asker, info mad.InformInfo) inform.Answer {
	r.t.Helper()
	ans := r.Set(a, inform.Address{LID: a.LID, QP: a.QP}, &info)
	r.take(ans.Effects)
	return ans
}

func (r *rig) sub(a portindex.Asker, info mad.InformInfo) {
	r.t.Helper()
	if ans := r.set(a, info); ans.Verdict != trust.OK || ans.Status != mad.StatusOK {
		r.t.Fatalf("verdict %v, status %v, %v", ans.Verdict, ans.Status, ans.Events)
	}
}

func end(i mad.InformInfo, qp uint32) mad.InformInfo {
	i.Subscribe, i.QPN = 0, qp
	return i
}

// who returns the receivers, by LID, of the reports on the wire, and clears the list.
func (r *rig) who() (out []string) {
	for i := range r.wire {
		var n mad.ReportNotice
		m := &r.wire[i].MAD
		if err := mad.Decode(m.SAData(), &n); err != nil || m.Method() != mad.MethodReport || m.Class() != mad.ClassSubnAdm || m.Attr() != mad.AttrNotice {
			r.t.Fatalf("on the wire %+v", m)
		}
		out = append(out, fmt.Sprintf("%d to %x", uint16(n.TrapNumber), uint16(r.wire[i].To.LID)))
	}
	r.wire = nil
	return out
}

// answer answers all reports on the wire, and those that follow.
func (r *rig) answer() (out []string) {
	for len(r.wire) > 0 {
		packets := r.wire
		out = append(out, r.who()...)
		for i := range packets {
			m := packets[i].MAD
			m.SetMethod(mad.MethodReportResp)
			r.take(r.Take(r.now, packets[i].To.LID, &m))
		}
	}
	return out
}

func (r *rig) tell(n ...registry.Notice) { r.take(r.Report(r.now, n...)) }

func (r *rig) expect(what string, want ...string) {
	r.t.Helper()
	got := r.answer()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("%s: reports %q, want %q", what, got, want)
	}
}

func TestSubscribeRules(t *testing.T) {
	gid := func(g ib.GUID) func(*mad.InformInfo) {
		return func(i *mad.InformInfo) { i.GID = ib.MakeGID(ib.DefaultPrefix, g) }
	}
	lids := func(a, b ib.LID) func(*mad.InformInfo) {
		return func(i *mad.InformInfo) { i.LIDRangeBegin, i.LIDRangeEnd = a, b }
	}
	for _, tt := range []struct {
		name    string
		change  func(*mad.InformInfo)
		trusted bool
		want    inform.Reason
	}{
		{"all LIDs", func(*mad.InformInfo) {}, false, inform.NoReason},
		{"Subscribe 2", func(i *mad.InformInfo) { i.Subscribe = 2 }, false, inform.BadSubscribe},
		{"IsGeneric 2", func(i *mad.InformInfo) { i.IsGeneric = 2 }, false, inform.BadIsGeneric},
		{"own GID", gid(alice), false, inform.NoReason},
		{"GID of the same tenant", gid(alan), false, inform.NoReason},
		{"GID of the Subnet Manager", gid(registrytest.SM), false, inform.NoReason},
		{"GID of another tenant", gid(bob), false, inform.NotInPartition},
		{"GID of another tenant, trusted", gid(bob), true, inform.NoReason},
		{"GID of nobody", gid(0x999), false, inform.NotInPartition},
		{"GID of nobody yet, trusted", gid(0x999), true, inform.NoReason},
		{"foreign GID", func(i *mad.InformInfo) { i.GID = ib.MakeGID(7, alice) }, false, inform.NotInPartition},
		{"one LID", lids(0x102, 0), false, inform.NoReason},
		{"some LIDs", lids(0x101, 0x102), false, inform.NoReason},
		{"a LID of another tenant", lids(0x201, 0), false, inform.NotInPartition},
		{"a LID of nobody", lids(0x103, 0), false, inform.NotInPartition},
		{"a range with LIDs of others", lids(0x101, 0x201), false, inform.NotInPartition},
		{"a range that ends before it begins", lids(0x102, 0x101), false, inform.BadRange},
		{"LID 0", lids(0, 0), false, inform.BadRange},
		{"multicast LIDs", lids(0x101, 0xC000), false, inform.BadRange},
		{"trap 256", func(i *mad.InformInfo) { i.TrapNumber = 256 }, false, inform.SecurityTraps},
		{"trap 259", func(i *mad.InformInfo) { i.TrapNumber = 259 }, false, inform.SecurityTraps},
		{"trap 259, trusted", func(i *mad.InformInfo) { i.TrapNumber = 259 }, true, inform.NoReason},
		{"a vendor's 256", func(i *mad.InformInfo) { i.TrapNumber, i.IsGeneric = 256, 0 }, false, inform.NoReason},
		{"all traps", func(i *mad.InformInfo) { i.TrapNumber = mad.AllTraps }, false, inform.NoReason},
		{"ending what is not", func(i *mad.InformInfo) { i.Subscribe = 0 }, false, inform.NotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, inform.Config{})
			info := all(64)
			tt.change(&info)
			a := r.f.Asker(alice)
			a.Trusted = tt.trusted
			ans := r.set(a, info)
			if tt.want == inform.NoReason {
				if ans.Status != mad.StatusOK || ans.Record != info || len(ans.Save) != 1 || r.Now().Len() != 1 {
					t.Errorf("%+v", ans)
				}
			} else if ans.Status != mad.StatusInvalidRequest || ans.Events[0].Reason != tt.want || len(ans.Save) > 0 || r.Now().Len() != 0 || ans.Record.Subscribe != 0 {
				t.Errorf("status %v, %v", ans.Status, ans.Events)
			}
		})
	}
}

// TestIdentity checks when two subscriptions are the same, and which request ends one.
func TestIdentity(t *testing.T) {
	r := newRig(t, inform.Config{})
	a := r.f.Asker(alice)
	r.sub(a, all(64))
	if ans := r.set(a, all(64)); ans.Status != mad.StatusOK || len(ans.Save)+len(ans.Events) > 0 {
		t.Errorf("again: %+v", ans)
	}
	trusted := a
	trusted.Trusted = true
	if ans := r.set(trusted, all(64)); len(ans.Save) != 1 || r.Now().Len() != 1 {
		t.Errorf("again, trusted: %+v", ans)
	}
	other := a
	other.QP = 5
	r.sub(other, all(64))
	r.sub(a, all(65))
	as := a
	as.As = vport
	r.sub(as, all(64))
	if n := r.Now().Len(); n != 4 {
		t.Fatalf("%d subscriptions", n)
	}
	for name, ans := range map[string]inform.Answer{
		"with another queue pair in the request": r.set(a, end(all(64), 5)),
		"from another queue pair":                r.set(other, end(all(64), 1)),
		"from another port":                      r.set(r.f.Asker(alan), end(all(64), 1)),
		"of another trap":                        r.set(a, end(all(66), 1)),
	} {
		if ans.Status != mad.StatusInvalidRequest {
			t.Errorf("ended %s: %v", name, ans.Status)
		}
	}
	if ans := r.set(a, end(all(64), 1)); ans.Status != mad.StatusOK || r.Now().Len() != 3 {
		t.Errorf("ended: %v", ans.Status)
	}
	r.sub(a, all(66)) // takes the free number
	var enums []string
	for s := range r.Now().All {
		enums = append(enums, fmt.Sprintf("%x.%d", uint64(s.As), s.Enum))
	}
	if want := "101.0 101.1 101.2 1111.0"; strings.Join(enums, " ") != want {
		t.Errorf("numbers %q, want %q", enums, want)
	}
}

// gone and come are notices about a port.
func about(trap mad.TrapNum, g ib.GUID, keys ...ib.PKey) registry.Notice {
	return registry.AboutGID(trap, ib.MakeGID(ib.DefaultPrefix, g), 0x5A, ib.MakeGID(ib.DefaultPrefix, registrytest.SM), keys...)
}

func group(trap mad.TrapNum, key ib.PKey) registry.Notice {
	return registry.AboutGID(trap, ib.GID{0: 0xFF, 15: 1}, 0x5A, ib.MakeGID(ib.DefaultPrefix, registrytest.SM), key)
}

// TestWhoIsTold checks matching, and the rights of subscribers.
func TestWhoIsTold(t *testing.T) {
	r := newRig(t, inform.Config{})
	for _, g := range []ib.GUID{alice, alan, bob, lim, registrytest.SM} {
		r.sub(r.f.Asker(g), all(mad.AllTraps))
	}
	r.tell(about(64, 0x777, tenantA, 0x7fff))
	r.expect("a port of the first tenant", "64 to 101", "64 to 102", "64 to 301", "64 to 5a")
	r.tell(about(64, 0x777, tenantA.Limited(), 0x7fff))
	r.expect("a limited member", "64 to 101", "64 to 102", "64 to 5a")
	r.tell(about(64, 0x777))
	r.expect("a port of no partition")
	r.tell(group(66, tenantB))
	r.expect("a group of the second tenant", "66 to 201")
	r.tell(group(67, 0x7fff))
	r.expect("a group of the default partition", "67 to 101", "67 to 102", "67 to 201", "67 to 301", "67 to 5a")
	trap := mad.Notice{NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeUrgent, ProducerType: mad.ProducerCA, TrapNumber: 129, IssuerLID: 0x102}}
	r.take(r.Forward(r.now, &trap))
	r.expect("a trap of a device", "129 to 101", "129 to 102", "129 to 301", "129 to 5a")
	trap.IssuerLID = 0x999
	r.take(r.Forward(r.now, &trap))
	r.expect("a trap of nobody")
}

// TestWhatMatches: one field of a subscription each.
func TestWhatMatches(t *testing.T) {
	trap := mad.Notice{NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeUrgent, ProducerType: mad.ProducerCA, TrapNumber: 129, IssuerLID: 0x102}}
	for _, tt := range []struct {
		name   string
		change func(*mad.InformInfo)
		want   bool
	}{
		{"as it is", func(*mad.InformInfo) {}, true},
		{"all traps", func(i *mad.InformInfo) { i.TrapNumber = mad.AllTraps }, true},
		{"another trap", func(i *mad.InformInfo) { i.TrapNumber = 130 }, false},
		{"its LID", func(i *mad.InformInfo) { i.LIDRangeBegin = 0x102 }, true},
		{"its LID in a range", func(i *mad.InformInfo) { i.LIDRangeBegin, i.LIDRangeEnd = 0x101, 0x102 }, true},
		{"another LID", func(i *mad.InformInfo) { i.LIDRangeBegin = 0x101 }, false},
		{"its GID", func(i *mad.InformInfo) { i.GID = ib.MakeGID(ib.DefaultPrefix, alan) }, true},
		{"its GID, whatever the LIDs", func(i *mad.InformInfo) { i.GID, i.LIDRangeBegin = ib.MakeGID(ib.DefaultPrefix, alan), 0x101 }, true},
		{"another GID", func(i *mad.InformInfo) { i.GID = ib.MakeGID(ib.DefaultPrefix, alice) }, false},
		{"its type", func(i *mad.InformInfo) { i.Type = 1 }, true},
		{"another type", func(i *mad.InformInfo) { i.Type = 3 }, false},
		{"its producer", func(i *mad.InformInfo) { i.ProducerType = 1 }, true},
		{"another producer", func(i *mad.InformInfo) { i.ProducerType = 2 }, false},
		{"vendors'", func(i *mad.InformInfo) { i.IsGeneric = 0 }, false},
	} {
		r := newRig(t, inform.Config{})
		info := all(129)
		tt.change(&info)
		r.sub(r.f.Asker(alice), info)
		r.take(r.Forward(r.now, &trap))
		if got := len(r.answer()) == 1; got != tt.want {
			t.Errorf("%s: told %v", tt.name, got)
		}
	}
}

// T70: traps of security, by name and through the wildcard.
func TestT70SecurityTraps(t *testing.T) {
	r := newRig(t, inform.Config{})
	vendors := all(mad.AllTraps)
	vendors.IsGeneric = 0
	for _, g := range []ib.GUID{alice, alan} {
		r.sub(r.f.Asker(g), all(mad.AllTraps))
		r.sub(r.f.Asker(g), vendors)
	}
	r.sub(r.f.Trusted(registrytest.SM), all(257))
	r.sub(r.f.Trusted(registrytest.SM), vendors)
	for n := mad.TrapNum(256); n <= 259; n++ {
		trap := mad.Notice{NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, ProducerType: mad.ProducerCA, TrapNumber: n, IssuerLID: 0x102}}
		r.take(r.Forward(r.now, &trap))
	}
	r.expect("traps of security", "257 to 5a")
	for _, n := range []uint16{1300, 1257, 1144} {
		trap := mad.Notice{NoticeHeader: mad.NoticeHeader{Type: mad.NoticeSecurity, ProducerType: mad.OUINVIDIA, IssuerLID: 0x102}}
		trap.DataDetails[52], trap.DataDetails[53] = byte(n>>8), byte(n)
		r.take(r.Forward(r.now, &trap))
	}
	r.expect("notices of a vendor", "0 to 5a", "0 to 5a", "0 to 5a", "0 to 101", "0 to 102")

	// A host that subscribes again without the key is no longer trusted.
	r.sub(r.f.Asker(registrytest.SM), vendors)
	trap := mad.Notice{NoticeHeader: mad.NoticeHeader{ProducerType: mad.OUINVIDIA, IssuerLID: 0x102}}
	r.take(r.Forward(r.now, &trap))
	r.expect("after the trust is gone")
}

// TestNoMKeyIsForwarded: trap 256 has the key that was tried, which may be right
// elsewhere.
func TestNoMKeyIsForwarded(t *testing.T) {
	r := newRig(t, inform.Config{})
	r.sub(r.f.Trusted(registrytest.SM), all(256))
	bad := mad.Trap256{NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: 256, IssuerLID: 0x102}, LID: 0x101, MKey: ib.NewMKey(0x1122334455667788), DRHopCount: 3}
	var raw [64]byte
	if err := mad.Encode(raw[:], &bad); err != nil {
		t.Fatal(err)
	}
	var n mad.Notice
	if err := mad.Decode(raw[:], &n); err != nil {
		t.Fatal(err)
	}
	r.take(r.Forward(r.now, &n))
	var got mad.Trap256
	if err := mad.Decode(r.wire[0].MAD.SAData(), &got); err != nil || !got.MKey.IsZero() || got.LID != 0x101 || got.DRHopCount != 3 {
		t.Errorf("forwarded %+v: %v", got, err)
	}
}

// T76, T69: a port that appears or disappears is reported once to each port that could communicate with it.
func TestT76PortsComeAndGo(t *testing.T) {
	r := newRig(t, inform.Config{})
	for _, g := range []ib.GUID{alan, bob, registrytest.SM} {
		r.sub(r.f.Asker(g), all(64))
		r.sub(r.f.Asker(g), all(65))
	}
	r.expect("at a start")
	whole := r.f
	r.move(whole.Without(alice))
	r.expect("a port goes", "65 to 102", "65 to 102", "65 to 5a", "65 to 5a") // with its alias
	bare := whole.With(alice, func(e *portindex.EndPort) { e.PKeys, e.Aliases = nil, nil })
	bare.Busy = true
	r.move(bare)
	r.expect("it comes, nothing is known of it")
	def := bare.With(alice, func(e *portindex.EndPort) { e.PKeys = []ib.PKey{0x7fff} })
	r.move(def)
	r.expect("it comes into the default partition", "64 to 5a")
	r.move(def.With(alice, func(e *portindex.EndPort) { e.PKeys = []ib.PKey{tenantA, 0x7fff} }))
	r.expect("it is given to a tenant", "64 to 102")
	r.move(whole)
	r.expect("its alias comes", "64 to 102", "64 to 5a")
	doubt := whole.With(alice, func(e *portindex.EndPort) { e.PKeys = []ib.PKey{0x7fff} })
	doubt.Busy, doubt.Doubt[alice] = true, true
	r.move(doubt)
	r.expect("tables are read again")
	sure := doubt.Clone()
	sure.Busy = false
	r.move(sure)
	r.expect("it has left its tenant", "65 to 102", "65 to 102")
	r.move(sure.With(alice, func(e *portindex.EndPort) { e.PKeys = []ib.PKey{tenantB, 0x7fff} }))
	r.expect("it is another's now", "64 to 201", "64 to 201")
	r.move(r.f.Without(alice))
	r.expect("it goes", "65 to 201", "65 to 201", "65 to 5a", "65 to 5a")
}

// TestReports: one under way for a subscription, tried again, and given up.
func TestReports(t *testing.T) {
	r := newRig(t, inform.Config{Timeout: time.Second, Tries: 3})
	info := all(64)
	info.RespTimeValue = 31 // longer than the registry waits for any port
	r.sub(r.f.Asker(alice), all(64))
	r.sub(r.f.Asker(bob), info)
	r.tell(about(64, 1, 0xFFFF), about(64, 2, 0xFFFF))
	if len(r.wire) != 2 {
		t.Fatalf("%d on the wire", len(r.wire))
	}
	first := r.wire[0]
	if first.MAD.TID() == 0 || first.MAD.TID()>>32 != 0 || first.To.LID != 0x101 {
		t.Errorf("TID %v to %v", first.MAD.TID(), first.To.LID)
	}
	r.who()
	r.wait(time.Second)
	if len(r.wire) != 1 || r.wire[0].MAD.TID() != first.MAD.TID() {
		t.Fatalf("after a timeout: %q", r.who())
	}
	r.who()

	// Only the subscriber answers, with the right id.
	resp := first.MAD
	resp.SetMethod(mad.MethodReportResp)
	wrong := resp
	wrong.SetTID(999)
	r.take(r.Take(r.now, 0x101, &wrong))
	r.take(r.Take(r.now, 0x201, &resp))
	r.take(r.Take(r.now, 0x101, &first.MAD))
	if len(r.wire) != 0 || r.Stats().OnWire != 2 {
		t.Fatalf("a wrong answer counts: %q", r.who())
	}
	r.take(r.Take(r.now, 0x101, &resp))
	if len(r.wire) != 1 || r.wire[0].MAD.TID() == first.MAD.TID() {
		t.Fatalf("after the answer: %q", r.who())
	}
	r.take(r.Take(r.now, 0x101, &resp)) // again
	if s := r.Stats(); s.Answered != 1 || s.Sent != 3 || s.Resent != 1 {
		t.Errorf("stats %+v", s)
	}
	r.who()
	for range 2 {
		r.wait(time.Second)
	}
	e := r.wait(time.Second)
	if len(e.Events) != 1 || e.Events[0].Kind != inform.Failed || e.Events[0].Port != alice {
		t.Errorf("given up: %v", e.Events)
	}
	if r.Now().Len() != 2 {
		t.Error("a subscription went")
	}
	r.who()
	r.tell(about(64, 3, 0xFFFF))
	if got := r.who(); len(got) != 1 {
		t.Errorf("the next report: %q", got)
	}
	if e := r.wait(time.Second); len(e.Events)+len(r.wire) > 0 {
		t.Errorf("who did not answer is tried once: %v %q", e.Events, r.who())
	}
	for range 40 {
		r.wait(time.Second)
	}
	if s := r.Stats(); s.OnWire != 0 || s.Queued != 0 || !r.Next().IsZero() {
		t.Errorf("left: %+v, next %v", s, r.Next())
	}
}

func TestDropOnFail(t *testing.T) {
	r := newRig(t, inform.Config{DropOnFail: true, Tries: 1})
	r.sub(r.f.Asker(alice), all(64))
	r.tell(about(64, 1, 0xFFFF), about(64, 2, 0xFFFF))
	e := r.wait(time.Second)
	if len(e.Events) != 1 || e.Events[0].Kind != inform.Dropped || r.Now().Len() != 0 || len(r.saved) != 0 || r.Stats().Queued != 0 {
		t.Errorf("%v, %d left", e.Events, r.Now().Len())
	}
}

// TestBounds: waiting and sent reports are bounded, and ports take turns.
func TestBounds(t *testing.T) {
	r := newRig(t, inform.Config{MaxOnWire: 3, PerPort: 2, PerQueue: 5, MaxQueued: 16})
	for qp := uint32(1); qp <= 4; qp++ {
		for _, g := range []ib.GUID{alice, bob} {
			a := r.f.Asker(g)
			a.QP = qp
			r.sub(a, all(64))
		}
	}
	for i := range ib.GUID(10) {
		r.tell(about(64, i+1, 0xFFFF))
	}
	if s := r.Stats(); s.OnWire != 3 || s.Queued != 8 || s.Dropped != 72 {
		t.Errorf("stats %+v", s)
	}
	if got := r.who(); !slices.Equal(got, []string{"64 to 101", "64 to 201", "64 to 101"}) && !slices.Equal(got, []string{"64 to 201", "64 to 101", "64 to 201"}) {
		t.Errorf("on the wire %q", got)
	}
	for range 400 {
		r.wait(time.Second)
	}
	if s := r.Stats(); s.OnWire+s.Queued != 0 {
		t.Errorf("left %+v", s)
	}
}

// TestWhoIsMuteKeepsNobodyWaiting: hosts that never answer fill neither the wire nor the
// queues of others.
func TestWhoIsMuteKeepsNobodyWaiting(t *testing.T) {
	r := newRig(t, inform.Config{MaxOnWire: 16, MaxQueued: 1000, Tries: 2})
	f := r.f.Clone()
	for i := range ib.GUID(100) {
		f.Add(0x3000+i, tenantA)
	}
	r.move(f)
	for i := range ib.GUID(100) {
		for qp := uint32(1); qp <= 8; qp++ {
			a := r.f.Asker(0x3000 + i)
			a.QP = qp
			r.sub(a, all(64))
		}
	}
	for i := range 40 {
		r.tell(about(64, ib.GUID(i+1), tenantA))
	}
	for range 200 { // all are known to be mute now
		r.wait(time.Second)
		r.wire = nil
	}
	r.sub(r.f.Asker(alan), all(64))
	for i := range 20 {
		r.tell(about(64, ib.GUID(i+1), tenantA))
	}
	if s := r.Stats(); s.Queued >= 1000 {
		t.Errorf("queues are full: %+v", s)
	}
	answered := 0
	for range 3 {
		packets := r.wire
		r.wire = nil
		for i := range packets {
			if packets[i].To.LID == 0x102 {
				m := packets[i].MAD
				m.SetMethod(mad.MethodReportResp)
				r.take(r.Take(r.now, 0x102, &m))
				answered++
			}
		}
	}
	if answered != 3 {
		t.Errorf("%d reports to who answers came at once, want one after the other", answered)
	}
}

// TestPortsOfSubscribers: a subscriber that is gone is waited for, and found where it
// is.
func TestPortsOfSubscribers(t *testing.T) {
	r := newRig(t, inform.Config{Linger: time.Minute})
	r.sub(r.f.Asker(alice), all(66))
	whole := r.f
	r.move(whole.Without(alice))
	r.tell(group(66, tenantA))
	r.expect("who is gone is told nothing")
	if got := r.Next(); !got.Equal(start.Add(time.Minute)) {
		t.Errorf("next %v", got)
	}
	r.wait(59 * time.Second)
	r.move(whole.With(alice, func(e *portindex.EndPort) { e.LID = 0x777 }))
	r.wait(time.Hour)
	r.tell(group(66, tenantA))
	r.expect("it is back with another LID", "66 to 777")
	r.move(whole.Without(alice))
	e := r.wait(time.Minute)
	if len(e.Events) != 1 || e.Events[0].Reason != inform.PortGone || r.Now().Len() != 0 {
		t.Errorf("gone for good: %v", e.Events)
	}
	now := newRig(t, inform.Config{Linger: -1})
	now.sub(now.f.Asker(alice), all(66))
	if e := now.move(whole.Without(alice)); len(e.Events) != 1 || now.Now().Len() != 0 {
		t.Errorf("without lingering: %v", e.Events)
	}
}

// T65: one subscription too many.
func TestT65OneSubscriptionTooMany(t *testing.T) {
	opts := trust.DefaultOptions()
	r := newRig(t, inform.Config{Trust: opts, Limits: trust.NewLimits()})
	for i := range opts.MaxSubscriptions {
		r.sub(r.f.Asker(alice), all(mad.TrapNum(i)))
	}
	if ans := r.set(r.f.Asker(alice), all(1000)); ans.Verdict != trust.TooManySubscriptions || ans.Verdict.Notice() != 1305 || len(ans.Save) > 0 {
		t.Errorf("%+v", ans)
	}
	r.sub(r.f.Asker(alice), all(0)) // again
	r.sub(r.f.Asker(alan), all(1000))
	if ans := r.set(portindex.Asker{Port: -1}, all(64)); ans.Verdict != trust.UnknownSource {
		t.Errorf("from nowhere: %v", ans.Verdict)
	}
	few := newRig(t, inform.Config{MaxRecords: 1})
	few.sub(few.f.Asker(alice), all(64))
	if ans := few.set(few.f.Asker(alan), all(64)); ans.Status != mad.StatusNoResources {
		t.Errorf("more than all may have: %v", ans.Status)
	}
}

func TestQueries(t *testing.T) {
	r := newRig(t, inform.Config{})
	r.sub(r.f.Asker(alice), all(64))
	r.sub(r.f.Asker(alice), all(65))
	r.sub(r.f.Asker(bob), all(64))
	ask := func(a portindex.Asker, mask mad.ComponentMask, rec mad.InformInfoRecord) (out []string) {
		q := r.Now().Query(r.f, a, ib.DefaultPrefix, &rec, mask)
		buf := make([]byte, mad.RecordSize(mad.AttrInformInfoRecord))
		for {
			n, ok := registrytest.Next(&q, buf)
			if !ok {
				return out
			}
			var got mad.InformInfoRecord
			if err := mad.Decode(buf[:n], &got); err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%x.%d %d qp %d", uint64(got.SubscriberGID.GUID()), got.Enum, uint16(got.TrapNumber), got.QPN))
		}
	}
	for _, tt := range []struct {
		name  string
		asker portindex.Asker
		mask  mad.ComponentMask
		rec   mad.InformInfoRecord
		want  []string
	}{
		{"trusted", r.f.Trusted(alan), 0, mad.InformInfoRecord{}, []string{"101.0 64 qp 1", "101.1 65 qp 1", "201.0 64 qp 1"}},
		{"untrusted", r.f.Asker(alan), 0, mad.InformInfoRecord{}, []string{"101.0 64 qp 0", "101.1 65 qp 0"}},
		{"by GID", r.f.Trusted(alan), mad.InformInfoComponentSubscriberGID, mad.InformInfoRecord{SubscriberGID: ib.MakeGID(ib.DefaultPrefix, bob)}, []string{"201.0 64 qp 1"}},
		{"by number", r.f.Trusted(alan), mad.InformInfoComponentEnum, mad.InformInfoRecord{Enum: 1}, []string{"101.1 65 qp 1"}},
		{"by trap", r.f.Trusted(alan), mad.InformInfoComponentTrapNumber, mad.InformInfoRecord{InformInfo: mad.InformInfo{TrapNumber: 64}}, []string{"101.0 64 qp 1", "201.0 64 qp 1"}},
		{"by queue pair, untrusted", r.f.Asker(alan), mad.InformInfoComponentQPN, mad.InformInfoRecord{InformInfo: mad.InformInfo{QPN: 1}}, nil},
	} {
		if got := ask(tt.asker, tt.mask, tt.rec); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestRestart: a restart restores the subscriptions, and reports nothing about ports that were there before.
func TestRestart(t *testing.T) {
	r := newRig(t, inform.Config{})
	a := r.f.Trusted(alice)
	info := all(mad.AllTraps)
	ans := r.Set(a, inform.Address{LID: a.LID, QP: a.QP, PKeyIndex: 3, SL: 2, PathBits: 1, GRH: true, GIDIndex: 1, HopLimit: 9, TrafficClass: 4, FlowLabel: 77, GID: ib.GID{1: 2}}, &info)
	r.take(ans.Effects)
	r.sub(r.f.Asker(bob), all(64))
	r.sub(r.f.Asker(lim), all(64))
	bad := []sm.Fact{{Kind: sm.FactSASubscription, Name: "x", Body: "01"}, {Kind: sm.FactSASubscription, Name: "y", Body: strings.Repeat("01", 80)}}
	fresh := &rig{t: t, Registry: inform.New(inform.Config{}), now: start, saved: maps.Clone(r.saved)}
	facts := slices.Collect(maps.Values(r.saved))
	if e := fresh.Restore(append(facts, bad...)); len(e.Save) != len(bad) || len(e.Events) != len(bad) {
		t.Errorf("taken back %v", e.Save)
	}
	same(t, r.Now(), fresh.Now())
	part := r.f.Without(bob).Without(lim)
	part.Busy = true
	fresh.move(part)
	fresh.wait(time.Hour)
	same(t, r.Now(), fresh.Now()) // not all is found yet
	fresh.move(r.f.Without(lim))
	fresh.expect("a port is found", "64 to 101", "64 to 201")
	fresh.wait(time.Hour)
	if n := fresh.Now().Len(); n != 2 {
		t.Errorf("%d subscriptions when all is known", n)
	}
}

func same(t *testing.T, a, b inform.Snapshot) {
	t.Helper()
	list := func(s inform.Snapshot) (out []inform.Subscription) {
		for x := range s.All {
			out = append(out, *x)
		}
		return out
	}
	if x, y := list(a), list(b); !slices.Equal(x, y) {
		t.Fatalf("subscriptions %+v, restored %+v", x, y)
	}
}

// TestRandomly subscribes, unsubscribes, sends notices, answers or not, moves ports and lets time pass. In the end no
// report is left.
func TestRandomly(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 2))
		r := newRig(t, inform.Config{MaxOnWire: 5, PerPort: 2, PerQueue: 4, DropOnFail: seed%2 == 0, Linger: 3 * time.Second})
		whole := r.f
		ports := []ib.GUID{alice, alan, bob, lim}
		for range 800 {
			port := ports[rng.IntN(len(ports))]
			switch rng.IntN(10) {
			case 0:
				r.move(r.f.Without(port))
			case 1:
				r.move(whole.Clone())
			case 2, 3:
				r.wait(time.Duration(rng.IntN(1500)) * time.Millisecond)
			case 4, 5:
				r.tell(about(64, ib.GUID(rng.IntN(9)+1), []ib.PKey{tenantA, tenantB, 0x7fff, 0xFFFF}[rng.IntN(4)]))
			case 6:
				if rng.IntN(3) > 0 {
					r.answer()
				}
				r.wire = nil
			default:
				if r.f.Ports[port] == nil {
					continue
				}
				a, info := r.f.Asker(port), all([]mad.TrapNum{64, 65, mad.AllTraps}[rng.IntN(3)])
				a.QP = uint32(1 + rng.IntN(2))
				if rng.IntN(3) == 0 {
					info = end(info, a.QP)
				}
				r.set(a, info)
			}
			if s := r.Stats(); s.OnWire > 5 || s.Queued > 4*r.Now().Len() || len(r.saved) != r.Now().Len() {
				t.Fatalf("stats %+v, %d subscriptions, %d facts", s, r.Now().Len(), len(r.saved))
			}
			fresh := inform.New(inform.Config{})
			fresh.Restore(slices.Collect(maps.Values(r.saved)))
			same(t, r.Now(), fresh.Now())
		}
		for range 300 {
			r.wait(time.Second)
		}
		if s := r.Stats(); s.OnWire+s.Queued != 0 || !r.Next().IsZero() {
			t.Errorf("does not come to rest: %+v, next %v", s, r.Next())
		}
	}
}

// TestFanOutByTrap: subscriptions to other traps cost a notice nothing.
func TestFanOutByTrap(t *testing.T) {
	r := newRig(t, inform.Config{})
	for qp := range uint32(5000) {
		a := r.f.Asker(alice)
		a.QP = qp
		r.sub(a, all(65))
	}
	n := about(66, 1, tenantA)
	if allocs := testing.AllocsPerRun(50, func() { r.Report(r.now, n) }); allocs > 5 {
		t.Errorf("%v allocations for a notice that nobody wants", allocs)
	}
	if s := r.Stats(); s.Sent+s.Dropped != 0 {
		t.Errorf("stats %+v", s)
	}
}

// FuzzInformInfo: every request is answered, and restored as it was.
func FuzzInformInfo(f *testing.F) {
	var seed [36]byte
	i := all(64)
	if err := mad.Encode(seed[:], &i); err != nil {
		f.Fatal(err)
	}
	f.Add(seed[:], uint8(0))
	f.Add(make([]byte, 36), uint8(0x80))
	f.Fuzz(func(t *testing.T, raw []byte, who uint8) {
		var info mad.InformInfo
		if mad.Decode(raw, &info) != nil {
			return
		}
		r := newRig(t, inform.Config{})
		a := r.f.Asker([]ib.GUID{alice, alan, bob, lim}[who%4])
		a.Trusted = who&0x80 != 0
		ans := r.set(a, info)
		if made := r.Now().Len() == 1; made != (ans.Status == mad.StatusOK && info.Subscribe == 1) {
			t.Fatalf("%+v", ans)
		}
		r.tell(about(64, 1, tenantA), group(66, tenantB))
		r.answer()
		fresh := inform.New(inform.Config{})
		fresh.Restore(slices.Collect(maps.Values(r.saved)))
		same(t, r.Now(), fresh.Now())
		if ans.Status == mad.StatusOK && info.Subscribe == 1 {
			if ans := r.set(a, end(info, a.QP)); ans.Status != mad.StatusOK || r.Now().Len() != 0 {
				t.Fatalf("ended: %+v", ans)
			}
		}
	})
}
