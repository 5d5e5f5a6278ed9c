package election_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/election"
	"portcullis/fabricsm/sm/smtrust"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

const (
	first  = "0x0000000000000031"
	second = "0x0000000000000041"
)

// TestAlone checks that a Subnet Manager without others becomes master at once.
func TestAlone(t *testing.T) {
	r := newRig(t, ib.SMKey{})
	r.Start()
	r.expect("alarm 7 in 1s")
	if !r.Elect() {
		t.Error("nothing follows from the election")
	}
	r.expect("Master: discovery is complete and no subnet manager of higher rank is master", "rule, foreign false")
	if !slices.Equal(r.read, r.hosts[1:]) {
		t.Errorf("looks for others at %v, want the allowed places %v", r.read, r.hosts[1:])
	}
	if !r.IsWriting() || r.ActCount() != 1 || r.Priority() != 5 {
		t.Errorf("writing %t, activity %d, priority %d", r.IsWriting(), r.ActCount(), r.Priority())
	}
}

// TestYields checks that discovery leaves the fabric to a master, that a standby polls it, and takes over when it is gone.
func TestYields(t *testing.T) {
	r := newRig(t, ourKey)
	r.Start()
	r.expect("alarm 7 in 1s", "alarm 8 in 500ms")
	p := r.hosts[1]
	r.Look(p, true)
	if r.Elect() {
		t.Error("the election does not wait for an answer")
	}
	if got := r.asks(); !slices.Equal(got, []topo.PortID{p}) {
		t.Errorf("asks %v, want %d", got, p)
	}
	r.says(p, ib.SMMaster, 5, ourKey)
	r.expect("get "+first+", quiet false", first+" is Master, rank true, trusted true, report 1 true")
	if !r.Elect() { // asks again first
		t.Error("the others are not asked again")
	}
	r.asks()
	r.says(p, ib.SMMaster, 5, ourKey)
	if r.log = nil; !r.Elect() {
		t.Error("nothing follows from the election")
	}
	r.expect("unprove", "foreign-master: Standby: port "+first+" is master")
	r.is(ib.SMStandby)
	r.Poll()
	r.asks()
	r.expect("alarm 8 in 500ms", "get "+first+", quiet true")
	// It is of lower rank now, so it is asked for the fabric, ever more rarely.
	for range 3 {
		r.says(p, ib.SMMaster, 3, ourKey)
		r.now = r.now.Add(1500 * time.Millisecond)
	}
	r.expect(first+" is Master, rank true, trusted true, report 2 true", "trap to LID 2",
		first+" is Master, rank true, trusted true, report 0 false", "trap to LID 2",
		first+" is Master, rank true, trusted true, report 0 false")
	if n := &r.traps[0]; n.LID != 1 || n.IssuerLID != 1 || n.ChangeFlags != mad.SMPriorityChanged {
		t.Errorf("trap %+v", n)
	}
	r.gone[p] = true
	r.Poll()
	r.expect("alarm 8 in 500ms", "renew", "unprove", "Discovering: the master is gone", "doubt")
	if r.log = nil; !r.Elect() {
		t.Error("nothing follows from the election")
	}
	r.expect("Master: discovery is complete and no subnet manager of higher rank is master", "rule, foreign true")
}

// TestLate checks that a Subnet Manager of higher rank which does not become master is waited for, but not for ever.
func TestLate(t *testing.T) {
	r := newRig(t, ourKey)
	p := r.hosts[1]
	r.standsBy(p, ib.SMDiscovering)
	r.now = r.now.Add(4 * time.Second)
	r.says(p, ib.SMDiscovering, 9, ourKey)
	r.is(ib.SMStandby)
	r.now = r.now.Add(2 * time.Second)
	r.log = nil
	r.says(p, ib.SMDiscovering, 9, ourKey)
	r.expect(first+" is Discovering, rank true, trusted true, report 0 false", "renew", "unprove",
		"Discovering: port "+first+" does not become master", "doubt")
	r.settlesFor(p, ib.SMDiscovering, 9)
	r.is(ib.SMMaster)
}

// settlesFor runs the election while the Subnet Manager at a port keeps saying the same.
func (r *rig) settlesFor(p topo.PortID, state ib.SMState, priority uint8) {
	r.t.Helper()
	r.Look(p, true)
	for range 3 {
		r.asks()
		r.says(p, state, priority, ourKey)
		if was := r.State(); r.Elect() && r.State() != was {
			return
		}
	}
	r.t.Error("the election does not end")
}

