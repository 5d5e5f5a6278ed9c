package mkeys

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// step says what is to be done about the key of an end port, and saves what
// that needs first. A device that has none, and is where it belongs, gets one.
func (m *Keeper) step(p topo.PortID) keys.Step {
	guid := m.topo.GUIDOf(p)
	if !m.IsOn() || guid == 0 {
		return keys.Step{}
	}
	r := m.places.Ring(p)
	if r == nil && m.cfg.Import != nil {
		r = m.takeOver(p)
	}
	if r == nil || !hasKey(r) {
		if m.releasing || !m.places.IsVerified(p) || r == nil && m.isCrowded(p) {
			return keys.Step{Do: keys.Withhold}
		}
		r = m.book.Open(keys.MKey, guid, m.places.KeyedAt(p))
		m.book.Move(keys.MKey, guid, m.places.KeyedAt(p)) // it had a key once, and none now
		if !m.planKey(r, guid) {
			return keys.Step{}
		}
	}
	m.replaceImported(p, r)
	s := m.places.Next(p, r)
	m.saveKey(r)
	return s
}

// maxAtPlace is how many adapters may be given keys at one place in turn: there is
// one at a time, but a host can show another GUID each time it is asked.
const maxAtPlace = 16

// isCrowded reports whether too many other end ports were assigned keys at the place of an end port. It raises a problem
// for that once.
func (m *Keeper) isCrowded(p topo.PortID) bool {
	place := m.places.KeyedAt(p)
	if place.IsZero() || m.book.NumAt(keys.MKey, place) < maxAtPlace {
		return false
	}
	m.problem(fault.Key{Kind: fault.NoKey, Place: place}, &keyevent.KeyProblem{GUID: m.topo.GUIDOf(p), Place: place, Reason: "too many GUIDs were given keys at this place; it gets none"})
	return true
}

// planKey makes a new key for a device and plans the change to it. It reports whether that succeeded.
func (m *Keeper) planKey(r *keys.Ring, guid ib.GUID) bool {
	h, err := m.cfg.Source.Make(keys.MKey, guid, r.NextEpoch(), m.core.Now())
	if err == nil {
		err = r.Plan(h)
	}
	k := fault.Key{Kind: fault.NoKey, GUID: guid}
	if err != nil {
		m.problem(k, &keyevent.KeyProblem{GUID: guid, Reason: err.Error()})
		return false
	}
	m.faults.Clear(k)
	m.saveKey(r)
	return true
}

// saveKey has the record of a key saved before anything is sent, if it changed.
func (m *Keeper) saveKey(r *keys.Ring) {
	if r.Next(ib.Place{}, false).Save {
		rec := r.Record()
		m.store.SaveKey(rec)
		r.Saved()
		m.showKeyOf(rec.GUID)
	}
}

// Want completes a PortInfo that is written to an end port with its key. have is the one that was read. It reports whether
// the key, or how it is protected, is a reason to write, and whether the port may be written at all now.
func (m *Keeper) Want(p topo.PortID, have, w *mad.PortInfo) (differs, may bool) {
	if m.releasing {
		return m.wantNone(p, w)
	}
	s := m.step(p)
	var k keys.Key
	setting := s.Do == keys.Program
	m.setSetting(p, setting)
	switch s.Do {
	case keys.Ask:
		m.queue.MarkPort(work.Info, p)
		return false, false
	case keys.Stranded, keys.Foreign:
		return false, false // see Found
	case keys.Program:
		k = s.New
	case keys.Nothing:
		if r := m.places.Ring(p); r != nil {
			k, _ = m.places.Now(p, r)
		}
	default: // Withhold, Refusing: it has none
	}
	w.MKey = k.M()
	if k.IsZero() {
		return false, true
	}
	w.MKeyProtectBits, w.MKeyLeasePeriod = m.cfg.Protection, m.cfg.Lease
	return setting || have.MKeyProtectBits != w.MKeyProtectBits || have.MKeyLeasePeriod != w.MKeyLeasePeriod, true
}

// ForgetSet records that a Set goes out which carries the key that a device has.
func (m *Keeper) ForgetSet(p topo.PortID) { m.setSetting(p, false) }

// SetAnswered handles the answer to a Set of PortInfo, and SetLost that there was none.
func (m *Keeper) SetAnswered(p topo.PortID, ok bool) {
	if r := m.endSet(p); r != nil {
		r.Sent(ok)
		m.queue.MarkPort(work.Info, p)
	}
}

// SetLost handles that a Set of PortInfo was not answered.
func (m *Keeper) SetLost(p topo.PortID) {
	if r := m.endSet(p); r != nil {
		r.Lost()
		m.queue.MarkPort(work.Info, p)
	}
}

