package keymgr

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

func portID(p int32) topo.PortID { return topo.PortID(p) }

// see takes a new view: it examines all possible changes.
func (m *Manager) see(v *sm.View) {
	old := m.view
	m.view = v
	m.cabling.fabric = v.Fabric
	var before *topo.Fabric
	if old != nil {
		before = old.Fabric
	}
	if v.Settled && !m.settled {
		m.calm = m.now
	}
	m.settled = v.Settled
	if master := v.State == ib.SMMaster; master != m.master {
		m.master = master
		m.ready, before = false, nil
		if !master {
			m.standDown()
			return
		}
	}
	if !m.master {
		return
	}
	if v.LID != m.lid {
		m.lid = v.LID
		m.trapsElsewhere()
	}
	if v.Fabric != nil && v.Fabric != before {
		for p := range v.Fabric.ChangedPorts(before) {
			m.look(p, before)
		}
	}
	if v.Settled && !m.ready {
		m.ready = true
		m.each(m.queue)
	}
	if v.Settled && m.parked > 0 {
		m.parked = 0
		m.each(m.unpark)
	}
}

// unpark goes on with an agent that waited for the fabric to be settled.
func (m *Manager) unpark(x ref) {
	if _, a, _ := m.at(x); a.parked {
		a.parked = false
		m.queue(x)
	}
}

// standDown drops all work under way: another manager is master.
func (m *Manager) standDown() {
	for i := range m.devices {
		m.down(int32(i))
	}
}

// trapsElsewhere has all devices asked where their traps go: our LID changed.
func (m *Manager) trapsElsewhere() {
	m.each(func(x ref) {
		_, a, _ := m.at(x)
		a.trapsOurs = false
		if m.ready {
			m.queue(x)
		}
	})
}

// look takes what became of a port.
func (m *Manager) look(p topo.PortID, before *topo.Fabric) {
	f := m.view.Fabric
	if !f.IsEndPort(p) {
		m.lookAtLink(p, before)
	}
	dev := m.deviceOf(p)
	kp, ok := m.fabric.KeyPort(p)
	if !ok || !kp.Active {
		if dev >= 0 {
			m.down(dev)
			if !ok {
				m.drop(dev)
			}
		}
		return
	}
	if dev >= 0 && m.devices[dev].guid != kp.GUID {
		m.down(dev)
		m.drop(dev)
		dev = -1
	}
	if dev < 0 {
		if dev = m.add(p, &kp); dev < 0 {
			return
		}
	}
	d := &m.devices[dev]
	if d.lid != kp.LID {
		m.moveLID(dev, kp.LID)
	}
	if d.up && d.doubts == kp.Doubts {
		m.reconsider(dev, &kp)
		return
	}
	d.up, d.doubts = true, kp.Doubts
	for k := range m.classes {
		m.resetAgent(ref{dev, uint8(k)})
	}
}

// reconsider examines agents whose key was withheld, once it is no longer withheld.
func (m *Manager) reconsider(dev int32, kp *sm.KeyPort) {
	for k := range m.classes {
		x := ref{dev, uint8(k)}
		if _, a, _ := m.at(x); kp.Verified && a.stage == failing && a.withheld {
			a.due = 0
			m.due(x)
		}
	}
}

// lookAtLink updates a switch when a neighbour came or went.
func (m *Manager) lookAtLink(p topo.PortID, before *topo.Fabric) {
	f := m.view.Fabric
	n := f.NodeOf(p)
	if n.Type != ib.NodeSwitch || m.classes[n2n].cfg.Enable == sm.KeyIgnore {
		return
	}
	if before != nil && int(p) < before.NumPorts() && before.Port(p).Peer == f.Port(p).Peer {
		return
	}
	if dev := m.deviceOf(n.FirstPort); dev >= 0 {
		m.refresh(dev)
	}
}

// add adds a device. It drops another device with the same GUID: the core has decided which of the two is right.
func (m *Manager) add(p topo.PortID, kp *sm.KeyPort) int32 {
	if other, ok := m.byGUID[kp.GUID]; ok {
		m.down(other)
		m.drop(other)
	}
	return m.enter(p, kp)
}

func (m *Manager) moveLID(dev int32, lid ib.LID) {
	m.setLID(dev, lid)
	if m.devices[dev].node != nil { // it and its neighbours name it by its LID
		m.refresh(dev)
		m.refreshNeighbours(dev)
	}
}

// down takes that a port cannot be reached.
func (m *Manager) down(dev int32) {
	d := &m.devices[dev]
	if !d.up {
		return
	}
	d.up = false
	for k := range m.classes {
		x := ref{dev, uint8(k)}
		_, a, _ := m.at(x)
		a.life++
		a.out, a.due = false, 0
		m.to(x, off)
		m.turned(x)
	}
	if d.node != nil {
		m.refreshNeighbours(dev) // some may wait for it
	}
}

// drop forgets a device that is gone. Its keys stay in the book.
func (m *Manager) drop(dev int32) {
	d := &m.devices[dev]
	fresh := device{}
	for k := range m.classes {
		a := &d.agents[k]
		fresh.agents[k] = agent{life: a.life + 1, queued: a.queued}
		if a.counted {
			m.classes[k].single--
		}
	}
	m.leave(dev, fresh)
}
