// Package counterwatch reads the performance management counters of each end port from time to time, and reports those that
// went backwards: a host has reset them, perhaps to hide something. The class (0x04) has no published key mechanism, so any
// host that reaches a device with a MAD can do that.
//
// It runs beside the Subnet Manager's core and like it: a [Watch] has no clock, randomness, goroutines or I/O, and is
// stepped by its owner. It only asks. Its requests are spread over the period, one after the other. So the number of
// requests a second is that of end ports, divided by the period.
//
// It also counts, whether that is configured or not, the packets that come from adapters which answer under none of their
// M_Keys: see [sm.PortCounted].
//
// The count of a switch is the sum over its ports: later traffic of the other ports can hide the reset of a port with few
// packets.
//
// It also reads how many packets the external ports of mute switches have refused. Mute switches send no trap 259 of a
// wrong P_Key. Such a counter has 8 bits and stays at 255: the watch clears it, and no other, from 128 on.
package counterwatch

import (
	"encoding/binary"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// Fabric returns the present state of an end port; *sm.Core is one.
type Fabric interface {
	KeyPort(topo.PortID) (sm.KeyPort, bool)
}

// Input is one thing that happened.
type Input interface{ input() }

// Seen is a new view of the core.
type Seen struct{ View *sm.View }

// Reply is how a request ended.
type Reply sm.Reply

// Woken says that the time of Output.Wake has come.
type Woken struct{}

func (*Seen) input()  {}
func (*Reply) input() {}
func (*Woken) input() {}

// Output is what one Step wants done. It is valid until the next Step.
type Output struct {
	Send    []sm.Request       // by LID to QP1; ids are those of this watch alone
	Counted []sm.PortCounted   // for the core
	Refused *sm.PacketsRefused // for the core; nil: nothing
	Events  []sm.Event
	Wake    time.Time // step Woken in by then; zero: no need
}

const (
	// window is how many requests are out at once.
	window = 32
	// attrExtended is PortCountersExtended (IBTA volume 1, 16.1.3.6).
	attrExtended mad.AttrID = 0x001D
	// attribute is where the attribute begins in a MAD of the class.
	attribute = 64
	// allPorts is the PortSelect that means all ports of a switch together.
	allPorts = 255
	// minInterval is the shortest time between two requests of a round.
	minInterval = time.Millisecond
)

// names are those of the counters that are read, 64 bits each, in the order in which the attribute has them from byte 8 on.
var names = [...]string{"data sent", "data received", "packets sent", "packets received"}

type counters [len(names)]uint64

// port is the known state of the counters of an end port.
type port struct {
	guid   ib.GUID
	doubts uint64 // of the core, when it was asked
	was    counters
	resets uint64
}

// asked is a request that is out.
type asked struct {
	port   topo.PortID
	guid   ib.GUID
	doubts uint64
	kind   question
	num    ib.PortNum // of an external port, of whose switch port is port 0
	of     ib.GUID    // adapter whose packets a switch is asked for; 0: the port itself
}

// question is the purpose of a request.
type question uint8

const (
	askTraffic question = iota
	askRefused
	askClear // of the refused packets
)

// Watch reads counters. Use New. It is not safe for concurrent use.
type Watch struct {
	period time.Duration
	fabric Fabric
	now    time.Time

	view  *sm.View
	ready bool // the fabric was settled once under us as master
	round []topo.PortID
	next  int       // in the round
	at    time.Time // when it is the turn of that one
	ports map[topo.PortID]*port
	mute  mute
	out   map[sm.RequestID]asked
	id    sm.RequestID
	did   Output

	refusingAt time.Time // when packets of adapters that refuse their keys are to be counted
}

// New makes a watch. The configuration must have been checked. Without a period it looks
// for resets nowhere.
func New(cfg sm.CountersConfig, fabric Fabric) *Watch {
	return &Watch{
		period: cfg.Period, fabric: fabric, ports: make(map[topo.PortID]*port), out: make(map[sm.RequestID]asked),
		mute: mute{period: cfg.Mute, ports: make(map[topo.PortID]*refusing)},
	}
}

// Step advances the watch by one input. It never blocks. now must not go back.
func (w *Watch) Step(now time.Time, in Input) Output {
	w.now = now
	w.did = Output{Send: w.did.Send[:0], Counted: w.did.Counted[:0], Events: w.did.Events[:0]}
	switch in := in.(type) {
	case *Seen:
		w.see(in.View)
	case *Reply:
		w.reply(in)
	}
	if w.ready && w.period > 0 {
		w.ask()
		w.did.Wake = w.at
	}
	if w.ready && w.mute.period > 0 {
		w.askMute()
		if w.did.Wake.IsZero() || w.mute.at.Before(w.did.Wake) {
			w.did.Wake = w.mute.at
		}
	}
	if w.askRefusing(); !w.refusingAt.IsZero() && (w.did.Wake.IsZero() || w.refusingAt.Before(w.did.Wake)) {
		w.did.Wake = w.refusingAt
	}
	return w.did
}

// Asks reports whether the watch asks, or waits for answers.
func (w *Watch) Asks() bool { return w.period > 0 || len(w.out) > 0 }

func (w *Watch) see(v *sm.View) {
	w.view = v
	switch {
	case v.State != ib.SMMaster:
		w.ready = false
	case v.Settled && !w.ready:
		w.ready, w.round, w.next = true, nil, 0
		w.at = w.now
		w.mute.round, w.mute.next, w.mute.at = nil, 0, w.now
	}
}

// ask sends the requests whose turn it is.
func (w *Watch) ask() {
	for len(w.out) < window && !w.now.Before(w.at) {
		if w.next >= len(w.round) {
			w.round, w.next = w.view.Fabric.EndPorts(), 0
		}
		w.at = w.now.Add(max(minInterval, w.period/time.Duration(max(1, len(w.round)))))
		if w.next < len(w.round) {
			w.get(w.round[w.next])
			w.next++
		}
	}
	if !w.now.Before(w.at) { // too many are out: go on when one has ended, or then
		w.at = w.now.Add(minInterval)
	}
}

func (w *Watch) get(p topo.PortID) {
	kp, ok := w.fabric.KeyPort(p)
	if !ok || !kp.Active {
		delete(w.ports, p)
		return
	}
	num := uint8(allPorts)
	if !kp.Switch {
		num = uint8(w.view.Fabric.Port(p).Num)
	}
	w.send(kp.LID, asked{port: p, guid: kp.GUID, doubts: kp.Doubts}, mad.MethodGet, attrExtended)[attribute+1] = num
}

// send makes a request and returns it, to be completed.
func (w *Watch) send(lid ib.LID, a asked, method mad.Method, attr mad.AttrID) *mad.MAD {
	if w.id++; w.id == 0 {
		w.id++
	}
	w.out[w.id] = a
	w.did.Send = append(w.did.Send, sm.Request{ID: w.id, LID: lid})
	m := &w.did.Send[len(w.did.Send)-1].MAD
	m.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: method, Attr: attr, TID: ib.TID(w.id)})
	return m
}

