package sm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/work"
)

// LendKey says that a tool has the M_Key of one device from now on, and until when. Then the device gets another key and
// drops that one, also if this subnet manager or the device was away meanwhile. A second LendKey sets another time. A
// caller that hands a key out sends LendKey first, and waits until the view shows it: a lease that was not saved would
// never end.
type LendKey struct {
	GUID  ib.GUID   // port GUID, of a switch that of port 0
	Until time.Time // at most MaxKeyLease from now, else that; not after now: it ends
	To    string    // the holder, for people; at most 64 bytes are kept
}

// MaxKeyLease is the longest time for which a key is lent.
const MaxKeyLease = 24 * time.Hour

const (
	// maxLeases bounds the keys that are lent at once.
	maxLeases = 256
	// maxBorrower bounds how many bytes of the holder's name are kept.
	maxBorrower = 64
)

// KeyLent says that a tool has the M_Key of a device.
type KeyLent struct {
	GUID  ib.GUID
	Until time.Time
	To    string
}

// KeyLeaseEnded says that a key which was lent is changed now.
type KeyLeaseEnded struct {
	GUID ib.GUID
	To   string
	Late time.Duration // after its time: it could not be ended before
}

func (*LendKey) input()             {}
func (*KeyLent) FabricEvent()       {}
func (*KeyLeaseEnded) FabricEvent() {}

func (e *KeyLent) String() string {
	return fmt.Sprintf("the M_Key of %v is lent to %s until %s", e.GUID, e.To, e.Until.UTC().Format(time.RFC3339))
}

func (e *KeyLeaseEnded) String() string {
	late := ""
	if e.Late > 0 {
		late = fmt.Sprintf(", %v late", e.Late.Round(time.Second))
	}
	return fmt.Sprintf("the time is over%s for which the M_Key of %v was lent to %s; it gets another one", late, e.GUID, e.To)
}

// keyLease is the holder of a device's key, and the end of the lease.
type keyLease struct {
	until time.Time
	to    string
}

// loadLease takes a saved lease.
func (m *mkeys) loadLease(f *Fact) {
	if f.Mark == "" {
		delete(m.lent, f.GUID)
		return
	}
	m.lent[f.GUID] = keyLease{f.Since, f.Mark}
}

// startLeases has leases end that were given before a restart.
func (c *Core) startLeases() {
	if !c.cfg.MKey.on() || c.cfg.Weakness.EndlessLeases {
		return
	}
	for _, guid := range c.leases() {
		c.after(max(0, c.mkeys.lent[guid].until.Sub(c.now)), work.Lease, work.Ref{})
	}
}

// leases lists the devices whose key is lent, those whose time ends first before
// the others.
func (c *Core) leases() []ib.GUID {
	out := make([]ib.GUID, 0, len(c.mkeys.lent))
	for guid := range c.mkeys.lent {
		out = append(out, guid)
	}
	slices.SortFunc(out, func(a, b ib.GUID) int {
		return cmp.Or(c.mkeys.lent[a].until.Compare(c.mkeys.lent[b].until), cmp.Compare(a, b))
	})
	return out
}

// lendKey begins, changes or ends a lease.
func (c *Core) lendKey(in *LendKey) {
	r := c.mkeys.book.Ring(keys.MKey, in.GUID)
	_, lent := c.mkeys.lent[in.GUID]
	if !c.cfg.MKey.on() || r == nil || len(c.tryOf(r)) == 0 || c.mkeys.releasing {
		return
	}
	if !in.Until.After(c.now) {
		if lent {
			c.endLease(in.GUID)
		}
		return
	}
	if !lent && len(c.mkeys.lent) == maxLeases {
		c.event(&KeyProblem{GUID: in.GUID, Reason: fmt.Sprintf("its key is not lent: %d others are; end a lease first", maxLeases)})
		return
	}
	until := in.Until.Round(0).UTC()
	if most := c.now.Add(MaxKeyLease).Round(0).UTC(); until.After(most) {
		until = most
	}
	l := keyLease{until, cmp.Or(in.To[:min(len(in.To), maxBorrower)], "somebody")}
	c.mkeys.lent[in.GUID] = l
	c.save(Fact{Kind: FactLent, GUID: in.GUID, Since: l.until, Mark: l.to})
	c.event(&KeyLent{GUID: in.GUID, Until: l.until, To: l.to})
	c.showKeyOf(in.GUID)
	c.viewDue = true
	if !c.cfg.Weakness.EndlessLeases {
		c.after(l.until.Sub(c.now), work.Lease, work.Ref{})
	}
}

// leasesDue ends the leases whose time is over.
func (c *Core) leasesDue() {
	for _, guid := range c.leases() {
		if c.mkeys.lent[guid].until.After(c.now) {
			return
		}
		c.endLease(guid)
	}
}

// endLease has a device get another key than the one that was lent, at once if it
// is there.
func (c *Core) endLease(guid ib.GUID) {
	l := c.mkeys.lent[guid]
	c.forgetLease(guid)
	c.event(&KeyLeaseEnded{GUID: guid, To: l.to, Late: max(0, c.now.Sub(l.until)).Truncate(time.Second)})
	c.viewDue = true
	if r := c.mkeys.book.Ring(keys.MKey, guid); r == nil || len(c.tryOf(r)) == 0 {
		return // its key was removed, or it is retired
	}
	c.expose(guid, exposedKey)
	if p, ok := c.byPort[guid]; ok {
		c.disturb()
		c.q.MarkPort(work.Info, p)
	}
}

// forgetLease takes a lease out of what is known and saved.
func (c *Core) forgetLease(guid ib.GUID) {
	if _, lent := c.mkeys.lent[guid]; lent {
		delete(c.mkeys.lent, guid)
		c.save(Fact{Kind: FactLent, GUID: guid})
		c.showKeyOf(guid)
	}
}
