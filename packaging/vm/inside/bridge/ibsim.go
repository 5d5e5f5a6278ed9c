//go:build vm

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/softhca"
)

// ourTID marks requests of the bridge: ibsim's sockets leave the lower 48 bits as they are. The number is below it.
const (
	ourTID  ib.TID = 0x5F48 << 32
	maskTID ib.TID = 0xFFFF << 32
)

// answerLimit bounds the wait for an answer of the simulator.
const answerLimit = time.Second

// bridge is a node behind ibsim's sockets that is the adapter of this machine.
type bridge struct {
	fabric *ibsim.Port
	host   *softhca.Conn

	mu      sync.Mutex
	next    uint32
	waiting map[uint32]chan transport.Packet
	lid     ib.LID
	first   ib.PKey // of the table
}

func serveIbsim(ctx context.Context, device string, o ibsim.Options, name string, poll time.Duration) error {
	fabric, err := ibsim.Dial(ctx, o)
	if err != nil {
		return err
	}
	defer fabric.Close()
	host, err := softhca.Open(ctx, device)
	if err != nil {
		return err
	}
	defer host.Close()
	b := &bridge{fabric: fabric, host: host, waiting: map[uint32]chan transport.Packet{}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { fabric.Close(); host.Close() })
	defer stop()
	go func() { cancel(b.fromFabric()) }()
	if err := b.attach(name); err != nil {
		return err
	}
	go func() { cancel(b.watch(ctx, poll)) }()
	err = b.fromHost()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// attach describes the node to the kernel.
func (b *bridge) attach(name string) error {
	var info mad.NodeInfo
	if err := get(b, mad.AttrNodeInfo, 0, &info); err != nil {
		return err
	}
	a := softhca.Attach{
		Name: name, Ports: 1, NodeType: info.NodeType, PKeys: min(int(info.PartitionCap), softhca.MaxPKeys), Vendor: info.VendorID,
		Device: uint32(info.DeviceID), Revision: info.Revision, Firmware: [3]uint16{28, 43, 1014}, NodeGUID: info.NodeGUID,
		SystemGUID: info.SystemImageGUID, Description: b.fabric.Node(), HCAType: "MT4129",
	}
	payload, err := a.Payload()
	if err != nil {
		return err
	}
	return b.host.Write(&softhca.Message{Type: softhca.TypeAttach, Payload: payload})
}

// get asks the node's own agent.
func get[T any](b *bridge, attr mad.AttrID, mod uint32, to *T) error {
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGet, Attr: attr, Mod: mod}, &mad.Route{}, ib.MKey{})
	if !b.ask(&m) || m.Status() != mad.StatusOK {
		return fmt.Errorf("the node does not answer %v", attr)
	}
	return mad.Decode(m.Data(), to)
}

// ask has the node answer a MAD, in place.
func (b *bridge) ask(m *mad.MAD) bool {
	b.mu.Lock()
	b.next++
	number, lid := b.next, b.lid
	answer := make(chan transport.Packet, 1)
	b.waiting[number] = answer
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.waiting, number)
		b.mu.Unlock()
	}()
	p := transport.Packet{LID: ib.PermissiveLID, MAD: *m}
	if m.IsSMP() { // by a path without hops
		mad.NewSMP(&p.MAD, m.Header(), &mad.Route{}, m.MKey())
		copy(p.MAD.Data(), m.Data())
	} else {
		if lid == 0 {
			return false // without a subnet manager no agent can be asked
		}
		p.LID, p.QP = lid, 1
	}
	p.MAD.SetTID(ourTID | ib.TID(number))
	if _, err := b.fabric.Send([]transport.Packet{p}); err != nil {
		return false
	}
	select {
	case p = <-answer:
	case <-time.After(answerLimit):
		return false
	}
	if p.Undelivered || !p.MAD.IsResponse() {
		return false
	}
	before := *m
	m.SetMethod(p.MAD.Method())
	m.SetStatus(p.MAD.Status())
	if m.IsSMP() {
		copy(m.Data(), p.MAD.Data())
	} else {
		copy(m[mad.HeaderSize:], p.MAD[mad.HeaderSize:])
	}
	m.SetTID(before.TID())
	return true
}

// fromFabric passes packets for the host's port to the host.
func (b *bridge) fromFabric() error {
	in := make([]transport.Packet, 64)
	for {
		n, err := b.fabric.Receive(in)
		if err != nil {
			return err
		}
		for i := range in[:n] {
			if err := b.arrived(&in[i]); err != nil {
				return err
			}
		}
	}
}

func (b *bridge) arrived(p *transport.Packet) error {
	if tid := p.MAD.TID(); tid&maskTID == ourTID {
		b.mu.Lock()
		answer := b.waiting[uint32(tid)]
		b.mu.Unlock()
		if answer != nil {
			select {
			case answer <- *p:
			default:
			}
		}
		return nil
	}
	if p.Undelivered {
		return nil // the kernel keeps its own time
	}
	m := softhca.Message{Type: softhca.TypeReceive, Port: 1, SLID: p.LID, SourceQP: p.QP, Payload: p.MAD[:]}
	if p.MAD.IsSMP() {
		m.SourceQP = 0
	} else {
		m.DestQP, m.QKey, m.PKey = 1, 0x8001_0000, b.firstPKey()
	}
	response := p.MAD.IsResponse() || p.MAD.Method() == mad.MethodTrapRepress
	if response { // ibsim wrote the client's slot into it
		p.MAD.SetTID(p.MAD.TID() &^ (0xFFFF << 48))
	}
	if p.MAD.IsDR() {
		p.MAD.SetHopPointer(p.MAD.HopCount())
		if response {
			p.MAD.SetReturning(true)
			p.MAD.SetHopPointer(min(1, p.MAD.HopCount()))
		}
	}
	if err := b.host.Write(&m); err != nil && !softhca.IsRefusal(err) {
		return err
	}
	return nil
}