// TestHandOver checks that a master hands over to a higher standby when its own requests are answered, and takes the fabric
// back where that one declines, ever more rarely.
func TestHandOver(t *testing.T) {
	r := newRig(t, ourKey)
	r.rules()
	p := r.hosts[2]
	out := r.wire.Add(&work.Request{Ref: work.OnPort(work.Info, p)}, false)
	r.says(p, ib.SMStandby, 9, ourKey)
	r.asks()
	r.expect(second+" is Standby, rank true, trusted true, report 1 true", "unprove",
		"foreign-master: Standby: handing over to port "+second+", which is of higher rank", "alarm 1 in 5ms")
	r.wire.End(out)
	r.Work(p)
	r.expect("HANDOVER to " + second + " as Master")
	if si := r.sent[0]; si.SMKey != ourKey || si.GUID != 0x21 || si.Priority != 5 {
		t.Errorf("the command is %+v", si)
	}
	r.obeys(p, mad.SMInfoHandover, mad.StatusInvalidField)
	r.is(ib.SMDiscovering)
	if r.log = nil; r.Priority() != 5 {
		t.Errorf("priority %d", r.Priority())
	}
	r.settlesFor(p, ib.SMStandby, 9)
	r.is(ib.SMMaster)
	r.log = nil
	r.says(p, ib.SMStandby, 9, ourKey)
	r.expect(second + " is Standby, rank true, trusted true, report 0 false")
	r.now = r.now.Add(3 * time.Second)
	r.says(p, ib.SMStandby, 9, ourKey)
	r.is(ib.SMStandby)
	r.asks()
	r.obeys(p, mad.SMInfoHandover, mad.StatusOK)
	r.is(ib.SMStandby)
}

// TestRival checks that a master waits for the handover of a lower one, and rules beside it when that does not come.
func TestRival(t *testing.T) {
	r := newRig(t, ourKey)
	r.rules()
	p := r.hosts[1]
	r.says(p, ib.SMMaster, 3, ourKey)
	r.expect(first+" is Master, rank true, trusted true, report 1 true",
		"Discovering: port "+first+" is a master of lower rank: waiting for its handover", "trap to LID 2")
	if r.Elect() || r.IsWriting() {
		t.Error("the election does not wait for the handover")
	}
	r.Poll()
	r.asks()
	r.expect("alarm 8 in 500ms", "get "+first+", quiet false")
	r.now = r.now.Add(6 * time.Second)
	r.Poll()
	r.expect("alarm 8 in 500ms",
		"rival-master: Discovering: port "+first+" is master, too, and does not hand over to us, who are of higher rank: stop it",
		"renew", "unprove", "Discovering: no longer waiting for a handover", "doubt")
	r.settlesFor(p, ib.SMMaster, 3)
	r.is(ib.SMMaster)
	r.log = nil
	r.says(p, ib.SMMaster, 3, ourKey)
	r.is(ib.SMMaster)
	// After it stood by it is no longer ignored.
	r.says(p, ib.SMStandby, 3, ourKey)
	r.says(p, ib.SMMaster, 3, ourKey)
	r.is(ib.SMDiscovering)
	r.log = nil
	r.says(p, ib.SMStandby, 3, ourKey)
	r.expect(first+" is Standby, rank true, trusted true, report 4 false", "renew", "unprove",
		"Discovering: port "+first+" is master no longer", "doubt")
}

