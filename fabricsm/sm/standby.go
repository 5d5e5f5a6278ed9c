package sm

import (
	"strconv"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// A core that is barred right after it was started stands by. It reads the whole fabric,
// and keeps what it read up to date, while a sibling is master. With a mandate it elects and
// becomes master with what it has read.
//
// That is sound only while the facts that it was started with are still those of the store,
// which its owner compares (SameGround): LIDs, keys, marks and the cables that keys are shown
// over are facts. Forwarding and P_Key tables are none, so FactWork stands for what the
// master does to those: it is saved before the first Set that follows a settled fabric.

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

// beginWork notes a Set. SMInfo and what a device tells at once change nothing that is read.
func (c *Core) beginWork(r *request) {
	if !c.cfg.Followed || r.ref.class == clsSMInfo || r.ref.class == clsNotice {
		return
	}
	if !c.labour.writing || !c.worked {
		c.labour, c.worked = work{c.labour.number + 1, true}, true
		c.save(c.labour.fact())
	}
}

// endWork notes that the fabric is settled.
func (c *Core) endWork() {
	if c.cfg.Followed && (c.labour.writing || c.labour.number == 0) {
		c.labour, c.worked = work{max(1, c.labour.number), false}, true
		c.save(c.labour.fact())
	}
}

// standsBy reports a core that never had a mandate.
func (c *Core) standsBy() bool { return c.barred && !c.mandate }

// readsAlong reports a core that stands by and has read what there is.
func (c *Core) readsAlong() bool {
	return c.standsBy() && c.state == ib.SMDiscovering && c.quiet()
}

// beginReign takes the first mandate of a core that stood by. The time to wait for an
// intent begins now: before, there was none to come.
func (c *Core) beginReign() {
	c.mandate = true
	c.hurry = c.now.Add(firstAudit + 2*auditTick)
	if !c.members.intent && c.cfg.IntentWait > 0 {
		c.members.ready = false
		c.intentBy = c.now.Add(c.cfg.IntentWait)
		c.after(c.cfg.IntentWait, timerIntent, ref{})
	}
}

// overlook notes that a core which stands by has read the whole fabric. What it finds after
// that it reads as it comes, and has read before it elects.
func (c *Core) overlook() {
	own := c.own()
	c.overlooks = c.overlooks || c.readsAlong() && !c.mayShowMore() && own != topo.None && c.ports[own].known
}

// Overlooks reports whether a core that stands by has read the whole fabric.
func (c *Core) Overlooks() bool { return c.standsBy() && c.overlooks && !c.ownLinkDown() }

// SameGround reports whether a core that was started with some facts, and reads along, may
// take over where others are found. Both are in the order of their keys, and as they are
// stored. What hosts registered is no matter of the core.
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
