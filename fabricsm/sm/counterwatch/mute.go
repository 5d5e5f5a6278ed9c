package counterwatch

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

const (
	// attrPortCounters is PortCounters (IBTA volume 1, 16.1.3.5).
	attrPortCounters mad.AttrID = 0x0012
	// refusedOffset is where it has PortRcvConstraintErrors, and refusedSelect the bit of
	// CounterSelect that names it.
	refusedOffset = 17
	refusedSelect = 1 << 8
	// clearFrom is the value from which the counter is cleared, so that it does not stay
	// at 255.
	clearFrom = 128
	// minMuteInterval is the shortest time between two requests: mute switches cost no
	// more than 200 requests a second, however many there are.
	minMuteInterval = 5 * time.Millisecond
)

// mute reads how many packets mute switches have refused.
type mute struct {
	period time.Duration
	round  []topo.PortID // external ports
	next   int           // in the round
	at     time.Time     // when it is the turn of that one
	ports  map[topo.PortID]*refusing
}

// refusing is the known state of an external port.
type refusing struct {
	guid ib.GUID // of the switch
	peer ib.GUID // port GUID of the adapter behind the port, when the counter was read
	was  uint8
}

// askMute sends the requests whose turn it is.
func (w *Watch) askMute() {
	u := &w.mute
	for len(w.out) < window && !w.now.Before(u.at) {
		if u.next >= len(u.round) {
			u.round, u.next = u.adapters(w.view), 0
		}
		u.at = w.now.Add(max(minMuteInterval, u.period/time.Duration(max(1, len(u.round)))))
		if u.next < len(u.round) {
			w.getRefused(u.round[u.next])
			u.next++
		}
	}
	if !w.now.Before(u.at) {
		u.at = w.now.Add(minMuteInterval)
	}
}

// adapters returns the ports of mute switches that are cabled to an adapter, and
// forgets others.
func (u *mute) adapters(v *sm.View) (out []topo.PortID) {
	known := u.ports
	u.ports = make(map[topo.PortID]*refusing)
	for _, id := range v.MuteSwitches() {
		for n := range v.Fabric.Node(id).NumPorts {
			p := v.Fabric.PortOf(id, ib.PortNum(n)+1)
			if p == topo.None || peerOf(v, p) == 0 {
				continue
			}
			out = append(out, p)
			if known[p] != nil {
				u.ports[p] = known[p]
			}
		}
	}
	return out
}

// peerOf returns the port GUID of the adapter behind an external port; 0: there is none.
func peerOf(v *sm.View, p topo.PortID) ib.GUID {
	peer := v.Fabric.Port(p).Peer
	if peer == topo.None || v.Fabric.NodeOf(peer).Type == ib.NodeSwitch {
		return 0
	}
	return v.Fabric.Port(peer).GUID
}

func (w *Watch) getRefused(p topo.PortID) {
	f := w.view.Fabric
	if int(p) >= f.NumPorts() {
		return
	}
	num, first := f.Port(p).Num, f.NodeOf(p).FirstPort
	kp, ok := w.fabric.KeyPort(first)
	if !ok || !kp.Active || !kp.Switch {
		delete(w.mute.ports, p)
		return
	}
	a := asked{port: first, guid: kp.GUID, doubts: kp.Doubts, kind: askRefused, num: num}
	w.send(kp.LID, a, mad.MethodGet, attrPortCounters)[attribute+1] = uint8(num)
}

// refused processes PortRcvConstraintErrors of an external port, as it is or after it was cleared.
func (w *Watch) refused(kp *sm.KeyPort, a *asked, is uint8) {
	p := w.view.Fabric.PortOf(w.view.Fabric.Port(a.port).Node, a.num)
	if p == topo.None {
		return
	}
	peer := peerOf(w.view, p)
	port := w.mute.ports[p]
	switch {
	case a.kind == askClear:
		if port != nil && port.guid == a.guid && is < port.was {
			port.was = is
		}
		return
	case port == nil || port.guid != a.guid:
		port = &refusing{guid: a.guid, peer: peer, was: is}
		w.mute.ports[p] = port
	default:
		rose := is
		if is >= port.was { // else it began again: the switch was restarted, or reset
			rose = is - port.was
		}
		if rose > 0 {
			w.did.Refused = &sm.PacketsRefused{Switch: a.guid, Port: a.num, Count: uint32(rose)}
			if peer == port.peer {
				w.did.Refused.Peer = peer
			}
		}
		port.was, port.peer = is, peer
	}
	if is >= clearFrom {
		again := *a
		again.kind = askClear
		m := w.send(kp.LID, again, mad.MethodSet, attrPortCounters)
		m[attribute+1] = uint8(a.num)
		m[attribute+2] = refusedSelect >> 8
	}
}
