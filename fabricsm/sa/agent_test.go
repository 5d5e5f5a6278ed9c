package sa_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

var saKey = ib.NewSAKey(0x8f3ac91d27b6e504)

// rig is a fabric with subnet administration, and hosts that ask.
type rig struct {
	*testbed.Stage
	t     *testing.T
	hosts map[string]*sim.Station
	tid   ib.TID
}

func newRig(t *testing.T, change func(*sa.Config)) *rig {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	cfg := sa.DefaultConfig()
	cfg.Key = saKey
	if change != nil {
		change(&cfg)
	}
	s, err := testbed.New(testbed.Options{Netlist: l, SM: sm.DefaultConfig(), SA: &cfg, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Stage: s, t: t, hosts: make(map[string]*sim.Station), tid: 100}
	s.Start()
	s.Want(sm.Intent{Revision: 1})
	r.settle()
	return r
}

func (r *rig) settle() {
	r.t.Helper()
	if err := r.Settle(time.Minute); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) host(name string) *sim.Station {
	r.t.Helper()
	if r.hosts[name] == nil {
		h, err := r.Fabric.Station(name, true) // to be sent reports, too
		if err != nil {
			r.t.Fatal(err)
		}
		r.hosts[name] = h
	}
	return r.hosts[name]
}

// ask sends a request of a host and returns all answers.
func (r *rig) ask(from string, key ib.SAKey, method mad.Method, attr mad.AttrID, mask mad.ComponentMask, fill func([]byte)) []mad.MAD {
	r.t.Helper()
	r.tid++
	p := transport.Packet{LID: r.View().LID, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, TID: r.tid, Attr: attr})
	p.MAD.SetSAKey(key)
	p.MAD.SetComponentMask(mask)
	if fill != nil {
		fill(p.MAD.SAData())
	}
	h := r.host(from)
	h.Take(nil)
	h.Send(p)
	var got []mad.MAD
	for range 100 {
		r.Run(time.Millisecond)
		for _, a := range h.Take(nil) {
			if a.Undelivered {
				continue
			}
			got = append(got, a.MAD)
			if a.MAD.RMPPFlags().Has(mad.RMPPActive) && a.MAD.RMPPType() == mad.RMPPData {
				ack := a
				ack.MAD.SetMethod(a.MAD.Method() &^ 0x80) // that of the answer without the response bit
				ack.MAD.SetRMPPType(mad.RMPPAck)
				ack.MAD.SetRMPPFlags(mad.RMPPActive)
				ack.MAD.SetRMPPData2(a.MAD.RMPPData1() + 8)
				h.Send(ack)
			}
		}
	}
	return got
}

func (r *rig) one(from string, key ib.SAKey, method mad.Method, attr mad.AttrID, mask mad.ComponentMask, fill func([]byte)) *mad.MAD {
	r.t.Helper()
	got := r.ask(from, key, method, attr, mask, fill)
	if len(got) != 1 {
		r.t.Fatalf("%v of %v: %d answers, want one", method, attr, len(got))
	}
	return &got[0]
}

func TestClassPortInfoIsForEverybody(t *testing.T) {
	r := newRig(t, nil)
	m := r.one("h1", ib.SAKey{}, mad.MethodGet, mad.AttrClassPortInfo, 0, nil)
	var i mad.ClassPortInfo
	if err := mad.Decode(m.SAData(), &i); err != nil || m.Status() != mad.StatusOK || i.ClassVersion != 2 || i.RedirectQP != 1 {
		t.Errorf("got %v, %+v, %v", m.Status(), i, err)
	}
}

