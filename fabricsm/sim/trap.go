package sim

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
)

const (
	// maxTrapRepeats limits the repetition of a trap that is not repressed.
	maxTrapRepeats = 10
	// minTrapInterval is the shortest time between two repetitions, for any SubnetTimeOut.
	minTrapInterval = 100 * time.Millisecond
)

// pendingTrap is a trap that was sent and not yet repressed.
type pendingTrap struct {
	from   *port
	data   [mad.DataSize]byte
	number mad.TrapNum
	tid    ib.TID
	sent   int // times

	// For a paced trap; see paceTrap.
	id    ib.TID       // its first tid, which does not change
	about ib.PortNum   // the port it speaks of
	agent *guard.Agent // of a class with keys; nil: an SMP
	quiet bool         // repressed, and not yet old enough to be forgotten
}

// sendLinkTrap reports a change of a link of a switch: trap 128.
func (n *node) sendLinkTrap() {
	from := n.ports[0]
	var data [mad.DataSize]byte
	must(mad.Encode(data[:], &mad.Trap128{
		NoticeHeader: n.noticeHeader(mad.NoticeUrgent, mad.TrapLinkStateChange, from),
		SwitchLID:    from.info.LID,
	}))
	n.keepTrap(from, mad.TrapLinkStateChange, &data)
}

// sendLocalChangeTrap reports a change of an end port: trap 144. Flags 0 means
// its capability mask.
func (p *port) sendLocalChangeTrap(flags mad.ChangeFlags) {
	var data [mad.DataSize]byte
	must(mad.Encode(data[:], &mad.Trap144{
		NoticeHeader:       p.node.noticeHeader(mad.NoticeInformational, mad.TrapLocalChange, p),
		LID:                p.info.LID,
		OtherLocalChanges:  flags != 0,
		NewCapabilityMask:  p.info.CapabilityMask,
		ChangeFlags:        flags,
		NewCapabilityMask2: p.info.CapabilityMask2,
	}))
	p.node.keepTrap(p, mad.TrapLocalChange, &data)
}

func (n *node) noticeHeader(t mad.NoticeType, number mad.TrapNum, from *port) mad.NoticeHeader {
	return mad.NoticeHeader{IsGeneric: true, Type: t, ProducerType: uint32(n.typ), TrapNumber: number, IssuerLID: from.info.LID}
}

// keepTrap sends a trap and keeps it until it is repressed. A later trap of the
// same number and port takes its place. A port that knows no SM, or has no LID,
// sends none, and without IsTrapSupported there is none at all.
func (n *node) keepTrap(from *port, number mad.TrapNum, data *[mad.DataSize]byte) {
	from.noticed(data)
	if !from.sendsTraps() {
		return
	}
	f := n.fabric
	f.nextTID++
	t := pendingTrap{from: from, number: number, tid: ib.TID(f.nextTID), data: *data}
	n.traps = slices.DeleteFunc(n.traps, func(old pendingTrap) bool { return old.from == from && old.number == number })
	n.traps = append(n.traps, t)
	n.emitTrap(t.tid)
}

// emitTrap sends the pending trap with that identifier, if it still is
// pending, and plans its repetition.
func (n *node) emitTrap(tid ib.TID) {
	i := slices.IndexFunc(n.traps, func(t pendingTrap) bool { return t.tid == tid })
	if i < 0 {
		return
	}
	t := &n.traps[i]
	if t.sent >= maxTrapRepeats {
		n.traps = slices.Delete(n.traps, i, i+1)
		return
	}
	n.fabric.launchTrap(t)
	n.fabric.later.add(n.fabric.now+t.from.trapInterval(), func() { n.emitTrap(tid) })
}

// launchTrap puts a pending trap on its way.
func (f *network) launchTrap(t *pendingTrap) {
	t.sent++
	f.stats.Traps++
	if t.agent != nil {
		f.queue = append(f.queue, t.classFlight())
		return
	}
	fl := flight{from: t.from, slid: t.from.info.LID, dlid: t.from.info.MasterSMLID}
	mad.NewSMP(&fl.mad, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: t.tid}, nil, ib.MKey{})
	copy(fl.mad.Data(), t.data[:])
	f.queue = append(f.queue, fl)
}

// paceTrap sends a trap that any sender can cause. For the same number, port and reported port it sends one per
// trapInterval. When the interval is over, it reports only the newest event in between; the counters of the port
// include all of them.
func (n *node) paceTrap(from *port, number mad.TrapNum, about ib.PortNum, data *[mad.DataSize]byte) {
	from.noticed(data)
	if from.sendsTraps() {
		n.pace(&pendingTrap{from: from, number: number, about: about, data: *data})
	}
}

// pace is paceTrap for a trap of any class.
func (n *node) pace(add *pendingTrap) {
	n.fabric.nextTID++
	add.tid = ib.TID(n.fabric.nextTID)
	for i := range n.traps {
		t := &n.traps[i]
		if t.id != 0 && t.from == add.from && t.agent == add.agent && t.number == add.number && t.about == add.about {
			t.data, t.tid, t.sent, t.quiet = add.data, add.tid, 0, false
			return
		}
	}
	add.id = add.tid
	n.traps = append(n.traps, *add)
	n.emitPaced(add.id)
}

// emitPaced is emitTrap for a paced trap.
func (n *node) emitPaced(id ib.TID) {
	i := slices.IndexFunc(n.traps, func(t pendingTrap) bool { return t.id == id })
	if i < 0 {
		return
	}
	t := &n.traps[i]
	if t.quiet || t.sent >= maxTrapRepeats {
		n.traps = slices.Delete(n.traps, i, i+1)
		return
	}
	n.fabric.launchTrap(t)
	n.fabric.later.add(n.fabric.now+t.from.trapInterval(), func() { n.emitPaced(id) })
}

// sendsTraps reports whether a port may send traps: it has a LID, knows the subnet manager, and has the capability.
func (p *port) sendsTraps() bool {
	return !p.node.off && p.info.LID != 0 && p.info.MasterSMLID != 0 && p.info.CapabilityMask.Has(mad.IsTrapSupported)
}

// trapInterval is the time between two repetitions of a trap, set by
// SubnetTimeOut (IBTA volume 1, 14.3.9).
func (p *port) trapInterval() time.Duration {
	return max(minTrapInterval, 4096*time.Nanosecond<<p.info.SubnetTimeOut)
}

// represses reports whether a TrapRepress is for an agent of the port's node.
func (p *port) represses(m *mad.MAD) bool {
	return m.IsSMP() || p.endPort().classAgent(m.Class()) != nil
}

// repressed ends the repetition of the trap that a TrapRepress names.
func (n *node) repressed(m *mad.MAD) {
	for i := range n.traps {
		if t := &n.traps[i]; t.tid == m.TID() && t.id != 0 {
			t.quiet = true
		}
	}
	n.traps = slices.DeleteFunc(n.traps, func(t pendingTrap) bool { return t.tid == m.TID() && t.id == 0 })
}