// endSet returns the ring of a port if the Set that has ended set a new key, nil otherwise.
func (m *Keeper) endSet(p topo.PortID) *keys.Ring {
	if !m.isSetting(p) {
		return nil
	}
	m.setSetting(p, false)
	r := m.places.Ring(p)
	if r != nil {
		m.showKey(p)
	}
	return r
}

// Found takes the key that a Get of PortInfo showed. was is the state of the port as it was known, PortNop for none.
func (m *Keeper) Found(p topo.PortID, pi *mad.PortInfo, was ib.PortState) {
	if !m.IsOn() || !m.topo.IsEndPort(p) {
		return
	}
	m.showKey(p)
	guid := m.topo.GUIDOf(p)
	seen := keys.Seen{Key: keys.New(pi.MKey.Reveal()), Hidden: pi.MKey.IsZero() && pi.MKeyProtectBits > 0}
	r := m.places.Ring(p)
	if r == nil || !hasKey(r) {
		if seen.Key.IsZero() && !seen.Hidden {
			m.act.HasNoKey(p)
		}
		if !seen.Key.IsZero() || seen.Hidden {
			m.problem(fault.Key{Kind: fault.NoKey, GUID: guid}, &keyevent.KeyProblem{GUID: guid, Place: m.topo.PlaceOf(p), Reason: "it has an M_Key that somebody else gave it"})
		}
		return
	}
	if m.places.IsVerified(p) && r.Next(m.places.KeyedAt(p), true).Do != keys.Withhold {
		m.dropWrong(p, r, seen)
		key, _ := r.Now(m.places.KeyedAt(p), true)
		takenOff := !key.IsZero() && was >= ib.PortArmed && pi.PortState >= ib.PortArmed
		m.obeyed(p, pi, r.Answered(seen), takenOff)
		m.rememberLinks(p)
		if p == m.fabric.Own() {
			m.bindOwn()
		}
	}
	m.saveKey(r)
	m.judge(p, r)
	if do := m.places.Next(p, r).Do; do == keys.Stranded || do == keys.Foreign {
		m.act.Refused(p, true)
	}
	m.renewKey(p, r)
	m.rotation.Turned(p)
	if r.Settled() {
		m.rotation.AskDual(p)
	}
	m.open(p)
	m.queue.MarkPort(work.Set, p)
	if peer := m.topo.Peer(p); peer != topo.None {
		m.queue.MarkPort(work.Set, peer)
	}
}

// obeyed handles an answer of a device that is where it belongs. If it shows no key, takenOff says that the host removed
// it.
func (m *Keeper) obeyed(p topo.PortID, pi *mad.PortInfo, f keys.Finding, takenOff bool) {
	switch f {
	case keys.FoundCurrent, keys.FoundNew:
		m.act.Obeyed(p, true)
	case keys.FoundOpen:
		m.act.Obeyed(p, false)
		if takenOff && m.core.IsWriting() && !m.releasing {
			m.act.NoteTakenOff(p, pi.LID)
		}
	default:
	}
}

// judge reports the problem with the key of a device, if there is one.
func (m *Keeper) judge(p topo.PortID, r *keys.Ring) {
	m.showKey(p)
	guid := m.topo.GUIDOf(p)
	k := fault.Key{Kind: fault.NoKey, GUID: guid}
	reason := ""
	switch m.places.Next(p, r).Do {
	case keys.Stranded:
		reason = "it answers under none of the M_Keys it was given"
		if rec := r.Record(); rec.Current.Origin == keys.OriginImported && rec.Pending.IsZero() {
			reason = "it does not answer under the M_Key that it is said to have: correct what is imported"
		}
	case keys.Foreign:
		reason = "it has an M_Key that somebody else gave it"
	case keys.Refusing:
		reason = "it is not on the M_Key that it was given several times: it does not keep the key, or what sets it is lost"
	case keys.Withhold:
		reason = "its M_Key is withheld: it is not seen where it was given one"
	default:
		m.faults.Clear(k)
		return
	}
	m.problem(k, &keyevent.KeyProblem{GUID: guid, Place: m.topo.PlaceOf(p), Reason: reason})
}

// TriesNext handles that the Get which is to find out the key of a device had no answer after all tries. It reports whether
// there is another key to try.
func (m *Keeper) TriesNext(r work.Request) bool {
	if !m.IsOn() || r.Ref.Class != work.Info || r.Node == topo.None {
		return false
	}
	p := r.Ref.Port()
	ring := m.places.Ring(p)
	if ring == nil || m.keyPort(r.Ref, r.Node) != p || m.places.Next(p, ring).Do != keys.Ask {
		return false
	}
	ring.Silent()
	if m.places.Next(p, ring).Do == keys.Ask {
		return true
	}
	m.judge(p, ring)
	m.act.Refused(p, false)
	m.rotation.Turned(p)
	return false
}
