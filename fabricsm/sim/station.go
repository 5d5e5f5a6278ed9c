package sim

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

const (
	// slotShift puts a station's slot into the upper 16 bits of the TID of its
	// requests, as ibsim does.
	slotShift = 48
	// maxStations keeps slots within these bits.
	maxStations = 1 << 12
)

// Station is the place of a program at a port of the fabric: its packets start there, and packets for it wait in its inbox.
// It has no goroutine and does not block.
type Station struct {
	fabric *Fabric
	at     *port
	slot   int
	asSM   bool
	pkey   ib.PKey // of GMPs it sends, 0: the entry they name; guarded by fabric.mu
	gid    ib.GID  // the same of global route headers
	vf     uint8   // the virtual function that the program has; 0: the adapter itself
	trap   ib.TID  // of the last trap it sent; guarded by fabric.mu
	inbox  *inbox
	host   *HostPort // that has the port, nil: the station is a program's
	sa     *inbox    // of subnet administration, nil: it has none of its own; guarded by fabric.mu
	closed bool      // guarded by fabric.mu
}

// Station puts a program at port 1 of a CA or port 0 of a switch; "" means the
// first node of the netlist. With asSM it also receives the requests that
// arrive there for no agent; a port has at most one such station.
func (f *Fabric) Station(node string, asSM bool) (*Station, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(node)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	at := n.ports[0]
	if n.sw == nil {
		at = n.ports[1]
	}
	slot := len(f.stations)
	for i := len(f.stations) - 1; i >= 0; i-- {
		switch s := f.stations[i]; {
		case s == nil:
			slot = i
		case s.host != nil && s.at == at:
			return nil, fmt.Errorf("attach to %q: the port has an adapter plugged into a host: use that", n.name)
		case asSM && s.asSM && s.at == at:
			return nil, fmt.Errorf("attach to %q: a subnet manager is attached to that port already", n.name)
		}
	}
	if slot >= maxStations {
		return nil, fmt.Errorf("attach to %q: the fabric has %d stations, the most it can have", n.name, maxStations)
	}
	s := &Station{fabric: f, at: at, slot: slot, asSM: asSM, inbox: newInbox(f, maxQueued)}
	if slot == len(f.stations) {
		f.stations = append(f.stations, nil)
	}
	f.stations[slot] = s
	return s, nil
}

// Node is the name of the node the station sits at.
func (s *Station) Node() string { return s.at.node.name }

// Slot is the number in the upper 16 bits of the TIDs of its requests.
func (s *Station) Slot() int { return s.slot }

// GUID is the GUID of its port.
func (s *Station) GUID() ib.GUID { return s.at.guid }

// Send moves packets through the fabric. When it returns, all their effects have happened, except those that a Fault
// delays.
func (s *Station) Send(packets ...transport.Packet) {
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	s.send(packets)
	s.fabric.settle()
}

// Exchange is Send followed by Take, in one step.
func (s *Station) Exchange(packets, arrived []transport.Packet) []transport.Packet {
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	s.send(packets)
	arrived = s.take(arrived)
	s.fabric.settle()
	return arrived
}

// Take empties the inbox: it appends its packets to arrived, in order.
func (s *Station) Take(arrived []transport.Packet) []transport.Packet {
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	return s.take(arrived)
}

func (s *Station) take(arrived []transport.Packet) []transport.Packet {
	arrived = append(arrived, s.inbox.packets...)
	s.inbox.empty()
	return arrived
}

// send is called with the fabric's mu held.
func (s *Station) send(packets []transport.Packet) {
	f := s.fabric
	if s.closed {
		return
	}
	for i := range packets {
		f.stats.Sent++
		f.queue = append(f.queue, flight{})
		fl := &f.queue[len(f.queue)-1]
		s.board(fl, &packets[i])
		if !wellFormed(&fl.mad) {
			f.queue = f.queue[:len(f.queue)-1]
			f.stats.Malformed++
			continue
		}
		if s.bars(&fl.mad) {
			f.stats.Barred++
			f.undelivered(fl)
			f.queue = f.queue[:len(f.queue)-1]
			continue
		}
		f.run()
	}
}

