package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// keyStep says what is to be done about the key of an end port, and saves what
// that needs first. A device that has none, and is where it belongs, gets one.
func (c *Core) keyStep(p topo.PortID) keys.Step {
	guid := c.topo.GUIDOf(p)
	if !c.cfg.MKey.on() || guid == 0 {
		return keys.Step{}
	}
	r := c.ring(p)
	if r == nil && c.cfg.MKey.Import != nil {
		r = c.takeOverKey(p)
	}
	if r == nil || len(c.tryOf(r)) == 0 {
		if c.mkeys.releasing || !c.verified(p) || r == nil && c.crowded(p) {
			return keys.Step{Do: keys.Withhold}
		}
		r = c.mkeys.book.Open(keys.MKey, guid, c.keyedAt(p))
		c.mkeys.book.Move(keys.MKey, guid, c.keyedAt(p)) // it had a key once, and none now
		if !c.planKey(r, guid) {
			return keys.Step{}
		}
	}
	c.replaceImported(p, r)
	s := r.Next(c.keyedAt(p), c.verified(p))
	c.saveKey(r)
	return s
}

// maxAtPlace is how many adapters may be given keys at one place in turn: there is
// one at a time, but a host can show another GUID each time it is asked.
const maxAtPlace = 16

// crowded reports whether too many other end ports were assigned keys at the place of an end port. It raises a problem for
// that once.
func (c *Core) crowded(p topo.PortID) bool {
	place := c.keyedAt(p)
	if place.IsZero() || c.mkeys.book.NumAt(keys.MKey, place) < maxAtPlace {
		return false
	}
	c.problem(fault.Key{Kind: fault.NoKey, Place: place}, &KeyProblem{GUID: c.topo.GUIDOf(p), Place: place, Reason: "too many GUIDs were given keys at this place; it gets none"})
	return true
}

func (c *Core) tryOf(r *keys.Ring) []keys.Held {
	rec := r.Record()
	return rec.Try()
}

// planKey makes a new key for a device and plans the change to it. It reports whether that succeeded.
func (c *Core) planKey(r *keys.Ring, guid ib.GUID) bool {
	h, err := c.cfg.MKey.Source.Make(keys.MKey, guid, r.NextEpoch(), c.now)
	if err == nil {
		err = r.Plan(h)
	}
	k := fault.Key{Kind: fault.NoKey, GUID: guid}
	if err != nil {
		c.problem(k, &KeyProblem{GUID: guid, Reason: err.Error()})
		return false
	}
	c.faults.Clear(k)
	c.saveKey(r)
	return true
}

// saveKey has the record of a key saved before anything is sent, if it changed.
func (c *Core) saveKey(r *keys.Ring) {
	if r.Next(ib.Place{}, false).Save {
		rec := r.Record()
		c.save(KeyFactOf(rec))
		r.Saved()
		c.showKeyOf(rec.GUID)
	}
}

// wantKey completes a PortInfo that is written to an end port with its key. It
// reports whether the key, or how it is protected, is a reason to write, and
// whether the port may be written at all now.
func (c *Core) wantKey(p topo.PortID, w *mad.PortInfo) (differs, may bool) {
	if c.mkeys.releasing {
		return c.wantNoKey(p, w)
	}
	s := c.keyStep(p)
	var k keys.Key
	pt := &c.ports[p]
	pt.setKey = s.Do == keys.Program
	switch s.Do {
	case keys.Ask:
		c.q.MarkPort(work.Info, p)
		return false, false
	case keys.Stranded, keys.Foreign:
		return false, false // see keyFound
	case keys.Program:
		k = s.New
	case keys.Nothing:
		if r := c.ring(p); r != nil {
			k, _ = r.Now(c.keyedAt(p), c.verified(p))
		}
	default: // Withhold, Refusing: it has none
	}
	w.MKey = k.M()
	if k.IsZero() {
		return false, true
	}
	w.MKeyProtectBits, w.MKeyLeasePeriod = c.cfg.MKey.Protection, c.cfg.MKey.Lease
	have := &pt.info
	return pt.setKey || have.MKeyProtectBits != w.MKeyProtectBits || have.MKeyLeasePeriod != w.MKeyLeasePeriod, true
}

// keySent handles the end of the Set of a key, and applies its outcome to the ring.
func (c *Core) keySent(p topo.PortID, ended func(*keys.Ring)) {
	pt := &c.ports[p]
	if !pt.setKey {
		return
	}
	pt.setKey = false
	if r := c.ring(p); r != nil {
		c.showKey(p)
		ended(r)
		c.q.MarkPort(work.Info, p)
	}
}