// A host that shows no key learns of no other node. A host that shows the key gets the whole table, in segments.
func TestNodeRecordsAreForTheTrusted(t *testing.T) {
	r := newRig(t, nil)
	if got := r.ask("h1", ib.SAKey{}, mad.MethodGetTable, mad.AttrNodeRecord, 0, nil); len(got) > 0 {
		t.Errorf("untrusted: %d answers", len(got))
	}
	if got := r.ask("h1", ib.NewSAKey(77), mad.MethodGetTable, mad.AttrNodeRecord, 0, nil); len(got) > 0 {
		t.Errorf("wrong key: %d answers", len(got))
	}
	data, err := rmpp.Reassemble(r.ask("h1", saKey, mad.MethodGetTable, mad.AttrNodeRecord, 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	if size := mad.RecordSize(mad.AttrNodeRecord); len(data) != size*len(r.List.Nodes) {
		t.Errorf("%d bytes of records of %d, the fabric has %d nodes", len(data), size, len(r.List.Nodes))
	}
}

func join(mgid ib.GID, port ib.GUID, pkey ib.PKey) (mad.ComponentMask, func([]byte)) {
	rec := mad.MCMemberRecord{MGID: mgid, PortGID: ib.MakeGID(ib.DefaultPrefix, port), JoinState: ib.FullMember, PKey: pkey, QKey: 0x1234}
	return mad.MCMemberCreate, func(b []byte) { _ = mad.Encode(b, &rec) }
}

// A group is visible to members of its partition and is programmed into switches. After a restart it still exists, without
// any new join.
func TestGroupSurvivesARestart(t *testing.T) {
	r := newRig(t, nil)
	r.Grant(r.GrantOf("h1", 1, 0x8001), r.GrantOf("h5", 1, 0x8001))
	r.settle()
	mgid := ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}
	for _, h := range []string{"h1", "h5"} {
		mask, fill := join(mgid, r.GUID(h, 1), 0x8001)
		if m := r.one(h, ib.SAKey{}, mad.MethodSet, mad.AttrMCMemberRecord, mask, fill); m.Status() != mad.StatusOK {
			t.Fatalf("%s joins: %v", h, m.Status())
		}
	}
	trees := func() int {
		r.settle()
		return len(r.View().Multicast.Trees)
	}
	if n := trees(); n != 1 {
		t.Fatalf("%d trees, want 1", n)
	}
	r.Start()
	r.Want(sm.Intent{Revision: 9, Grants: []sm.Grant{r.GrantOf("h1", 1, 0x8001), r.GrantOf("h5", 1, 0x8001)}})
	if n := trees(); n != 1 {
		t.Errorf("after a restart %d trees, want 1", n)
	}
	mask, fill := join(mgid, r.GUID("h2", 1), 0x8001)
	if m := r.one("h2", ib.SAKey{}, mad.MethodSet, mad.AttrMCMemberRecord, mask, fill); m.Status() == mad.StatusOK {
		t.Error("a host of another partition joined")
	}
}

// The groups of the configuration are there from the beginning.
func TestFixedGroups(t *testing.T) {
	r := newRig(t, func(c *sa.Config) { c.Fixed = []group.Fixed{group.IPoIB(0xFFFF, 2)} })
	rec := mad.MCMemberRecord{MGID: group.Broadcast(0xFFFF, 2)}
	m := r.one("h1", ib.SAKey{}, mad.MethodGet, mad.AttrMCMemberRecord, mad.MCMemberComponentMGID, func(b []byte) { _ = mad.Encode(b, &rec) })
	if err := mad.Decode(m.SAData(), &rec); err != nil || m.Status() != mad.StatusOK || !rec.MLID.IsMulticast() || rec.QKey != group.IPoIBQKey {
		t.Errorf("got %v, %+v, %v", m.Status(), rec, err)
	}
}

func paths(src, dst ib.GUID) (mad.ComponentMask, func([]byte)) {
	rec := mad.PathRecord{SGID: ib.MakeGID(ib.DefaultPrefix, src), DGID: ib.MakeGID(ib.DefaultPrefix, dst)}
	return mad.PathComponentSGID | mad.PathComponentDGID, func(b []byte) { _ = mad.Encode(b, &rec) }
}

// A port finds the path to another port of its partition. To all other ports that port does not seem to exist.
func TestPathsStayInPartitions(t *testing.T) {
	r := newRig(t, nil)
	r.Grant(r.GrantOf("h1", 1, 0x8001), r.GrantOf("h5", 1, 0x8001), r.GrantOf("h2", 1, 0x8002))
	r.settle()
	ask := func(to ib.GUID) *mad.MAD {
		mask, fill := paths(r.GUID("h1", 1), to)
		return r.one("h1", ib.SAKey{}, mad.MethodGet, mad.AttrPathRecord, mask, fill)
	}
	var rec mad.PathRecord
	m := ask(r.GUID("h5", 1))
	if err := mad.Decode(m.SAData(), &rec); err != nil || m.Status() != mad.StatusOK || rec.PKey != 0x8001 || rec.DLID == 0 {
		t.Errorf("to a port of the partition: %v, %+v, %v", m.Status(), rec, err)
	}
	foreign, nobody := ask(r.GUID("h2", 1)), ask(0x1234567)
	if foreign.Status() != mad.StatusNoRecords {
		t.Errorf("to a port of another partition: %v", foreign.Status())
	}
	for _, m := range []*mad.MAD{foreign, nobody} { // only the requested values may differ
		m.SetTID(0)
		clear(m.SAData())
	}
	if *foreign != *nobody {
		t.Error("a foreign port and one that nobody has are answered differently")
	}
}

// A wrong key is reported once, then by the suppression sequence, and finally with the exact count.
func TestGuessesOfTheKeyAreCounted(t *testing.T) {
	r := newRig(t, nil)
	const guesses = 37
	for i := range guesses {
		if got := r.ask("h3", ib.NewSAKey(uint64(1000+i)), mad.MethodGetTable, mad.AttrNodeRecord, 0, nil); len(got) > 0 {
			t.Fatalf("guess %d was answered", i)
		}
	}
	r.Run(2 * time.Second)
	loud, last := 0, uint64(0)
	for _, e := range r.Events() {
		if v, ok := e.Event.(*sa.Violation); ok && v.Verdict == trust.WrongKey && v.GUID == r.GUID("h3", 1) && v.Place == r.Place("h3", 1) {
			last = v.Count
			if !v.Quiet {
				loud++
			}
		}
	}
	if last != guesses || loud != 5 { // 1, 2, 5, 10, 20
		t.Errorf("told %d times aloud, last of %d guesses; want 5 and %d", loud, last, guesses)
	}
}

// The SA_Key changes with time. The previous key is accepted for a while, and later its use is reported. After a restart
// the state is the same.
func TestKeyRotates(t *testing.T) {
	source := keys.Random{Reader: rand.NewChaCha8([32]byte{3})}
	r := newRig(t, func(c *sa.Config) {
		c.Key, c.Source = ib.SAKey{}, source
		c.Trust.KeyPeriod, c.Trust.KeyGrace = time.Hour, 10*time.Minute
	})
	answered := func(k ib.SAKey) bool {
		return len(r.ask("h1", k, mad.MethodGet, mad.AttrSMInfoRecord, 0, nil)) == 1
	}
	first := r.Administration().SAKey()
	if first.IsZero() || !answered(first) {
		t.Fatal("the first key is not taken")
	}
	r.Run(time.Hour)
	second := r.Administration().SAKey()
	if second.Equal(first) || !answered(first) || !answered(second) {
		t.Fatal("after a period both keys are not taken")
	}
	r.Start()
	r.Want(sm.Intent{Revision: 2})
	r.settle()
	if now := r.Administration().SAKey(); !now.Equal(second) || !answered(first) || !answered(second) {
		t.Error("after a restart it is not as it was")
	}
	r.Run(15 * time.Minute)
	if answered(first) || !answered(second) {
		t.Error("after the grace the first key is taken, or the second is not")
	}
}

// reports takes the reports sent to a host, answers them, and returns the trap numbers.
func (r *rig) reports(host string) (traps []mad.TrapNum) {
	r.t.Helper()
	r.Run(100 * time.Millisecond)
	for _, p := range r.host(host).Take(nil) {
		if p.MAD.Method() != mad.MethodReport {
			continue
		}
		var n mad.ReportNotice
		if err := mad.Decode(p.MAD.SAData(), &n); err != nil {
			r.t.Fatal(err)
		}
		traps = append(traps, n.TrapNumber)
		p.MAD.SetMethod(mad.MethodReportResp)
		r.host(host).Send(p)
	}
	r.Run(10 * time.Millisecond)
	return traps
}

// A subscriber gets reports on groups of its partition and on ports that appear and disappear there, and on no others. An
// answered report is not sent again.
func TestReportsStayInPartitions(t *testing.T) {
	r := newRig(t, nil)
	r.Grant(r.GrantOf("h1", 1, 0x8001), r.GrantOf("h5", 1, 0x8001), r.GrantOf("h2", 1, 0x8002))
	r.settle()
	for _, h := range []string{"h2", "h5"} {
		info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers}
		if m := r.one(h, ib.SAKey{}, mad.MethodSet, mad.AttrInformInfo, 0, func(b []byte) { _ = mad.Encode(b, &info) }); m.Status() != mad.StatusOK {
			t.Fatalf("%s subscribes: %v", h, m.Status())
		}
	}
	mask, fill := join(ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}, r.GUID("h1", 1), 0x8001)
	if m := r.one("h1", ib.SAKey{}, mad.MethodSet, mad.AttrMCMemberRecord, mask, fill); m.Status() != mad.StatusOK {
		t.Fatal(m.Status())
	}
	want := func(host string, traps ...mad.TrapNum) {
		t.Helper()
		if got := r.reports(host); !slices.Equal(got, traps) {
			t.Errorf("%s is told of %v, want %v", host, got, traps)
		}
	}
	want("h5", mad.TrapMulticastCreated)
	want("h2")
	if err := r.Fabric.Unlink("h1", 1); err != nil {
		t.Fatal(err)
	}
	var told []mad.TrapNum
	for range 20 {
		told = append(told, r.reports("h5")...)
	}
	if !slices.Equal(told, []mad.TrapNum{mad.TrapGIDOutOfService, mad.TrapMulticastDeleted}) {
		t.Errorf("h5 is told of %v", told)
	}
	want("h2")
}

