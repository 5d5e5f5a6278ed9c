package softhcaserver

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport/softhca"
)

// read handles the messages of the host, until the connection ends.
func (a *Adapter) read() {
	for {
		m, err := a.conn.Read()
		if err != nil {
			a.stop(err)
			return
		}
		a.take(&m)
	}
}

// take handles one message. It ignores invalid messages, because the kernel that sends them is not trusted.
func (a *Adapter) take(m *softhca.Message) {
	if m.Type == softhca.TypeAttached {
		a.attached(m.Status)
		return
	}
	if m.Port < 1 || int(m.Port) > len(a.ports) {
		return
	}
	p := a.ports[m.Port-1]
	switch m.Type {
	case softhca.TypeSend:
		p.packet(m)
	case softhca.TypeRequest:
		p.request(m)
	case softhca.TypeCapability:
		switch {
		case mad.CapabilityMask(m.Value).Has(mad.IsSM):
			p.host.SetIsSM(true)
		case mad.CapabilityMask(m.Value2).Has(mad.IsSM):
			p.host.SetIsSM(false)
		}
	default: // a peer does not ask for the rest
	}
}

func (a *Adapter) attached(status uint32) {
	select {
	case <-a.registered:
		return
	default:
	}
	if status != 0 {
		a.refused = errors.Join(errors.New("the host refuses the adapter"), syscall.Errno(status))
	}
	close(a.registered)
}

// request answers for the firmware.
func (p *port) request(m *softhca.Message) {
	a := p.adapter
	if len(m.Payload) != mad.Size {
		return
	}
	a.mu.Lock()
	behavior := a.behavior
	a.mu.Unlock()
	if behavior.Silent {
		return
	}
	in := mad.MAD(m.Payload)
	token, byHost := m.Token, m.Flags&softhca.FlagHost != 0
	if behavior.Delay == 0 {
		a.must(p.answer(&in, token, byHost))
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var t *time.Timer
	t = time.AfterFunc(behavior.Delay, func() {
		a.mu.Lock()
		delete(a.late, t)
		a.mu.Unlock()
		a.must(p.answer(&in, token, byHost))
	})
	a.late[t] = struct{}{}
}

// answer asks the node's agent and makes the reply.
func (p *port) answer(in *mad.MAD, token uint32, byHost bool) softhca.Message {
	reply := softhca.Message{Type: softhca.TypeReply, Port: p.number, Token: token}
	if !p.host.Ask(in, byHost) {
		reply.Status = uint32(syscall.EIO)
		return reply
	}
	reply.Payload = in[:]
	return reply
}

// gmpQKey is the well-known Q_Key of queue pair 1 (IBTA volume 1, 10.2.4).
const gmpQKey = 0x8001_0000

// packet sends a packet of the host on the link.
func (p *port) packet(m *softhca.Message) {
	isMAD := m.Opcode == softhca.OpDatagram && m.DestQP <= 1 && len(m.Payload) == mad.Size
	if isMAD && (m.DestQP == 0) == (m.SourceQP == 0) && (m.DestQP == 0 || m.QKey == gmpQKey) {
		out := sim.HostPacket{
			MAD: mad.MAD(m.Payload), SLID: m.SLID, DLID: m.DLID, SQP: m.SourceQP, DQP: m.DestQP, PKey: m.PKey, SL: m.SL, GRH: routeHeader(m),
		}
		if out.MAD.IsSMP() == (m.DestQP == 0) {
			p.host.Send(&out)
		}
		return
	}
	p.data(m)
}

// data takes a packet of a program to the adapters that it reaches. The fabric judges its headers; its content
// goes along.
func (p *port) data(m *softhca.Message) {
	f, from := p.adapter.server.fabric, p.host.Endpoint()
	info := f.PortInfo(from.Node, from.Port)
	d := sim.Data{
		SLID: info.LID | m.SLID&(1<<info.LMC-1), DLID: m.DLID, SL: m.SL, PKey: m.PKey, SourceQP: m.SourceQP, DestQP: m.DestQP,
		GRH: routeHeader(m), Payload: len(m.Payload),
	}
	if m.Opcode == softhca.OpDatagram {
		d.QKey = m.QKey
	}
	if !p.host.MaySend(m.PKey) {
		return
	}
	r, err := f.Inject(from, d)
	if err != nil {
		return
	}
	for _, at := range r.To {
		p.adapter.server.deliver(at, m, &d)
	}
}

// deliver passes a copy of a data packet to the adapter that is plugged in at a port. A port without an adapter has no
// queue pairs for it.
func (s *Server) deliver(at sim.Endpoint, m *softhca.Message, d *sim.Data) {
	s.mu.Lock()
	p := s.ports[at]
	s.mu.Unlock()
	if p == nil {
		return
	}
	out := *m
	out.Type, out.Port, out.Payload = softhca.TypeReceive, p.number, slices.Clone(m.Payload)
	out.SLID, out.DLID = d.SLID, p.pathBits(d.DLID)
	out.Flags &^= softhca.FlagPath
	p.tellPKeys()
	p.adapter.send(out)
}

// receive passes the MADs that reach the port to the host.
func (p *port) receive() {
	packets := make([]sim.HostPacket, 64)
	for {
		n, err := p.host.Receive(packets)
		if err != nil {
			return
		}
		for i := range packets[:n] {
			if !packets[i].MAD.IsSMP() {
				p.tellPKeys()
			}
			p.adapter.send(p.incoming(&packets[i]))
		}
	}
}

// incoming is the message about a MAD that came.
func (p *port) incoming(in *sim.HostPacket) softhca.Message {
	m := softhca.Message{
		Type: softhca.TypeReceive, Port: p.number, SourceQP: in.SQP, DestQP: in.DQP, SLID: in.SLID, DLID: p.pathBits(in.DLID), PKey: in.PKey, SL: in.SL,
		Payload: slices.Clone(in.MAD[:]),
	}
	if in.MAD.IsSMP() {
		m.SourceQP, m.DestQP = 0, 0
	} else {
		m.QKey = gmpQKey
		m.DestQP = max(1, in.DQP)
	}
	if in.GRH != nil {
		m.Flags |= softhca.FlagGRH
		putRouteHeader(&m.GRH, in.GRH, len(m.Payload))
	}
	return m
}

// watch reports changes of the port to the host.
func (p *port) watch() {
	for {
		events, err := p.host.Events()
		if err != nil {
			return
		}
		p.tellPKeys()
		for _, e := range events {
			p.adapter.must(softhca.Message{Type: softhca.TypeEvent, Port: p.number, Value: uint32(kernelEvents[e])})
		}
	}
}

// tellPKeys sends the P_Key table to the adapter after a change. The table arrives before each packet that is judged by it.
func (p *port) tellPKeys() {
	at := p.host.Endpoint()
	p.mu.Lock()
	defer p.mu.Unlock()
	table := pkeyTable(p.adapter.server.fabric.PKeyTable(at.Node, at.Port))
	if !bytes.Equal(table, p.table) {
		p.table = table
		p.adapter.must(softhca.Message{Type: softhca.TypePKeys, Port: p.number, Payload: table})
	}
}

var kernelEvents = map[sim.PortEvent]softhca.Event{
	sim.LIDChanged:         softhca.EventLID,
	sim.GIDChanged:         softhca.EventGID,
	sim.PKeyChanged:        softhca.EventPKey,
	sim.PortBecameActive:   softhca.EventActive,
	sim.PortNoLongerActive: softhca.EventError,
	sim.SMChanged:          softhca.EventSM,
	sim.Reregister:         softhca.EventReregister,
}
