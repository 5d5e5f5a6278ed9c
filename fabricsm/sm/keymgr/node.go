package keymgr

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// node has the keys of class 0x0C of a switch: its own node key, which others show to it, and those of its neighbours. A
// manager with the manager key may write both.
type node struct {
	ring    *keys.Ring
	blocks  []*mad.N2NNeighborsInfo // as the switch has them; nil: not read
	sets    uint8                   // writes of a block without effect
	none    bool                    // it does not know NeighborsInfo
	failed  bool                    // it cannot be brought to its node key now
	decided bool                    // it is clear whether it has a node key, and which
}

// maxBlocks is how many blocks the modifier of NeighborsInfo can name.
const maxBlocks = 16

// workNode brings a switch to its node key, and then to those of its neighbours.
// It reports whether something is under way, or waited for.
func (m *Manager) workNode(x ref, kp *sm.KeyPort, key keys.Key) bool {
	d, _, _ := m.at(x)
	n := d.node
	if n.none || n.failed {
		m.decide(x.dev)
		return false
	}
	if m.readBlocks(x, kp, key) || m.workNodeKey(x, kp, key) {
		return true
	}
	m.decide(x.dev)
	if n.failed {
		return false
	}
	if m.cabling.undecided(x.dev) {
		m.to(x, waiting)
		return true
	}
	for b := range n.blocks {
		if m.cabling.block(x.dev, b, current(n.ring)) == *n.blocks[b] {
			continue
		}
		if n.sets == maxSets {
			m.nodeFails(x, kp, "it does not keep the keys of its neighbours")
			return false
		}
		m.setBlock(x, opBlockSet, kp.LID, b, key, current(n.ring))
		return true
	}
	n.sets = 0
	return false
}

// readBlocks asks for a block that is not known.
func (m *Manager) readBlocks(x ref, kp *sm.KeyPort, key keys.Key) bool {
	d, _, _ := m.at(x)
	for b, known := range d.node.blocks {
		if known == nil {
			m.getBlock(x, opBlock, kp.LID, b, key)
			return true
		}
	}
	return false
}

// workNodeKey performs the next step of the node key's ring.
func (m *Manager) workNodeKey(x ref, kp *sm.KeyPort, key keys.Key) bool {
	d, _, _ := m.at(x)
	n := d.node
	if !held(n.ring) && !m.planNode(x, kp) {
		return false
	}
	s := n.ring.Next(ib.Place{}, true)
	m.out.ring(n.ring)
	switch s.Do {
	case keys.Ask:
		m.getBlock(x, opNodeAsk, kp.LID, 0, key)
		return true
	case keys.Program:
		m.setBlock(x, opNodeProgram, kp.LID, 0, key, s.New)
		return true
	case keys.Nothing:
	default:
		m.nodeFails(x, kp, "it does not keep its node key")
	}
	return false
}

// planNode begins to assign a node key to a switch. It replaces any node key that the switch shows.
func (m *Manager) planNode(x ref, kp *sm.KeyPort) bool {
	d, _, _ := m.at(x)
	r := m.book.Open(keys.N2NNodeKey, d.guid, ib.Place{})
	h, err := m.cfg.Source.Make(keys.N2NNodeKey, d.guid, r.NextEpoch(), m.now)
	if err == nil {
		err = r.Plan(h)
	}
	if err != nil {
		m.nodeFails(x, kp, err.Error())
		return false
	}
	d.node.ring = r
	r.Answered(keys.Seen{})
	return true
}

func (m *Manager) nodeFails(x ref, kp *sm.KeyPort, reason string) {
	d, _, _ := m.at(x)
	d.node.failed = true
	m.out.event(&sm.ClassKeyProblem{Kind: keys.N2NNodeKey, GUID: d.guid, Place: kp.Place, Reason: reason})
}

// current returns the key that a device is known to have, or had last.
func current(r *keys.Ring) keys.Key {
	if r == nil {
		return keys.Key{}
	}
	rec := r.Record()
	return rec.Current.Key
}

// decide notes that it is clear which node key a switch has.
func (m *Manager) decide(dev int32) {
	if n := m.devices[dev].node; n != nil && !n.decided {
		n.decided = true
		m.refreshNeighbours(dev)
	}
}

// refreshNeighbours has the neighbours of a switch check their records of it.
func (m *Manager) refreshNeighbours(dev int32) {
	m.cabling.eachNeighbor(dev, func(far int32) bool {
		m.refresh(far)
		return true
	})
}

// refresh has a switch check its records of its neighbours.
func (m *Manager) refresh(dev int32) {
	x := ref{dev, n2n}
	if d, a, _ := m.at(x); d.up && (a.stage == idle || a.stage == waiting) && m.ready {
		m.to(x, working)
		m.queue(x)
	}
}

func (m *Manager) getBlock(x ref, o op, lid ib.LID, b int, key keys.Key) {
	m.send(x, o, lid, mad.Header{Method: mad.MethodGet, Attr: mad.N2NAttrNeighborsInfo, Mod: uint32(b)}, key.M())
}

// setBlock writes a block with the node key own.
func (m *Manager) setBlock(x ref, o op, lid ib.LID, b int, key, own keys.Key) {
	info := m.cabling.block(x.dev, b, own)
	m.putBlock(x, o, lid, b, key, &info)
}

func (m *Manager) putBlock(x ref, o op, lid ib.LID, b int, key keys.Key, info *mad.N2NNeighborsInfo) {
	data := m.send(x, o, lid, mad.Header{Method: mad.MethodSet, Attr: mad.N2NAttrNeighborsInfo, Mod: uint32(b)}, key.M())
	must(mad.Encode(data, info))
}

// gotNeighbors takes a block that a switch showed.
func (m *Manager) gotNeighbors(x ref, o op, b int, data []byte) {
	d, _, _ := m.at(x)
	n := d.node
	if n == nil || b >= len(n.blocks) {
		return
	}
	info := new(mad.N2NNeighborsInfo)
	must(mad.Decode(data, info))
	switch o {
	case opNodeProgram:
		n.ring.Sent(true)
		return
	case opBlockSet:
		n.sets++
	case opNodeAsk:
		found := n.ring.Answered(keys.Seen{Key: keys.New(info.Neighbor[0].Key.Reveal())})
		if found == keys.FoundForeign {
			n.ring.Answered(keys.Seen{}) // a manager with the manager key may overwrite it
		}
		m.out.ring(n.ring)
		if found == keys.FoundNew {
			m.refreshNeighbours(x.dev)
		}
	default:
	}
	n.blocks[b] = info
}
