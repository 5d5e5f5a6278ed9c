package fabric

import (
	"math"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// SightLimits say how much of what was known must go out of sight at once for the subnet manager to be partly blind:
// at least Nodes nodes, and at least the share Share of the nodes that were known. Zero values mean the defaults.
type SightLimits struct {
	Nodes  int           // 1 or more; default 8
	Share  float64       // more than 0, at most 1; default 0.1
	Within time.Duration // in which they go; default 2 min
}

// DefaultSightLimits returns the defaults.
func DefaultSightLimits() SightLimits {
	return SightLimits{Nodes: 8, Share: 0.1, Within: 2 * time.Minute}
}

func (l SightLimits) withDefaults() SightLimits {
	d := DefaultSightLimits()
	if l.Nodes == 0 {
		l.Nodes = d.Nodes
	}
	if l.Share == 0 {
		l.Share = d.Share
	}
	if l.Within == 0 {
		l.Within = d.Within
	}
	return l
}

// least returns the number of nodes, of those known, that make a large part.
func (l SightLimits) least(known int) int {
	return max(l.Nodes, int(math.Ceil(l.Share*float64(known))))
}

// sighting is what a judgement of the sight rests on.
type sighting struct {
	state   ib.SMState
	down    bool // our own port is seen, and has no link
	nodes   int  // in sight, our own included
	known   int  // in sight, or were until SightLimits.Within ago
	missing int  // of known, not in sight
}

// judgeSight returns the state of the sight, and its cause unless it is clear. was is the state before. It is pure.
//
// Before a subnet manager is master, ports that it has not seen yet are not missing: then only our own port without a link
// is a finding, and else the state stays. A subnet manager that is partly blind stays so until less than half of the part
// that made it so is missing: devices at the limit do not have it change again and again.
func judgeSight(s sighting, l SightLimits, was v1.Sight) (state, cause string) {
	least := l.least(s.known)
	if was.State == v1.SightPartly {
		least = max(1, (least+1)/2)
	}
	switch {
	case s.down:
		return v1.SightBlind, v1.SightOwnPort
	case s.state != ib.SMMaster && was.Frozen():
		return was.State, was.Cause
	case s.state != ib.SMMaster:
		return v1.SightClear, ""
	case s.nodes <= 1:
		return v1.SightBlind, v1.SightAlone
	case s.missing >= least:
		return v1.SightPartly, v1.SightNodes
	default:
		return v1.SightClear, ""
	}
}
