package keymgr

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violationlog"
)

// claim is the claim of a trap about a violation, until it is checked.
type claim struct {
	slid   ib.LID
	sgid   ib.GID
	qp     uint32
	method mad.Method
	attr   mad.AttrID
	mod    uint32
}

// claims holds the unchecked claims of an agent's traps. It also counts how many more traps may follow for violations that
// the device has counted: a device sends about one a second, and its counters are cleared after the first was checked.
type claims struct {
	last  *claim        // nil: nothing was said
	mixed bool          // different sources were named: nothing proves any of them
	owed  uint8         // traps that may come late
	until time.Duration // after that there are none
}

const (
	// mostOwed is how many traps may come late: devices keep few.
	mostOwed = 8
	// lateFor is how late they may be.
	lateFor = 10 * time.Second
)

// say records the claim of a trap.
func (c *claims) say(said *claim) {
	c.mixed = c.mixed || c.last != nil && c.last.slid != said.slid
	c.last = said
}

// checked drops the claims, once the device was asked.
func (c *claims) checked() { c.last, c.mixed = nil, false }

// count takes that the device has counted violations.
func (c *claims) count(n uint16, now time.Duration) {
	if c.owed = uint8(min(n, mostOwed)); c.last != nil {
		c.owed--
	}
	c.until = now + lateFor
}

// late reports whether a trap may be for a violation counted before, and counts it: there are at most as many as owed.
func (c *claims) late(now time.Duration) bool {
	if c.owed == 0 || now > c.until {
		return false
	}
	c.owed--
	return true
}

// claimOf reads the notice of a trap. Its numbers are not trusted, only reported.
func claimOf(p *mad.MAD, c *class) *claim {
	data := c.mad.Attribute(p)
	if c.mad.Class == mad.ClassCongestionControl {
		var n mad.NoticeKeyCC
		must(mad.Decode(data, &n))
		return &claim{n.SLID, n.SourceGID, n.QP, n.Method, n.AttributeID, n.AttributeModifier}
	}
	var n mad.NoticeKeyVS
	must(mad.Decode(data, &n))
	return &claim{n.SLID, n.SourceGID, n.QP, n.Method, n.AttributeID, n.AttributeModifier}
}

// falseTrap counts a trap that is not believed.
func (m *Manager) falseTrap(x ref, kp *sm.KeyPort, reason string) {
	d, a, c := m.at(x)
	m.out.judged(sm.ClassTrapJudged{Kind: c.kind, GUID: d.guid})
	if a.falseTraps++; violationlog.Tells(a.falseTraps) {
		m.out.event(&sm.ClassKeyFalseTrap{Kind: c.kind, LID: d.lid, GUID: d.guid, Place: kp.Place, Reason: reason, Count: a.falseTraps})
	}
}
