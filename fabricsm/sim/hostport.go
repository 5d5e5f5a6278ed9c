package sim

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/transport"
)

// maxHostPackets bounds the packets that wait for a host that does not receive; more are dropped.
const maxHostPackets = 1 << 13

// HostPacket is a datagram as it is on the link between an adapter and its switch. A
// directed-route SMP has the hop pointer that it has there.
type HostPacket struct {
	MAD        mad.MAD
	SLID, DLID ib.LID
	SQP, DQP   uint32
	PKey       ib.PKey // of a GMP
	SL         ib.SL
	GRH        *GRH // nil: none
}

// PortEvent is a change of a port that an adapter reports to its driver.
type PortEvent uint8

// Events of a port.
const (
	LIDChanged PortEvent = iota
	GIDChanged           // an entry of the GID table, or the prefix of all
	PKeyChanged
	PortBecameActive
	PortNoLongerActive
	SMChanged // its LID or service level
	Reregister
	portEvents
)

var portEventNames = [portEvents]string{
	"LID changed", "GID changed", "P_Key changed", "port active", "port no longer active", "SM changed", "client reregister",
}

// String names the event.
func (e PortEvent) String() string {
	if e >= portEvents {
		return fmt.Sprintf("event %d", uint8(e))
	}
	return portEventNames[e]
}

// HostPort is a port of an adapter whose host is a kernel elsewhere. It receives the packets for the port that the adapter
// does not answer. The host alone chooses addresses and transaction identifiers. No Station can be at that port as well.
type HostPort struct {
	station *Station
	packets []HostPacket
	dropped uint64
	arrived *sync.Cond // on the fabric's mu, as changed: there are packets, or the port is closed

	seen    portSight
	events  [portEvents]bool
	changed *sync.Cond
}

// portSight is the state of its port that a driver knows.
type portSight struct {
	state      ib.PortState
	lid, smLID ib.LID
	lmc        ib.LMC
	smSL       ib.SL
	prefix     ib.Prefix
	pkeys      []byte
	guids      guidTable
}

// HostPort takes a port of a channel adapter or router for a host. A function is a
// virtual function of the adapter: it has no subnet management.
func (f *Fabric) HostPort(node string, num ib.PortNum, function bool) (*HostPort, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return nil, fmt.Errorf("plug in adapter: %w", err)
	}
	if p.node.sw != nil {
		return nil, fmt.Errorf("plug in adapter: %q is a switch", p.node.name)
	}
	slot := len(f.stations)
	for i := len(f.stations) - 1; i >= 0; i-- {
		switch s := f.stations[i]; {
		case s == nil:
			slot = i
		case s.at == p:
			return nil, fmt.Errorf("plug in adapter: a program is attached to port %d of %q: detach it first", num, p.node.name)
		}
	}
	if slot >= maxStations {
		return nil, fmt.Errorf("plug in adapter: the fabric has %d stations, the most it can have", maxStations)
	}
	s := &Station{fabric: f, at: p, slot: slot, asSM: true, inbox: newInbox(f, 0)}
	if function {
		s.vf = 1
	}
	h := &HostPort{station: s, arrived: sync.NewCond(&f.mu), changed: sync.NewCond(&f.mu)}
	s.host = h
	if slot == len(f.stations) {
		f.stations = append(f.stations, nil)
	}
	f.stations[slot] = s
	p.host = h
	f.hosts = append(f.hosts, h)
	h.seen.look(p)
	return h, nil
}

// Endpoint is the port by its name.
func (h *HostPort) Endpoint() Endpoint { return h.station.at.endpoint() }

// Send moves a datagram of the host's software through the fabric. The path bits of its
// SLID are kept; the rest of it is the LID of the port. A GMP whose P_Key is not in the table of the port is not sent.
func (h *HostPort) Send(p *HostPacket) {
	s := h.station
	f := s.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.closed {
		return
	}
	f.stats.Sent++
	switch {
	case !wellFormed(&p.MAD):
		f.stats.Malformed++
		return
	case s.bars(&p.MAD):
		f.stats.Barred++
		return
	}
	fl := flight{mad: p.MAD, from: s.at, origin: s, request: p.MAD.Method(), dlid: p.DLID, sqp: p.SQP, dqp: p.DQP, sl: p.SL}
	fl.slid = s.at.info.LID | p.SLID&(1<<s.at.info.LMC-1)
	if p.DLID == ib.PermissiveLID {
		fl.slid = ib.PermissiveLID
	}
	if m := &fl.mad; m.IsDR() && (m.Returning() && m.HopPointer() == m.HopCount() || !m.Returning() && m.HopPointer() == 1) {
		m.SetHopPointer(0) // where walks begin
	}
	if !fl.mad.IsSMP() {
		if s.at.admits(packetIBA, p.PKey, outbound) != admitted {
			return
		}
		fl.key, fl.grh = p.PKey, p.GRH
	}
	f.queue = append(f.queue, fl)
	f.run()
	f.settle()
}

// MaySend reports whether a P_Key is in the table of the port now. An adapter sends no other: a host that has not heard of a
// change yet may ask for one.
func (h *HostPort) MaySend(key ib.PKey) bool {
	f := h.station.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	return h.station.at.admits(packetIBA, key, outbound) == admitted
}

