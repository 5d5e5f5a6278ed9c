package sm

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// A core that is barred right after it was started stands by. It reads the whole fabric once,
// while a sibling is master. With a mandate it looks at every link again, elects, and
// becomes master with what it has read.
//
// What it has read is still true then, for what a device holds changes in two ways alone:
//
//   - A Set changes it. LIDs, keys, marks and the cables that keys are shown over are facts.
//     Forwarding and P_Key tables are none, so FactWork stands for what the master does to
//     those: it is saved before the first Set that follows a settled fabric, and before another
//     subnet manager is left to rule. The owner compares the facts that the core was started
//     with to those of the store (SameGround).
//   - A device is reset, or another one is in its place. Then the links of it were down, and
//     are in Init or down (IBTA volume 1, 7.2.7), as long as no Set moves them on.
//
// Sets of a stranger show in neither. The master finds those by its audit, and writes; the
// new master looks at everything within firstAudit.

// work is how far the master is with what it writes.
type work struct {
	number  uint64 // of this work, or of the last
	writing bool
}

// The marks of a FactWork.
const (
	workWrites  = "writes"
	workSettled = "settled"
)

func (w work) fact() Fact {
	mark := workSettled
	if w.writing {
		mark = workWrites
	}
	return Fact{Kind: FactWork, Mark: mark + " " + strconv.FormatUint(w.number, 10)}
}

// loadWork reads a FactWork. One that is not legible is taken for work that was not ended.
func loadWork(f *Fact) work {
	mark, number, _ := strings.Cut(f.Mark, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	return work{n, mark != workSettled || err != nil}
}

// beginWork records a Set. SMInfo and Notice are exceptions: they change nothing that is read.
func (c *Core) beginWork(r *request) {
	if r.ref.class != clsSMInfo && r.ref.class != clsNotice {
		c.endTrust()
	}
}

// endTrust records that another subnet manager may write from now on.
func (c *Core) endTrust() {
	if c.cfg.Followed && !c.standsBy() && (!c.labour.writing || !c.worked) {
		c.labour, c.worked = work{c.labour.number + 1, true}, true
		c.save(c.labour.fact())
	}
}

// endWork records that the fabric is settled.
func (c *Core) endWork() {
	if c.cfg.Followed && (c.labour.writing || c.labour.number == 0) {
		c.labour, c.worked = work{max(1, c.labour.number), false}, true
		c.save(c.labour.fact())
	}
}

// standsBy reports whether a core never had a mandate.
func (c *Core) standsBy() bool { return c.barred && !c.mandate }

// readsAlong reports whether a core stands by and has read the fabric.
func (c *Core) readsAlong() bool {
	return c.standsBy() && c.state == ib.SMDiscovering && c.quiet()
}

// beginReign takes the first mandate of a core that stood by. The time to wait for an
// intent begins now: before, there was none to come.
func (c *Core) beginReign() {
	c.mandate = true
	c.inherited = inheritance{rules: c.overlooks && c.labour.number > 0 && !c.labour.writing}
	c.tellUntold()
	c.lookAtLinks()
	c.hurry = c.now.Add(firstAudit + 2*auditTick)
	if !c.members.intent && c.cfg.IntentWait > 0 {
		c.members.ready = false
		c.intentBy = c.now.Add(c.cfg.IntentWait)
		c.after(c.cfg.IntentWait, timerIntent, ref{})
	}
}

// inheritance is of a core that becomes master of a fabric which a sibling had settled, and which it has
// read before, until it has settled it itself.
type inheritance struct {
	rules bool
	shown bool // in a view
}

// inherits reports whether a master works with what it read as a standby, and the switches have its tables.
func (c *Core) inherits() bool { return c.inherited.rules && c.writing() && c.forwarding() }

// tellUntold reports the problems that were found while standing by and still exist: each problem is reported once, and a
// standby reports none.
func (c *Core) tellUntold() {
	for _, k := range slices.SortedFunc(maps.Keys(c.untold), problemKey.compare) {
		c.event(c.untold[k])
	}
	clear(c.untold)
}

// lookAtLinks reads one end of every link, and every port without a link: each shows whether
// the link was down since it was read before. This SM elects once they have answered.
func (c *Core) lookAtLinks() {
	for i := range c.ports {
		p := topo.PortID(i)
		if !c.ports[p].known || !c.nodes[c.ports[p].node].alive || !c.probes(p) {
			continue
		}
		if far := c.peer(p); far == topo.None || far > p || !c.probes(far) || !c.ports[far].known {
			c.markPort(clsInfo, p)
		}
	}
}

// overlook records that a core which stands by has read the whole fabric. It reads later changes as they come, and has read
// them before it elects.
func (c *Core) overlook() {
	own := c.own()
	c.overlooks = c.overlooks || c.readsAlong() && !c.mayShowMore() && own != topo.None && c.ports[own].known
}

// Overlooks reports whether a core that stands by has read the whole fabric.
func (c *Core) Overlooks() bool { return c.standsBy() && c.overlooks && !c.ownLinkDown() }

// Unlinked reports whether a core which stands by sees nothing, as its own port has no link.
func (c *Core) Unlinked() bool { return c.standsBy() && c.ownLinkDown() }

// SameGround reports whether a core that was started with some facts, and reads along, may take over where others are
// found. Both are in the order of their keys, and as they are stored. Registrations of hosts do not concern the core.
func SameGround(started, found []Fact) bool {
	settled := false
	i := 0
	for j := range found {
		f := &found[j]
		if f.Kind.OfSA() {
			continue
		}
		if f.Kind == FactWork {
			settled = !loadWork(f).writing
		}
		for i < len(started) && started[i].Kind.OfSA() {
			i++
		}
		if i == len(started) || !sameFact(&started[i], f) {
			return false
		}
		i++
	}
	for i < len(started) && started[i].Kind.OfSA() {
		i++
	}
	return settled && i == len(started)
}

// sameFact compares facts as they are stored.
func sameFact(a, b *Fact) bool {
	x, y := *a, *b
	cycles := x.Cycle == y.Cycle || x.Cycle != nil && y.Cycle != nil && *x.Cycle == *y.Cycle
	since := x.Since.Equal(y.Since)
	x.Cycle, y.Cycle, x.Since, y.Since = nil, nil, time.Time{}, time.Time{}
	return cycles && since && x == y
}

// standbyWindow is how many requests of a core that stands by are out at once: it has time,
// and devices have a master to answer.
const standbyWindow = 8

// window is how many requests may be out at once.
func (c *Core) window() int {
	if c.standsBy() {
		return min(c.cfg.Window, standbyWindow)
	}
	return c.cfg.Window
}

// firstAudit is how long it takes at most to look again, once a fabric is settled, at all that
// a core has read before it had a mandate.
const firstAudit = time.Minute

// auditPeriod is the time in which the audit sees each port once.
func (c *Core) auditPeriod() time.Duration {
	if c.now.Before(c.hurry) {
		return min(c.cfg.AuditPeriod, firstAudit)
	}
	return c.cfg.AuditPeriod
}