// TestObeys checks what follows from commands of an allowed master.
func TestObeys(t *testing.T) {
	r := newRig(t, ourKey)
	p := r.hosts[1]
	r.standsBy(p, ib.SMMaster)
	if !r.command(1, mad.SMInfoHandover, ib.SMMaster, ourKey) {
		t.Error("the handover gets no answer")
	}
	r.expect("answer ok with Standby, manager true", "renew", "unprove", "Discovering: port "+first+" handed over", "doubt")
	if r.answer.SMKey != ourKey || r.answer.ActCount != 1 {
		t.Errorf("the answer is %+v", r.answer)
	}
	r.asks()
	r.expect("ACKNOWLEDGE to " + first + " as Standby")
	if n := r.Tries(&work.Request{Method: mad.MethodSet, Mod: uint32(mad.SMInfoAcknowledge)}); n != 1 {
		t.Errorf("an ACKNOWLEDGE gets %d tries", n)
	}
	if r.wire.Fresh() != 0 {
		t.Error("the ACKNOWLEDGE holds up other requests")
	}
	r.obeys(p, mad.SMInfoAcknowledge, mad.StatusOK)
	r.Look(p, true)
	if got := r.asks(); got != nil {
		t.Errorf("asks %v, although that one handed over", got)
	}
	r.says(p, ib.SMMaster, 9, ourKey) // it is master again, and of higher rank
	r.is(ib.SMStandby)
	r.log = nil
	r.command(1, mad.SMInfoDisable, ib.SMMaster, ourKey)
	r.expect("answer ok with Standby, manager true", "unprove",
		"disabled: NotActive: disabled by the master at port "+first+"; start this subnet manager again to have it take part")
	r.command(1, mad.SMInfoDiscover, ib.SMMaster, ourKey)
	r.expect("refused DISCOVER of "+first+": objection 0, ours NotActive, report 1 true", "answer invalid attribute or modifier field with NotActive, manager true")
	r.command(1, mad.SMInfoStandby, ib.SMMaster, ourKey)
	r.is(ib.SMStandby)
	r.log = nil
	r.command(1, mad.SMInfoDiscover, ib.SMMaster, ourKey)
	r.expect("answer ok with Standby, manager true", "renew", "unprove", "Discovering: port "+first+" asked for a new discovery", "doubt")
}

// TestRefuses checks that commands without right get no answer, and are reported ever more rarely.
func TestRefuses(t *testing.T) {
	r := newRig(t, ourKey)
	r.rules()
	for range 3 {
		if r.command(1, mad.SMInfoHandover, ib.SMMaster, otherKey) {
			t.Error("a command with another key is answered")
		}
	}
	r.expect("refused HANDOVER of "+first+": objection 2, ours Master, report 1 true",
		"refused HANDOVER of "+first+": objection 2, ours Master, report 2 true",
		"refused HANDOVER of "+first+": objection 2, ours Master, report 3 false")
	r.ForgetPort(r.hosts[1])
	r.command(1, mad.SMInfoHandover, ib.SMMaster, otherKey)
	r.expect("refused HANDOVER of " + first + ": objection 2, ours Master, report 1 true")
	// A command that is routed by LID proves nothing, even with the key.
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodSet, Attr: mad.AttrSMInfo, Mod: uint32(mad.SMInfoDisable)}, nil, ib.MKey{})
	if err := mad.Encode(m.Data(), &mad.SMInfo{GUID: 0x41, SMKey: ourKey, SMState: ib.SMMaster}); err != nil {
		t.Fatal(err)
	}
	for _, lid := range []ib.LID{3, 99, 99} {
		if r.Receive(election.Asked{MAD: &m, LID: lid}) {
			t.Errorf("a command from LID %v is answered", lid)
		}
	}
	r.expect("refused DISABLE of "+second+": objection 3, ours Master, report 1 true",
		"refused DISABLE of "+second+": objection 3, ours Master, report 1 true",
		"refused DISABLE of "+second+": objection 3, ours Master, report 2 true")
	r.is(ib.SMMaster)
}

// TestResign checks that a master which ends hands over to the highest standby, and that one without a standby ends at once.
func TestResign(t *testing.T) {
	r := newRig(t, ourKey)
	r.rules()
	r.says(r.hosts[1], ib.SMStandby, 2, ourKey)
	r.says(r.hosts[2], ib.SMStandby, 3, ourKey)
	r.log = nil
	r.Resign()
	r.Resign()
	r.asks()
	r.expect("unprove", "foreign-master: Standby: ending, so port "+second+" is given the fabric", "HANDOVER to "+second+" as Master")
	if r.HasResigned() {
		t.Error("the end comes before the handover")
	}
	r.obeys(r.hosts[2], mad.SMInfoHandover, mad.StatusInvalidField)
	if !r.HasResigned() {
		t.Error("the end does not come")
	}
	r.is(ib.SMStandby)
	alone := newRig(t, ourKey)
	alone.rules()
	alone.Resign()
	if alone.expect(); !alone.HasResigned() {
		t.Error("the end does not come although there is no standby")
	}
}

