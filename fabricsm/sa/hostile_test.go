package sa_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// now is the time of the stage.
func (r *rig) now() time.Time { return testbed.Epoch.Add(r.Now()) }

// hand passes a packet directly to subnet administration, bypassing the fabric, because no host could send it there. It
// returns the output.
func (r *rig) hand(now time.Time, p *transport.Packet) *sa.Output {
	var out sa.Output
	r.Administration().Take(now, p, &out)
	return &out
}

// request makes a request of a host.
func (r *rig) request(from string, method mad.Method, attr mad.AttrID, mask mad.ComponentMask, fill func([]byte)) *transport.Packet {
	r.tid++
	p := &transport.Packet{LID: r.lid(from), QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, TID: r.tid, Attr: attr})
	p.MAD.SetComponentMask(mask)
	if fill != nil {
		fill(p.MAD.SAData())
	}
	return p
}

func (r *rig) lid(host string) ib.LID {
	guid := r.GUID(host, 1)
	f := r.View().Fabric
	for _, id := range f.EndPorts() {
		if f.Port(id).GUID == guid {
			return f.Port(id).LID
		}
	}
	r.t.Fatalf("%s has no LID", host)
	return 0
}

// A host that joins and leaves in a loop makes others wait for the store only for as long
// as its allowance lasts; then it is not heard, and others are.
func TestChurnIsBounded(t *testing.T) {
	r := newRig(t, nil)
	r.Grant(r.GrantOf("h1", 1, 0x8001), r.GrantOf("h2", 1, 0x8001))
	r.settle()
	mgid := ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}
	now := r.now()
	saved, answered := 0, 0
	churn := func(host string, times int) {
		mask, fill := join(mgid, r.GUID(host, 1), 0x8001)
		for i := range times {
			method := mad.MethodSet
			if i%2 == 1 {
				method = mad.MethodDelete
			}
			out := r.hand(now, r.request(host, method, mad.AttrMCMemberRecord, mask, fill))
			saved += len(out.Save)
			answered += len(out.Held) + len(out.Send)
		}
	}
	churn("h1", 4000)
	if most := sa.DefaultConfig().Limiter.Changes.Burst; saved > most+4 || saved < most {
		t.Errorf("%d facts are saved, the allowance is %d", saved, most)
	}
	if n := r.Administration().Stats().Refused[trust.TooOften]; n == 0 || n+uint64(answered) != 4000 {
		t.Errorf("%d of 4000 are dropped for it, %d answered", n, answered)
	}
	saved, answered, mgid[15] = 0, 0, 1
	if churn("h2", 2); answered != 2 || saved == 0 {
		t.Errorf("another host: %d answers, %d facts", answered, saved)
	}
	saved, answered, mgid[15] = 0, 0, 0
	now = now.Add(time.Second)
	if churn("h1", 200); saved < 100 || saved > 110 {
		t.Errorf("a second later %d facts are saved, the allowance is 100", saved)
	}
}

// A host that registers the same again, as after a failover, changes nothing and gets an answer.
func TestRegisteringAgainCostsNothing(t *testing.T) {
	r := newRig(t, nil)
	r.Grant(r.GrantOf("h1", 1, 0x8001))
	r.settle()
	now := r.now()
	mask, fill := join(ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}, r.GUID("h1", 1), 0x8001)
	for i := range 3000 {
		out := r.hand(now, r.request("h1", mad.MethodSet, mad.AttrMCMemberRecord, mask, fill))
		if len(out.Held) != 1 || i > 0 && len(out.Save) > 0 {
			t.Fatalf("join %d: %d answers, %d facts", i, len(out.Held), len(out.Save))
		}
	}
}

// A subscription to a range of LIDs costs the requester as much as looking at records. After too many the node gets no
// answer for a while.
func TestRangesOfLIDsCost(t *testing.T) {
	r := newRig(t, func(c *sa.Config) {
		c.Limiter.Work.Node = limiter.Allowance{Rate: 1, Burst: 20}
	})
	r.Grant(r.GrantOf("h1", 1, 0x8001), r.GrantOf("h2", 1, 0x8001))
	r.settle()
	info := mad.InformInfo{LIDRangeBegin: 1, LIDRangeEnd: 0xBFFF, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers}
	now := r.now()
	set := func(first ib.LID) int {
		info.LIDRangeBegin = first
		return len(r.hand(now, r.request("h1", mad.MethodSet, mad.AttrInformInfo, 0, func(b []byte) { _ = mad.Encode(b, &info) })).Held)
	}
	answered := 0
	for range 100 {
		answered += set(r.lid("h1"))
	}
	if answered < 5 || answered > 20 {
		t.Errorf("%d ranges are looked at, for 20 looks", answered)
	}
	if now = now.Add(30 * time.Second); set(r.lid("h1")) != 1 {
		t.Error("half a minute later it is not heard")
	}
}

