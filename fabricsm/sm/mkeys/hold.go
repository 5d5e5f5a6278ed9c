package mkeys

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// keyPort returns the port whose M_Key guards the attribute that a piece of work requests from a node.
func (m *Keeper) keyPort(x work.Ref, n topo.NodeID) topo.PortID {
	if tn := m.topo.Node(n); tn.Type == ib.NodeSwitch {
		return tn.FirstPort
	}
	if m.core.Entry(x) != topo.None {
		return x.Port()
	}
	if up := m.fabric.Up(n); up != topo.None {
		if peer := m.topo.Peer(up); peer != topo.None {
			return peer
		}
	}
	_, own := m.fabric.Root()
	return own
}

// Holds reports whether a piece of work has to wait until it is known which key its target has. Only the work that finds
// that out may go ahead. It also returns the port that has the key.
func (m *Keeper) Holds(x work.Ref, n topo.NodeID) (topo.PortID, bool) {
	p := m.keyPort(x, n)
	r := m.places.Ring(p)
	if r == nil && m.cfg.Import != nil {
		r = m.takeOver(p)
	}
	if r == nil || x.Class == work.Info && x.Port() == p {
		return p, false
	}
	if m.IsSetOut(p) && (x.Class != work.Set || x.Port() != p) {
		return p, true
	}
	if r.IsKnown() {
		return p, false // where the place withholds the key, too: no request finds that out
	}
	switch m.places.Next(p, r).Do {
	case keys.Ask, keys.Stranded, keys.Foreign:
		return p, true
	case keys.Program:
		return p, x.Class != work.Set || x.Port() != p
	default:
		return p, false
	}
}

// IsSetOut reports whether a request that is out sets the key of a device: a later request might show the wrong key.
func (m *Keeper) IsSetOut(p topo.PortID) bool { return m.isSetting(p) && m.queue.IsAsked(work.Set, p) }

func (m *Keeper) isSetting(p topo.PortID) bool { return int(p) < len(m.setting) && m.setting[p] }

func (m *Keeper) setSetting(p topo.PortID, is bool) {
	if is {
		m.setting = topo.ExtendPorts(m.setting, m.topo.NumPorts())
	}
	if int(p) < len(m.setting) {
		m.setting[p] = is
	}
}

// Await puts work off until the key of its target is known.
func (m *Keeper) Await(x work.Ref, p topo.PortID) {
	if m.waiting == nil {
		m.waiting = make(map[topo.PortID][]work.Ref)
	}
	m.waiting[p] = append(m.waiting[p], x)
	if m.places.Next(p, m.places.Ring(p)).Do == keys.Ask {
		m.queue.MarkPort(work.Info, p)
	} else {
		m.queue.MarkPort(work.Set, p)
	}
}

// open lets the work go on that waited for the key of a device.
func (m *Keeper) open(p topo.PortID) {
	waiting := m.waiting[p]
	if len(waiting) == 0 {
		return
	}
	delete(m.waiting, p)
	m.queue.PutBackAll(waiting)
}

// Header returns the M_Key that a request shows: the target's own, or none.
func (m *Keeper) Header(x work.Ref, n topo.NodeID) ib.MKey {
	if !m.IsOn() {
		return ib.MKey{}
	}
	if n == topo.None {
		return m.probeKey(x)
	}
	p := m.keyPort(x, n)
	r := m.places.Ring(p)
	if r == nil {
		return ib.MKey{}
	}
	k, ok := m.places.Now(p, r)
	if !ok {
		k = m.places.Next(p, r).Header
	}
	if !k.IsZero() {
		m.recordShown(p)
	}
	return k.M()
}

// ForAnswer returns the M_Key to show to an end port in a packet that is no request, none if it has none. sure is false
// while the port may have a key and it is not known which: a guess would show it to another device, or be taken for an
// attack.
func (m *Keeper) ForAnswer(p topo.PortID) (key ib.MKey, sure bool) {
	switch {
	case !m.IsOn():
		return ib.MKey{}, true
	case p == topo.None:
		return ib.MKey{}, false
	}
	r := m.places.Ring(p)
	if r == nil {
		return ib.MKey{}, true
	}
	k, ok := m.places.Now(p, r)
	if key, sure = k.M(), ok || !hasKey(r); sure && !key.IsZero() {
		m.recordShown(p) // the host that now has the place of that LID reads it
	}
	return key, sure
}

// recordShown records that a request under the key of an end port goes out.
func (m *Keeper) recordShown(p topo.PortID) {
	m.exposed.RecordShown(p, m.core.Age(), m.topo.NumPorts())
}

// IsSettled reports whether an end port has nothing to wait for before it gets its key: it has it, or cannot have one.
func (m *Keeper) IsSettled(p topo.PortID) bool {
	if !m.IsOn() || !m.topo.IsEndPort(p) {
		return true
	}
	r := m.places.Ring(p)
	if r == nil {
		return !m.places.IsVerified(p) || m.topo.GUIDOf(p) == 0 || m.isCrowded(p)
	}
	switch m.places.Next(p, r).Do {
	case keys.Nothing, keys.Withhold, keys.Refusing:
		return true
	case keys.Program:
		return m.releasing
	default:
		return false
	}
}

// Do returns the next step about the key of an end port, and false if none is known.
func (m *Keeper) Do(p topo.PortID) (keys.Do, bool) {
	r := m.places.Ring(p)
	if r == nil {
		return keys.Nothing, false
	}
	return m.places.Next(p, r).Do, true
}

// IsReleasing reports whether all keys are given back.
func (m *Keeper) IsReleasing() bool { return m.releasing }

// Doubt forgets which key a device is on: it was silent, or its link was
// away, and it may have been restarted.
func (m *Keeper) Doubt(p topo.PortID) {
	if m.IsOn() && m.topo.IsEndPort(p) {
		if r := m.places.Ring(p); r != nil {
			r.Again()
			m.showKey(p)
		}
	}
}

// hasKey reports whether a device may hold one of its keys.
func hasKey(r *keys.Ring) bool {
	rec := r.Record()
	return len(rec.Try()) > 0
}
