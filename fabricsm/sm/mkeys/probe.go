package mkeys

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys/exposed"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// probeKey returns the M_Key for a NodeInfo request to an unknown device. It tries the keys of the devices whose place that
// is, one after the other, and no others.
func (m *Keeper) probeKey(x work.Ref) ib.MKey {
	cands := m.candidates(x)
	if len(cands) == 0 {
		return ib.MKey{}
	}
	k := cands[m.core.Tries(x)%len(cands)]
	if x.Class == work.Probe {
		m.exposed.RecordProbe(x.Port(), k.guid)
	}
	return k.key
}

type candidate struct {
	guid ib.GUID
	key  ib.MKey
}

// appendKeys adds the keys that a device may be on.
func (m *Keeper) appendKeys(out []candidate, guid ib.GUID) []candidate {
	r := m.book.Ring(keys.MKey, guid)
	if r == nil {
		if key, ok := m.cfg.Import.Key(guid); ok {
			out = append(out, candidate{guid, key.M()})
		}
		return out
	}
	rec := r.Record()
	for _, h := range rec.Try() {
		out = append(out, candidate{guid, h.Key.M()})
	}
	return out
}

// candidates returns the keys to try on the device that a probe may meet.
func (m *Keeper) candidates(x work.Ref) (out []candidate) {
	if x.Class == work.Root {
		return m.appendKeys(nil, m.own)
	}
	p := x.Port()
	if !m.places.IsWayKnown(m.topo.Port(p).Node) {
		return nil
	}
	peer := m.topo.Peer(p)
	if peer != topo.None {
		// A device that got its key here is asked under it although another device claims its identity elsewhere. Otherwise
		// it could not answer, and its silence would prove the other one right.
		end := m.topo.EntryPort(peer)
		guid, place := m.topo.GUIDOf(end), m.topo.LinkEnd(p)
		if m.places.IsVerified(end) || m.places.IsKeyedHere(guid, place) || guid != 0 && m.places.Behind(place) == guid {
			out = m.appendKeys(out, guid)
		}
		if len(out) > 0 {
			return out
		}
	}
	if !m.places.IsExpected(p) {
		return nil
	}
	if peer != topo.None {
		return m.imported(p) // it reported its identity, and fell silent before its key was recorded
	}
	if m.places.IsOwnCable(p) {
		if a := m.places.Neighbour(); a.GUID != 0 {
			return m.appendKeys(out, a.GUID)
		}
		return m.imported(p)
	}
	place := m.topo.LinkEnd(p)
	for _, guid := range m.book.At(keys.MKey, place) {
		if m.places.MayBelong(p, guid) {
			out = m.appendKeys(out, guid)
		}
	}
	if guid := m.places.Behind(place); guid != 0 {
		out = m.appendKeys(out, guid)
	}
	return append(out, m.imported(p)...)
}

// imported returns the keys to try on a device behind a port for which nothing is recorded.
func (m *Keeper) imported(p topo.PortID) (out []candidate) {
	in := m.cfg.Import
	if in == nil {
		return nil
	}
	if guid, ok := in.At(m.topo.GUIDOf(m.topo.EntryPort(p)), m.topo.Port(p).Num); ok {
		if key, ok := in.Key(guid); ok {
			out = append(out, candidate{guid, key.M()})
		}
	}
	if !in.Single.IsZero() {
		out = append(out, candidate{0, in.Single.M()})
	}
	return out
}

// ProbeTries returns how often a probe is tried: each key has its turn.
func (m *Keeper) ProbeTries(x work.Ref) int {
	tries := m.core.MaxTries()
	if !m.IsOn() {
		return tries
	}
	return tries * max(1, len(m.candidates(x)))
}

// Answered handles the answer to a probe: if keys were shown to a device other than their owners, those owners get new
// ones. The device that answers may have been silent to the first of the keys.
func (m *Keeper) Answered(p topo.PortID, ni *mad.NodeInfo) {
	for _, guid := range m.exposed.Answered(p) {
		if guid != ni.PortGUID && m.book.Ring(keys.MKey, guid) != nil && m.exposed.RecordSeen(guid) {
			m.act.Report(&keyevent.KeyExposed{GUID: guid, Place: m.topo.PlaceOf(p), To: ni.PortGUID})
			m.expose(guid, exposed.Shown)
		}
	}
}

// Unanswered handles that no probe of a port was answered: a device may be there and listen.
func (m *Keeper) Unanswered(p topo.PortID) {
	for _, guid := range m.exposed.ProbedUnder(p) {
		if m.places.IsKept(guid) {
			m.expose(guid, exposed.Shown)
		}
	}
}

// LookedFor lists the end ports under whose keys a probe asks behind a port.
func (m *Keeper) LookedFor(p topo.PortID) []ib.GUID {
	if !m.IsOn() {
		return nil
	}
	place := m.topo.LinkEnd(p)
	out := m.book.At(keys.MKey, place)
	if guid := m.places.Behind(place); guid != 0 {
		out = append(out, guid)
	}
	kept := out[:0]
	for _, guid := range out {
		if m.places.IsKept(guid) {
			kept = append(kept, guid)
		}
	}
	return kept
}