// reply takes the counters of a device.
func (w *Watch) reply(in *Reply) {
	a, ok := w.out[in.ID]
	if !ok {
		return
	}
	delete(w.out, in.ID)
	kp, ok := w.fabric.KeyPort(a.port)
	if in.Outcome != sm.Answered || in.MAD.Status() != mad.StatusOK || !ok || kp.GUID != a.guid || kp.Doubts != a.doubts {
		return
	}
	if a.kind != askTraffic {
		w.refused(&kp, &a, in.MAD[attribute+refusedOffset])
		return
	}
	if a.of != 0 {
		w.counted(a.of, &in.MAD)
		return
	}
	var is counters
	for i := range is {
		is[i] = binary.BigEndian.Uint64(in.MAD[attribute+8+8*i:])
	}
	p := w.ports[a.port]
	if p == nil || p.guid != a.guid || p.doubts != a.doubts { // it is another one, or was restarted
		w.ports[a.port] = &port{guid: a.guid, doubts: a.doubts, was: is}
		return
	}
	for i, name := range names {
		if is[i] < p.was[i] {
			p.resets++
			w.did.Events = append(w.did.Events, &sm.CountersReset{GUID: a.guid, Place: kp.Place, What: name, Was: p.was[i], Is: is[i], Times: p.resets})
			break
		}
	}
	p.was = is
}