// keyFound takes the key that a Get of PortInfo showed.
func (c *Core) keyFound(p topo.PortID, pi *mad.PortInfo) {
	if !c.cfg.MKey.on() || !c.topo.IsEndPort(p) {
		return
	}
	c.showKey(p)
	guid := c.topo.GUIDOf(p)
	seen := keys.Seen{Key: keys.New(pi.MKey.Reveal()), Hidden: pi.MKey.IsZero() && pi.MKeyProtectBits > 0}
	r := c.ring(p)
	if r == nil || len(c.tryOf(r)) == 0 {
		if seen.Key.IsZero() && !seen.Hidden {
			c.reopened(p)
		}
		if !seen.Key.IsZero() || seen.Hidden {
			c.problem(fault.Key{Kind: fault.NoKey, GUID: guid}, &KeyProblem{GUID: guid, Place: c.topo.PlaceOf(p), Reason: "it has an M_Key that somebody else gave it"})
		}
		return
	}
	if c.verified(p) && r.Next(c.keyedAt(p), true).Do != keys.Withhold {
		c.wronglyImported(p, r, seen)
		was, _ := r.Now(c.keyedAt(p), true)
		c.keyAnswered(p, pi, r.Answered(seen), !was.IsZero())
		c.linkedKeys(p)
		if p == c.own() {
			c.bindOwn()
		}
	}
	c.saveKey(r)
	c.keyVerdict(p, r)
	if do := r.Next(c.keyedAt(p), c.verified(p)).Do; do == keys.Stranded || do == keys.Foreign {
		c.refuses(p, true)
	}
	c.renewKey(p, r)
	c.turned(p)
	if r.Settled() {
		c.askDual(p)
	}
	c.opened(p)
	c.q.MarkPort(work.Set, p)
	if peer := c.topo.Peer(p); peer != topo.None {
		c.q.MarkPort(work.Set, peer)
	}
}

// keyAnswered handles an answer of a device that was on its key.
func (c *Core) keyAnswered(p topo.PortID, pi *mad.PortInfo, f keys.Finding, was bool) {
	pt := &c.ports[p]
	switch f {
	case keys.FoundCurrent, keys.FoundNew:
		pt.obeyed = true
		c.obeys(p)
		c.reopened(p)
	case keys.FoundOpen:
		c.obeys(p)
		c.reopened(p)
		if was && pt.known && c.writing() && c.isAdapter(p) && pt.info.PortState >= ib.PortArmed && pi.PortState >= ib.PortArmed && !c.mkeys.releasing {
			c.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostMKey, LID: pi.LID})
		}
	default:
	}
}

// keyVerdict reports the problem with the key of a device, if there is one.
func (c *Core) keyVerdict(p topo.PortID, r *keys.Ring) {
	c.showKey(p)
	guid := c.topo.GUIDOf(p)
	k := fault.Key{Kind: fault.NoKey, GUID: guid}
	reason := ""
	switch r.Next(c.keyedAt(p), c.verified(p)).Do {
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
		c.faults.Clear(k)
		return
	}
	c.problem(k, &KeyProblem{GUID: guid, Place: c.topo.PlaceOf(p), Reason: reason})
}

// keySilent handles that the Get which is to find out the key of a device had no answer after all tries. It reports whether
// there is another key to try.
func (c *Core) keySilent(r *work.Request) bool {
	if !c.cfg.MKey.on() || r.Ref.Class != work.Info || r.Node == topo.None {
		return false
	}
	p := r.Ref.Port()
	ring := c.ring(p)
	if ring == nil || c.keyPort(r.Ref, r.Node) != p || ring.Next(c.keyedAt(p), c.verified(p)).Do != keys.Ask {
		return false
	}
	ring.Silent()
	if ring.Next(c.keyedAt(p), c.verified(p)).Do == keys.Ask {
		return true
	}
	c.keyVerdict(p, ring)
	c.refuses(p, false)
	c.turned(p)
	return false
}

// keyDoubted forgets which key a device is on: it was silent, or its link was
// away, and it may have been restarted.
func (c *Core) keyDoubted(p topo.PortID) {
	c.ports[p].doubts++
	if c.cfg.MKey.on() && c.topo.IsEndPort(p) {
		if r := c.ring(p); r != nil {
			r.Again()
			c.showKey(p)
		}
	}
}

// keyed reports whether an end port has nothing to wait for before it gets its key: it has it, or cannot have one.
func (c *Core) keyed(p topo.PortID) bool {
	if !c.cfg.MKey.on() || !c.topo.IsEndPort(p) {
		return true
	}
	r := c.ring(p)
	if r == nil {
		return !c.verified(p) || c.topo.GUIDOf(p) == 0 || c.crowded(p)
	}
	switch r.Next(c.keyedAt(p), c.verified(p)).Do {
	case keys.Nothing, keys.Withhold, keys.Refusing:
		return true
	case keys.Program:
		return c.mkeys.releasing
	default:
		return false
	}
}

// keyTo returns the M_Key to show to an end port, none if it has none. sure is false while the port may have a key and it
// is not known which: a guess would show it to another device, or be taken for an attack.
func (c *Core) keyTo(p topo.PortID) (key ib.MKey, sure bool) {
	switch {
	case !c.cfg.MKey.on():
		return ib.MKey{}, true
	case p == topo.None:
		return ib.MKey{}, false
	}
	r := c.ring(p)
	if r == nil {
		return ib.MKey{}, true
	}
	k, ok := r.Now(c.keyedAt(p), c.verified(p))
	return k.M(), ok || len(c.tryOf(r)) == 0
}