// RMPP packets that begin no transaction are not answered, with any version, type or key: the guard has not checked them.
func TestNoAnswerPastTheGuard(t *testing.T) {
	r := newRig(t, nil)
	for _, y := range []mad.RMPPType{0, mad.RMPPData, mad.RMPPAck, mad.RMPPStop, mad.RMPPAbort, 5, 255} {
		for _, version := range []uint8{0, mad.RMPPVersion, 2} {
			for _, method := range []mad.Method{mad.MethodGetMulti, mad.MethodGetMulti.Response(), mad.MethodGetTable, mad.MethodGetTable.Response()} {
				for _, key := range []uint64{0, 77} {
					p := r.request("h1", method, mad.AttrMultiPathRecord, 0, nil)
					p.MAD.SetSAKey(ib.NewSAKey(key))
					p.MAD.SetRMPPHeader(mad.RMPPHeader{Version: version, Type: y, Flags: mad.RMPPActive | mad.RMPPFirst | mad.RMPPLast, Data1: 1, Data2: 20})
					if out := r.hand(r.now(), p); len(out.Send)+len(out.Held) > 0 {
						t.Errorf("type %v version %d of %v, key %#x: %v", y, version, method, key, out.Send[0].MAD.RMPPType())
					}
				}
			}
		}
	}
}

// A queue pair number has 24 bits. A larger one must not create a fact that cannot be saved.
func TestImpossibleQueuePair(t *testing.T) {
	r := newRig(t, nil)
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers}
	for _, qp := range []uint32{1, 1<<24 - 1, 1 << 24, 1<<32 - 1} {
		p := r.request("h1", mad.MethodSet, mad.AttrInformInfo, 0, func(b []byte) { _ = mad.Encode(b, &info) })
		p.QP = qp
		out := r.hand(r.now(), p)
		if ok := len(out.Save) == 1 && len(out.Held) == 1; ok != (qp < 1<<24) {
			t.Errorf("QP %#x: %d facts, %d answers", qp, len(out.Save), len(out.Held))
		}
		for _, f := range out.Save {
			if f.Kind != sm.FactSASubscription {
				t.Errorf("QP %#x: a fact of kind %q", qp, f.Kind)
			}
		}
	}
}

// A manager that is no longer master changes no saved fact. Another manager may have renewed a registration that looks
// expired here.
func TestNothingExpiresUnderAnotherMaster(t *testing.T) {
	r := newRig(t, nil)
	rec := mad.ServiceRecord{ServiceID: 7, ServiceGID: ib.MakeGID(ib.DefaultPrefix, r.GUID("h1", 1)), ServiceLease: 10}
	mask := mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID | mad.ServiceComponentServiceLease
	if m := r.one("h1", ib.SAKey{}, mad.MethodSet, mad.AttrServiceRecord, mask, func(b []byte) { _ = mad.Encode(b, &rec) }); m.Status() != mad.StatusOK {
		t.Fatal(m.Status())
	}
	a := r.Administration()
	v := *r.View()
	v.State = ib.SMStandby
	var out sa.Output
	a.Look(r.now(), a.Sight(nil, &v), &out)
	later := r.now().Add(time.Minute)
	if next := a.Next(); !next.IsZero() && next.Before(later) {
		t.Errorf("it has something to do at %v", next)
	}
	if a.Expire(later, &out); len(out.Save) > 0 {
		t.Errorf("it saves %v", out.Save)
	}
	a.Look(later, a.Sight(nil, r.View()), &out)
	if a.Expire(later, &out); len(out.Save) != 1 {
		t.Errorf("as master it saves %d facts, want that the lease is over", len(out.Save))
	}
}

// everything subscribes a host to all traps that it may get.
func (r *rig) everything(host string, key ib.SAKey) {
	r.t.Helper()
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers}
	if m := r.one(host, key, mad.MethodSet, mad.AttrInformInfo, 0, func(b []byte) { _ = mad.Encode(b, &info) }); m.Status() != mad.StatusOK {
		r.t.Fatalf("%s subscribes: %v", host, m.Status())
	}
}

// trap makes a host raise a trap, and returns the number of subscribers that get it.
func (r *rig) trap(host string, number mad.TrapNum) int {
	n := mad.Notice{NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, ProducerType: 1, TrapNumber: number, IssuerLID: r.lid(host)}}
	var out sa.Output
	r.Administration().Forward(r.now(), n.IssuerLID, &n, &out)
	return len(out.Held)
}