// board makes a flight of a packet.
func (s *Station) board(fl *flight, p *transport.Packet) {
	fl.mad, fl.from = p.MAD, s.at
	fl.slid, fl.dlid = s.at.endPort().info.LID, p.LID
	if p.LID == ib.PermissiveLID {
		fl.slid = ib.PermissiveLID
	}
	fl.sqp, fl.dqp = p.QP, p.QP
	s.address(fl, p)
	if m := &fl.mad; !m.IsResponse() {
		fl.origin, fl.request = s, m.Method()
		m.SetTID(m.TID()&(1<<slotShift-1) | ib.TID(s.slot)<<slotShift)
		if m.Method() == mad.MethodTrap {
			s.trap = m.TID()
		}
	}
}

// wellFormed holds a MAD to the rules below which it is dropped without an
// answer: versions, and a directed route only to the permissive LID.
func wellFormed(m *mad.MAD) bool {
	return m.BaseVersion() == 1 && m.ClassVersion() <= 2 && (!m.IsSMP() || m.ClassVersion() == 1)
}

// place makes room in the inbox for a MAD, to be filled in; nil: it is lost. Called
// with mu held.
func (s *Station) place(m *mad.MAD, undelivered bool) *transport.Packet {
	f := s.fabric
	if s.closed {
		return nil
	}
	if !undelivered && s.bars(m) {
		f.stats.Barred++
		return nil
	}
	b := s.inbox
	if s.sa != nil && m.Class() == mad.ClassSubnAdm {
		b = s.sa
	}
	first := len(b.packets) == 0
	p := b.place(m)
	switch {
	case p == nil:
		f.stats.Overflowed++
		return nil
	case first:
		f.dirty = append(f.dirty, b)
	}
	f.stats.Received++
	return p
}

// deliver puts a packet that reached a port into the inbox.
func (s *Station) deliver(fl *flight, at *port) {
	if s.host != nil {
		s.host.take(fl)
		return
	}
	if p := s.place(&fl.mad, false); p != nil {
		fl.unpack(p, at)
	}
}

// empty drops the packets in the inbox.
func (s *Station) empty() {
	s.inbox.empty()
	if s.sa != nil {
		s.sa.empty()
	}
}

// settle wakes the readers of stations with new packets. Called with mu held, at the end of every call that may have moved
// packets.
func (f *network) settle() {
	for _, h := range f.hosts {
		h.notice()
	}
	for _, b := range f.dirty {
		if len(b.packets) > 0 {
			b.more.Broadcast()
		}
	}
	f.dirty = f.dirty[:0]
}

// SetIsSM sets or clears the IsSM capability bit of the port; a change raises trap 144. A station that sets it also
// receives packets for no agent, as with ibsim, unless another station at the port does.
func (s *Station) SetIsSM(on bool) {
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	if s.closed || s.vf > 0 {
		return
	}
	if on && !s.asSM && !s.fabric.hasSM(s.at) {
		s.asSM = true
	}
	s.at.setIsSM(on)
	s.fabric.run()
	s.fabric.settle()
}

// hasSM reports whether a station at a port receives packets for no agent. Called with mu held.
func (f *network) hasSM(at *port) bool {
	for _, s := range f.stations {
		if s != nil && s.asSM && s.at == at {
			return true
		}
	}
	return false
}

// setIsSM changes the capability bit and reports a change.
func (p *port) setIsSM(on bool) {
	mask := p.info.CapabilityMask &^ mad.IsSM
	if on && !p.node.firewalled() {
		mask |= mad.IsSM
	}
	if mask == p.info.CapabilityMask {
		return
	}
	p.info.CapabilityMask = mask
	p.commit()
	p.sendLocalChangeTrap(0)
}

// Close takes the station away. Its IsSM bit goes with it, if it was the
// port's subnet manager. It is idempotent.
func (s *Station) Close() {
	f := s.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	f.stations[s.slot] = nil
	if s.asSM {
		s.at.setIsSM(false)
		f.run()
	}
	s.inbox.more.Broadcast()
	if s.sa != nil {
		s.sa.more.Broadcast()
	}
	f.settle()
}
