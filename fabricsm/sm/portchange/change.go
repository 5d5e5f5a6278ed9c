// Package portchange compares PortInfo of a port with PortInfo that was read before, and says what happened to the port.
package portchange

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portset"
)

// Known is what is known of a port besides PortInfo, and of the answer.
type Known struct {
	LID        ib.LID // that it is to have
	Num        ib.PortNum
	IsExternal bool // it is a port of a switch, and not port 0
	WasRead    bool // there is an old PortInfo
	ByGet      bool // the answer is to a Get
}

// Link is what became of the link of a port.
type Link uint8

// Links.
const (
	NoLink  Link = iota // port 0 has none
	Down                // it has no link
	Bounced             // its link went down and came up
	Up                  // it has a link
)

// Change is what happened to a port.
type Change struct {
	Link       Link
	HasFlapped bool // a Get shows that its link went down
	LostBits   bool // it lost the enforcement bits: its switch most likely rebooted, and has lost its tables, too
	LostLID    bool // port 0 of a switch lost its LID: the switch rebooted
}

// Compare returns what happened to a port.
func Compare(old, is *mad.PortInfo, k Known) (c Change) {
	if k.ByGet && k.WasRead {
		c.LostBits = k.IsExternal && portset.Differing(old, is)&portset.Enforcement != 0
		c.LostLID = k.Num == 0 && k.LID != 0 && old.LID == k.LID && is.LID == 0
	}
	switch {
	case k.Num == 0:
	case !portset.IsUp(is):
		c.Link = Down
		c.HasFlapped = k.ByGet && k.WasRead && portset.IsUp(old)
	case k.WasRead && old.PortState >= ib.PortArmed && is.PortState == ib.PortInit:
		c.Link = Bounced
		c.HasFlapped = k.ByGet
	default:
		c.Link = Up
	}
	return c
}