// T73: an attacker subscribes with a stolen SA_Key. It gets the notices for trusted subscribers until that key is retired,
// and no longer. A restart does not change that.
func TestTrustEndsWithItsKey(t *testing.T) {
	r := newRig(t, func(c *sa.Config) {
		c.Key, c.Source = ib.SAKey{}, keys.Random{Reader: rand.NewChaCha8([32]byte{3})}
		c.Trust.KeyPeriod, c.Trust.KeyGrace = time.Hour, 10*time.Minute
	})
	first := r.Administration().SAKey()
	r.everything("h1", first)
	r.Run(time.Hour + time.Minute)
	r.everything("h2", r.Administration().SAKey())
	if n := r.trap("h5", mad.TrapBadPKey); n != 2 {
		t.Fatalf("within the grace %d are told, want both", n)
	}
	r.Run(15 * time.Minute)
	if n := r.trap("h5", mad.TrapBadPKey); n != 1 {
		t.Errorf("after the grace %d are told, want who has the key of now", n)
	}
	r.Start()
	r.Want(sm.Intent{Revision: 2})
	r.settle()
	if n := r.trap("h5", mad.TrapBadPKey); n != 1 {
		t.Errorf("after a restart %d are told", n)
	}
}

// Only subnet administration reports that a GID or group appeared or disappeared. A host that raises such a trap would make
// its neighbours drop their connections to others.
func TestHostsDoNotTellOfOthers(t *testing.T) {
	r := newRig(t, nil)
	r.Grant(r.GrantOf("h1", 1, 0x8001), r.GrantOf("h2", 1, 0x8001))
	r.settle()
	r.everything("h2", ib.SAKey{})
	for _, number := range []mad.TrapNum{mad.TrapGIDInService, mad.TrapGIDOutOfService, mad.TrapMulticastCreated, mad.TrapMulticastDeleted, 68, 69} {
		if n := r.trap("h1", number); n != 0 {
			t.Errorf("trap %d is told to %d", number, n)
		}
	}
	if n := r.trap("h1", 144); n != 1 {
		t.Errorf("what a device may tell of is told to %d", n)
	}
}

// A report that waits for its answer is not sent again to a host that has left the partition meanwhile.
func TestReportsEndWithMembership(t *testing.T) {
	r := newRig(t, nil)
	one, five := r.GrantOf("h1", 1, 0x8001), r.GrantOf("h5", 1, 0x8001)
	r.Grant(one, five)
	r.settle()
	r.everything("h5", ib.SAKey{})
	mask, fill := join(ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}, r.GUID("h1", 1), 0x8001)
	if m := r.one("h1", ib.SAKey{}, mad.MethodSet, mad.AttrMCMemberRecord, mask, fill); m.Status() != mad.StatusOK {
		t.Fatal(m.Status())
	}
	count := func() (n int) {
		for _, p := range r.host("h5").Take(nil) {
			if p.MAD.Method() == mad.MethodReport && !p.Undelivered {
				n++
			}
		}
		return n
	}
	r.Run(1500 * time.Millisecond)
	if n := count(); n != 2 {
		t.Fatalf("%d reports, want one and its repetition", n)
	}
	r.Withdraw(five)
	r.settle()
	count()
	if r.Run(10 * time.Second); count() > 0 {
		t.Error("it is told of a partition that it was put out of")
	}
}

// All tenants are limited members of the default partition. A tenant must not create a group there that other tenants would
// find or get notices of.
func TestTenantsDoNotMeetInTheDefaultPartition(t *testing.T) {
	r := newRig(t, func(c *sa.Config) { c.Fixed = []group.Fixed{group.IPoIB(0xFFFF, 2)} })
	mgid := ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}
	joins := func(key ib.SAKey, mgid ib.GID) mad.Status {
		mask, fill := join(mgid, r.GUID("h1", 1), 0xFFFF)
		return r.one("h1", key, mad.MethodSet, mad.AttrMCMemberRecord, mask, func(b []byte) {
			fill(b)
			if mgid[2] == 0x40 {
				binary.BigEndian.PutUint32(b[32:], group.IPoIBQKey)
			}
		}).Status()
	}
	if s := joins(ib.SAKey{}, mgid); s == mad.StatusOK {
		t.Error("a limited member of the default partition made a group there")
	}
	if s := joins(ib.SAKey{}, group.Broadcast(0xFFFF, 2)); s != mad.StatusOK {
		t.Errorf("it joins the broadcast group: %v", s)
	}
	ip := group.Broadcast(0xFFFF, 2)
	ip[15] = 1
	if s := joins(ib.SAKey{}, ip); s != mad.StatusOK {
		t.Errorf("it makes a group of IP beside it: %v", s)
	}
	if s := joins(saKey, mgid); s != mad.StatusOK {
		t.Errorf("who is trusted makes one: %v", s)
	}
}
