// Package smrank decides which of several Subnet Managers is to be master, and what follows from what each of them says of
// itself (IBTA volume 1, 14.4.1).
//
// It holds no state and has no clock.
package smrank

import (
	"cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Rank is what Subnet Managers are compared by.
type Rank struct {
	Priority uint8   // 0 to 15, the highest first
	GUID     ib.GUID // of the port, the lowest first
}

// Compare returns a negative number if r is above s, a positive one if it is below, and 0 if they are the same.
func (r Rank) Compare(s Rank) int {
	return cmp.Or(-cmp.Compare(r.Priority, s.Priority), cmp.Compare(r.GUID, s.GUID))
}

// IsAbove reports whether r is higher than s.
func (r Rank) IsAbove(s Rank) bool { return r.Compare(s) < 0 }

// Own is this Subnet Manager.
type Own struct {
	GUID           ib.GUID
	Priority       uint8 // 0 to 15
	MasterPriority uint8 // while it shows itself as master, 0 to 15
	State          ib.SMState

	Claims   bool // it discovers again under a mandate: to others it is master
	Stubborn bool // no Subnet Manager of higher rank became master: it yields to masters only
	Leaving  bool // it is about to end
	Barred   bool // its owner may not change the fabric now
}

// Shown returns the state that is reported to others. After a handover this Subnet Manager reads the fabric again before it
// writes, but no other is to become master meanwhile. One that is leaving or barred is not active, so that no other hands
// the fabric to it.
func (s *Own) Shown() ib.SMState {
	switch {
	case s.Leaving || s.Barred:
		return ib.SMNotActive
	case s.State == ib.SMDiscovering && s.Claims:
		return ib.SMMaster
	default:
		return s.State
	}
}

// PriorityIn returns the priority that goes with a state that is reported to others, 0 to 15.
func (s *Own) PriorityIn(shown ib.SMState) uint8 {
	if shown == ib.SMMaster {
		return s.MasterPriority & 0xF
	}
	return s.Priority & 0xF
}

// Rank returns the rank that is reported to others.
func (s *Own) Rank() Rank { return Rank{Priority: s.PriorityIn(s.Shown()), GUID: s.GUID} }

// IsBelow reports whether another Subnet Manager is of higher rank.
func (s *Own) IsBelow(o *Other) bool { return o.IsAbove(s.Rank()) }

// Other is another Subnet Manager as it last described itself.
type Other struct {
	Rank
	State   ib.SMState
	Trusted bool // see package smtrust
	Ignored bool // a master of lower rank that did not hand over in time
}

// IsBefore orders those that may rule: masters first, then by rank.
func (o *Other) IsBefore(b *Other) bool {
	if om, bm := o.State == ib.SMMaster, b.State == ib.SMMaster; om != bm {
		return om
	}
	return o.IsAbove(b.Rank)
}

// YieldsTo reports whether discovery has to leave the fabric to another Subnet Manager. That one is a master, or of higher
// rank and about to be one.
func (s *Own) YieldsTo(o *Other) bool {
	switch {
	case !o.Trusted:
		return false
	case o.State == ib.SMMaster:
		return !o.Ignored || s.IsBelow(o)
	case o.State == ib.SMDiscovering, o.State == ib.SMStandby:
		return !s.Claims && !s.Stubborn && s.IsBelow(o)
	default:
		return false
	}
}

// IsLegal reports whether a Subnet Manager in state sender may send a control code to one in state own.
func IsLegal(control mad.SMInfoControl, sender, own ib.SMState) bool {
	if control == mad.SMInfoAcknowledge {
		return sender == ib.SMStandby && own == ib.SMStandby
	}
	if sender != ib.SMMaster {
		return false
	}
	switch control {
	case mad.SMInfoHandover:
		return own != ib.SMNotActive
	case mad.SMInfoDisable:
		return own == ib.SMStandby
	case mad.SMInfoStandby:
		return own == ib.SMNotActive
	case mad.SMInfoDiscover:
		return own == ib.SMStandby || own == ib.SMMaster
	default:
		return false
	}
}
