package fabric

import (
	"fmt"
	"time"

	"portcullis/api/fabric/records"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// maxShownPKeys bounds the P_Keys that the record of a port lists: a host may
// show a table as large as it likes.
const maxShownPKeys = 64

// tick is called every nodesEvery.
func (b *book) tick() {
	b.foreign.publish(b.clock())
	if b.seen == nil {
		return
	}
	if b.stale || b.clock().Sub(b.written) >= heartbeat {
		b.show()
	}
	b.lookTakeover()
}

// earlyFor bounds for how long records of nodes are left as an earlier attachment wrote them.
const earlyFor = time.Minute

// isEarly reports whether the subnet manager has yet to settle the fabric for the first time: until then names, states and
// tables of nodes are still being read. The records would be written twice each, which every instance follows while one of
// them takes over.
func (b *book) isEarly() bool { return !b.settledOnce && b.clock().Sub(b.began) < earlyFor }

// show brings nodes and the state of the subnet manager up to date.
func (b *book) show() {
	now := b.clock()
	b.written, b.stale, b.judged = now, false, true
	live := map[string]bool{}
	for _, id := range b.seen.fabric.ByGUID() {
		key := b.seen.fabric.Node(id).GUID.String()
		if live[key] {
			continue // a second node with this GUID: the first known stands
		}
		live[key] = true
		if _, known := b.nodes.get(key); !known || !b.isEarly() {
			b.nodes.set(key, b.node(id))
		}
	}
	missing := b.judgeSight(live, now)
	s := b.sight.newest()
	for _, key := range missing {
		n, _ := b.nodes.get(key)
		switch {
		case s.Frozen():
			n.OutOfSight = true
			b.nodes.set(key, n)
		case b.seen.settled:
			b.nodes.drop(key)
			b.sight.gone[key] = goneNode{node: n, at: now}
		}
	}
	state := b.seen.state
	state.Updated, state.Sight = now, s
	state.Settled = state.Settled && s.State != v1.SightBlind
	b.sms.set(records.Master, state)
}

func (b *book) node(id topo.NodeID) v1.Node {
	f := b.seen.fabric
	n := f.Node(id)
	out := v1.Node{GUID: n.GUID, Type: n.Type.String(), Description: n.Description, NumPorts: int(n.NumPorts), Ports: []v1.Port{}}
	for num := 0; num <= int(n.NumPorts); num++ {
		pid := f.PortOf(id, ib.PortNum(num))
		if pid == topo.None {
			continue
		}
		p := f.Port(pid)
		if p.Peer == topo.None && !(num == 0 && n.Type == ib.NodeSwitch) {
			continue
		}
		out.Ports = append(out.Ports, b.port(pid, p))
	}
	return out
}

func (b *book) port(id topo.PortID, p *topo.Port) v1.Port {
	f := b.seen.fabric
	out := v1.Port{Num: p.Num, GUID: p.GUID, LID: p.LID, State: p.State.String()}
	if p.Peer != topo.None {
		out.Peer = fmt.Sprintf("%v/%d", f.NodeOf(p.Peer).GUID, f.Port(p.Peer).Num)
	}
	out.PKeys, _ = b.seen.pkeys(id)
	if more := len(out.PKeys) - maxShownPKeys; more > 0 {
		out.PKeys, out.PKeysOmitted = out.PKeys[:maxShownPKeys], more
	}
	return out
}