// A port that repeats a refused request is reported by the suppression sequence, with its place, and finally with the exact
// count.
func TestRefusalsAreCounted(t *testing.T) {
	r := newRig(t, nil)
	r.Grant(r.GrantOf("h2", 1, 0x8002))
	r.settle()
	const joins = 23
	for range joins {
		mask, fill := join(ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}, r.GUID("h1", 1), 0x8002)
		if m := r.one("h1", ib.SAKey{}, mad.MethodSet, mad.AttrMCMemberRecord, mask, fill); m.Status() != mad.StatusInvalidRequest {
			t.Fatalf("h1 joins a group of a partition that it is not in: %v", m.Status())
		}
	}
	r.Run(2 * time.Second)
	var loud []uint64
	last := uint64(0)
	for _, e := range r.Events() {
		switch v := e.Event.(type) {
		case *sa.GroupEvent:
			if v.Kind == group.Refused && v.Reason == group.NotInPartition && v.Asked.GUID == r.GUID("h1", 1) && v.Asked.Place == r.Place("h1", 1) {
				loud = append(loud, v.Asked.Count)
			}
		case *sa.Violation:
			if v.Verdict == trust.Refused && v.Place == r.Place("h1", 1) {
				last = v.Count
			}
		}
	}
	if want := []uint64{1, 2, 5, 10, 20}; !slices.Equal(loud, want) || last != joins {
		t.Errorf("told at numbers %v, last of %d; want %v and %d", loud, last, want, joins)
	}
}

// An agent that awaits settings answers no request and changes no table before they arrive.
func TestAwaitsSettings(t *testing.T) {
	r := newRig(t, func(c *sa.Config) { c.Await = true })
	if got := r.ask("h1", ib.SAKey{}, mad.MethodGet, mad.AttrClassPortInfo, 0, nil); len(got) > 0 {
		t.Errorf("%d answers before the settings", len(got))
	}
	s := r.SA.Settings()
	if err := r.Configure(&s); err != nil {
		t.Fatal(err)
	}
	r.Run(time.Second)
	if m := r.one("h1", ib.SAKey{}, mad.MethodGet, mad.AttrClassPortInfo, 0, nil); m.Status() != mad.StatusOK {
		t.Errorf("after the settings: %v", m.Status())
	}
}