// fromHost does what the kernel asks for.
func (b *bridge) fromHost() error {
	for {
		m, err := b.host.Read()
		if err != nil {
			return err
		}
		switch m.Type {
		case softhca.TypeAttached:
			if m.Status != 0 {
				return fmt.Errorf("the kernel refuses the adapter: %w", syscall.Errno(m.Status))
			}
		case softhca.TypeSend:
			err = b.send(&m)
		case softhca.TypeRequest:
			if len(m.Payload) == mad.Size {
				go b.answer(m.Token, mad.MAD(m.Payload))
			}
		case softhca.TypeCapability:
			if on := mad.CapabilityMask(m.Value).Has(mad.IsSM); on || mad.CapabilityMask(m.Value2).Has(mad.IsSM) {
				err = b.fabric.SetIsSM(on)
			}
		default: // the kernel does not send the rest
		}
		if err != nil {
			return err
		}
	}
}

// answer answers a request for the firmware. Linux asks one at a time.
func (b *bridge) answer(token uint32, m mad.MAD) {
	reply := softhca.Message{Type: softhca.TypeReply, Port: 1, Token: token}
	if b.ask(&m) {
		reply.Payload = m[:]
	} else {
		reply.Status = uint32(syscall.EIO)
	}
	_ = b.host.Write(&reply)
}

// send puts a MAD on the wire; data does not cross it.
func (b *bridge) send(m *softhca.Message) error {
	if m.Opcode != softhca.OpDatagram || m.DestQP > 1 || len(m.Payload) != mad.Size {
		return nil
	}
	p := transport.Packet{LID: m.DLID, QP: m.DestQP, MAD: mad.MAD(m.Payload)}
	if p.MAD.IsDR() && !p.MAD.Returning() {
		p.MAD.SetHopPointer(0) // the simulator counts from the sender
	}
	_, err := b.fabric.Send([]transport.Packet{p})
	return err
}

// sight is the state whose changes are reported to the kernel.
type sight struct {
	info  mad.PortInfo
	pkeys [mad.DataSize]byte // the first block: subnet managers begin there
}

// watch looks at the port and reports changes to the kernel.
func (b *bridge) watch(ctx context.Context, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last sight
	for known := false; ; known = true {
		now, table, err := b.look()
		if err == nil {
			b.mu.Lock()
			b.lid, b.first = now.info.LID, ib.PKey(binary.BigEndian.Uint16(now.pkeys[:]))
			b.mu.Unlock()
			if known {
				err = b.tell(&last, &now, table)
			}
			last = now
		}
		if err != nil && !softhca.IsRefusal(err) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *bridge) look() (now sight, table []byte, err error) {
	if err := get(b, mad.AttrPortInfo, 1, &now.info); err != nil {
		return now, nil, err
	}
	var node mad.NodeInfo
	if err := get(b, mad.AttrNodeInfo, 0, &node); err != nil {
		return now, nil, err
	}
	size := 2 * min(int(node.PartitionCap), softhca.MaxPKeys)
	for block := 0; len(table) < size; block++ {
		var m mad.MAD
		mad.NewSMP(&m, mad.Header{Method: mad.MethodGet, Attr: mad.AttrPKeyTable, Mod: uint32(block)}, &mad.Route{}, ib.MKey{})
		if !b.ask(&m) || m.Status() != mad.StatusOK {
			return now, nil, errors.New("the node does not answer P_KeyTable")
		}
		table = append(table, m.Data()...)
	}
	table = table[:size]
	copy(now.pkeys[:], table)
	return now, table, nil
}

func (b *bridge) tell(last, now *sight, table []byte) error {
	var events []softhca.Event
	if now.info.LID != last.info.LID || now.info.LMC != last.info.LMC {
		events = append(events, softhca.EventLID)
	}
	if now.info.GIDPrefix != last.info.GIDPrefix {
		events = append(events, softhca.EventGID)
	}
	if now.info.MasterSMLID != last.info.MasterSMLID {
		events = append(events, softhca.EventSM)
	}
	if active := now.info.PortState == ib.PortActive; active != (last.info.PortState == ib.PortActive) {
		events = append(events, map[bool]softhca.Event{true: softhca.EventActive, false: softhca.EventError}[active])
	}
	if !bytes.Equal(now.pkeys[:], last.pkeys[:]) {
		if err := b.host.Write(&softhca.Message{Type: softhca.TypePKeys, Port: 1, Payload: table}); err != nil {
			return err
		}
		events = slices.Insert(events, 0, softhca.EventPKey)
	}
	for _, e := range events {
		if err := b.host.Write(&softhca.Message{Type: softhca.TypeEvent, Port: 1, Value: uint32(e)}); err != nil {
			return err
		}
	}
	return nil
}

// firstPKey is what GMPs are said to come with: their own is not on this wire.
func (b *bridge) firstPKey() ib.PKey {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first
}