// take stores a packet for the host. Called with the fabric's mu held.
func (h *HostPort) take(fl *flight) {
	f := h.station.fabric
	if h.station.bars(&fl.mad) {
		f.stats.Barred++
		return
	}
	if len(h.packets) >= maxHostPackets {
		f.stats.Overflowed++
		h.dropped++
		return
	}
	f.stats.Received++
	p := HostPacket{MAD: fl.mad, SLID: fl.slid, DLID: fl.dlid, SQP: fl.sqp, DQP: fl.dqp, PKey: fl.key, SL: fl.sl, GRH: fl.grh}
	if m := &p.MAD; m.IsDR() {
		m.SetHopPointer(m.HopCount())
		if m.Returning() || m.IsResponse() {
			m.SetHopPointer(min(1, m.HopCount()))
		}
	}
	h.packets = append(h.packets, p)
	h.arrived.Broadcast()
}

// Receive waits for datagrams and moves as many as fit into packets.
func (h *HostPort) Receive(packets []HostPacket) (int, error) {
	s := h.station
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	for len(h.packets) == 0 && !s.closed && len(packets) > 0 {
		h.arrived.Wait()
	}
	if s.closed {
		return 0, transport.ErrClosed
	}
	n := copy(packets, h.packets)
	h.packets = h.packets[:copy(h.packets, h.packets[n:])]
	return n, nil
}

// Ask makes the firmware of the adapter answer a MAD about the port, in place, and reports whether it did. byHost
// distinguishes a request of the host's software, for which the SMP firewall applies, from one of the driver.
func (h *HostPort) Ask(m *mad.MAD, byHost bool) bool {
	s := h.station
	f := s.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.closed || s.at.node.off || s.at.node.activeFault().Silent || !wellFormed(m) || !s.at.node.answers(m) {
		return false
	}
	allowed := guard.Full
	if byHost {
		if s.bars(m) {
			f.stats.Barred++
			return false
		}
		fl := flight{mad: *m, from: s.at, origin: s, request: m.Method(), slid: s.at.info.LID, dlid: s.at.info.LID}
		if allowed = s.at.access(&fl); allowed == guard.None || allowed == guard.Taken {
			f.run()
			f.settle()
			return false
		}
	}
	status := s.at.agent(m, allowed)
	m.Respond(status)
	f.stats.Answered++
	f.run()
	f.settle()
	return true
}

// SetIsSM is Station.SetIsSM. It reports whether the adapter lets its host do that.
func (h *HostPort) SetIsSM(on bool) bool {
	h.station.SetIsSM(on)
	return h.station.fabric.PortInfo(h.station.at.node.name, h.station.at.num).CapabilityMask.Has(mad.IsSM) == on
}

// Events waits for changes of the port, and returns those since the last call, each once.
func (h *HostPort) Events() ([]PortEvent, error) {
	s := h.station
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	for h.events == [portEvents]bool{} && !s.closed {
		h.changed.Wait()
	}
	if s.closed {
		return nil, transport.ErrClosed
	}
	var out []PortEvent
	for e, happened := range h.events {
		if happened {
			out = append(out, PortEvent(e))
		}
	}
	h.events = [portEvents]bool{}
	if at := slices.Index(out, PortBecameActive); at >= 0 && slices.Contains(out, PortNoLongerActive) && h.seen.state == ib.PortActive {
		out[at], out[at+1] = out[at+1], out[at] // as it is now comes last
	}
	return out, nil
}

// notice compares the port with the state that its driver knows, and wakes the driver for changes. Called with mu held.
func (h *HostPort) notice() {
	p, had := h.station.at, &h.seen
	now := portSight{
		state: p.info.PortState, lid: p.info.LID, lmc: p.info.LMC, smLID: p.info.MasterSMLID, smSL: p.info.MasterSMSL, prefix: p.info.GIDPrefix,
	}
	for e, happened := range [portEvents]bool{
		LIDChanged:         now.lid != had.lid || now.lmc != had.lmc,
		GIDChanged:         now.prefix != had.prefix || p.guids != had.guids,
		PKeyChanged:        !bytes.Equal(p.pkeys, had.pkeys),
		PortBecameActive:   now.state == ib.PortActive && had.state != ib.PortActive,
		PortNoLongerActive: now.state != ib.PortActive && had.state == ib.PortActive,
		SMChanged:          now.smLID != had.smLID || now.smSL != had.smSL,
		Reregister:         p.reregister,
	} {
		if happened {
			h.events[e] = true
			h.changed.Broadcast()
			had.look(p)
		}
	}
	p.reregister = false
}

func (s *portSight) look(p *port) {
	s.state, s.lid, s.lmc = p.info.PortState, p.info.LID, p.info.LMC
	s.smLID, s.smSL, s.prefix = p.info.MasterSMLID, p.info.MasterSMSL, p.info.GIDPrefix
	s.pkeys, s.guids = append(s.pkeys[:0], p.pkeys...), p.guids
}

// Close pulls the adapter out of its host: nothing is received any more, and its IsSM bit is cleared. It is
// idempotent.
func (h *HostPort) Close() {
	s := h.station
	s.Close()
	f := s.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.at.host != h {
		return
	}
	s.at.host = nil
	f.hosts = slices.DeleteFunc(f.hosts, func(other *HostPort) bool { return other == h })
	h.arrived.Broadcast()
	h.changed.Broadcast()
}