// TestMandate checks that nothing is written without a mandate, and that all is read again with it.
func TestMandate(t *testing.T) {
	r := newRig(t, ourKey)
	r.rules()
	r.SetMandate(true)
	r.expect()
	r.SetMandate(false)
	r.expect("disturb", "lease-ended: NotActive: the lease of this instance may have run out: it reads and answers, and changes nothing until the store answers")
	if r.IsWriting() || !r.IsBarred() || r.Elect() {
		t.Errorf("writing %t, barred %t", r.IsWriting(), r.IsBarred())
	}
	r.SetMandate(true)
	r.expect("disturb", "unprove", "Discovering: the lease of this instance holds again", "doubt")
	r.rules()
}

// TestWatch checks that a master without a link begins again.
func TestWatch(t *testing.T) {
	r := newRig(t, ourKey)
	r.rules()
	r.Watch()
	r.expect("alarm 7 in 1s", "read our own port")
	r.cut = true
	r.Watch()
	r.expect("alarm 7 in 1s", "renew", "unprove", "Discovering: our own port has no link", "doubt", "read our own port")
	if r.Elect() {
		t.Error("a Subnet Manager without a link is elected")
	}
}

// TestSilence checks what follows when a Subnet Manager does not answer.
func TestSilence(t *testing.T) {
	r := newRig(t, ourKey)
	p := r.hosts[1]
	get := &work.Request{Ref: work.OnPort(work.SMInfo, p), Method: mad.MethodGet}
	r.says(p, ib.SMMaster, 9, ourKey)
	r.settlesFor(p, ib.SMMaster, 9)
	r.log = nil
	r.Unanswered(get)
	r.expect("renew", "unprove", "Discovering: the master does not answer", "doubt")
	if r.Others() != nil || r.Tries(get) != 4 {
		t.Errorf("others %v, %d tries", r.Others(), r.Tries(get))
	}
	r.rules()
	r.says(p, ib.SMMaster, 3, ourKey)
	r.log = nil
	r.Unanswered(get)
	r.expect("renew", "unprove", "Discovering: the master of lower rank does not answer", "doubt")
	r.rules()
	r.says(p, ib.SMStandby, 9, ourKey)
	r.asks()
	r.log = nil
	r.Unanswered(&work.Request{Ref: get.Ref, Method: mad.MethodSet, Mod: uint32(mad.SMInfoHandover)})
	r.expect("renew", "unprove", "Discovering: port "+first+" did not take the handover: no answer", "doubt")
}

// TestOthers checks the list of other Subnet Managers, and of the ports of those with which this one works.
func TestOthers(t *testing.T) {
	r := newRig(t, ourKey)
	r.rules()
	r.says(r.hosts[1], ib.SMStandby, 2, ourKey)
	r.says(r.hosts[2], ib.SMMaster, 3, otherKey)
	if r.says(r.hosts[2], ib.SMMaster, 3, otherKey); r.State() != ib.SMMaster {
		t.Error("a master without the key is believed")
	}
	r.expect(first+" is Standby, rank true, trusted true, report 1 true", second+" is Master, rank true, trusted false, report 1 true",
		second+" is Master, rank true, trusted false, report 0 false")
	got := r.Others()
	want := []election.Manager{
		{GUID: 0x41, LID: 3, Place: ib.Place{Switch: 0x10, Port: 3}, State: ib.SMMaster, Priority: 3},
		{GUID: 0x31, LID: 2, Place: ib.Place{Switch: 0x10, Port: 2}, State: ib.SMStandby, Priority: 2, Trusted: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("others %+v, want %+v", got, want)
	}
	r.trust.SetAllowed([]smtrust.Allowed{{GUID: 0x51}})
	if peers := r.Peers(); !slices.Equal(peers, r.hosts[1:2]) || r.IsPeer(r.hosts[2]) || r.IsPeer(topo.None) || r.IsPeer(r.Own()) {
		t.Errorf("peers %v, want %v", peers, r.hosts[1:2])
	}
	r.Look(r.hosts[2], false)
	if got := r.Others(); len(got) != 1 {
		t.Errorf("others %+v, although one is no Subnet Manager any more", got)
	}
	r.AskAgain(r.hosts[2])
	if asked := r.asks(); asked != nil {
		t.Errorf("asks %v, where no Subnet Manager is known", asked)
	}
	r.AskAgain(r.hosts[1])
	if asked := r.asks(); !slices.Equal(asked, r.hosts[1:2]) {
		t.Errorf("asks %v, want %v", asked, r.hosts[1:2])
	}
}
