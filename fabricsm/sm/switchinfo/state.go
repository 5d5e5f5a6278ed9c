// Package switchinfo decides when SwitchInfo of a switch is read or written, and what an answer says.
//
// It has no clock and sends nothing. A State is kept of each switch.
package switchinfo

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/topo"
)

// State is what is kept of a switch. The zero value is that of a switch that was never read.
type State struct {
	info     mad.SwitchInfo
	isKnown  bool
	isReset  bool            // it came without configuration: LinearFDBTop was 0
	verify   bool            // read SwitchInfo, and all ports if one changed state
	quiet    bool            // the next read of SwitchInfo is part of the audit
	recheck  bool            // read SwitchInfo: it may have rebooted
	search   bool            // read all ports once PortStateChange is cleared
	clears   bool            // PortStateChange is to be cleared
	lifetime bool            // LifeTimeValue is not kept
	top      ib.LID          // LinearFDBTop of the last Set
	life     ib.ExpTime      // LifeTimeValue of the last Set
	asked    multicast.Asked // what the last Set asked for
}

// Info returns SwitchInfo as it was read last.
func (s *State) Info() *mad.SwitchInfo { return &s.info }

// IsKnown reports whether SwitchInfo was read.
func (s *State) IsKnown() bool { return s.isKnown }

// IsReset reports whether the switch came without configuration.
func (s *State) IsReset() bool { return s.isReset }

// Forget forgets SwitchInfo: it is read again before the switch is written to.
func (s *State) Forget() { s.isKnown = false }

// Reboot records that the switch has lost its tables after it was read.
func (s *State) Reboot() { s.isReset = false }

// Start records that the switch starts with what was read. Its tables are empty if it came without configuration.
func (s *State) Start() { s.isReset = s.info.LinearFDBTop == 0 }

// Verify has SwitchInfo read, and ports if one of them changed state.
func (s *State) Verify() { s.verify = true }

// Recheck has SwitchInfo read: the switch may have rebooted.
func (s *State) Recheck() { s.recheck = true }

// Audit has SwitchInfo read as part of the audit.
func (s *State) Audit() { s.recheck, s.quiet = true, true }

// Reads reports whether SwitchInfo is to be read now, and whether that is part of the audit.
func (s *State) Reads() (now, audit bool) {
	if s.isKnown && !s.verify && !s.recheck {
		return false, false
	}
	audit, s.quiet = s.quiet && !s.verify, false
	return true, audit
}

// News is what an answer says.
type News struct {
	IsFirst    bool // nothing was known before
	IsRebooted bool // LinearFDBTop fell: the switch has lost its tables
	HasChanged bool // a port changed its state since PortStateChange was cleared
}

// Take takes an answer. Only one to a Get has news.
func (s *State) Take(si *mad.SwitchInfo, byGet bool) (n News) {
	si.PartitionEnforcementCap = min(si.PartitionEnforcementCap, identity.MaxKeys)
	n = News{
		IsFirst:    !s.isKnown,
		IsRebooted: s.isKnown && si.LinearFDBTop < s.info.LinearFDBTop,
		// PortStateChange is set after any bring-up, so it says something only when a trap was the reason to ask.
		HasChanged: s.verify && si.PortStateChange,
	}
	s.info, s.isKnown = *si, true
	if !byGet {
		return News{}
	}
	s.verify, s.recheck = false, false
	return n
}

// Clear has PortStateChange cleared. It is cleared before the ports are read: a change in between sets it again. search
// says whether the ports are still to be read then.
func (s *State) Clear(search bool) { s.search, s.clears = search, true }

// Cleared takes that a Set was answered. It reports whether the ports are to be read now.
func (s *State) Cleared() (search bool) {
	if !s.clears {
		return false
	}
	search, s.search, s.clears = s.search, false, false
	return search
}

// Clears reports whether PortStateChange is to be cleared.
func (s *State) Clears() bool { return s.clears }

// Tables is what SwitchInfo is to say of forwarding tables, and for how long packets live.
type Tables struct {
	AreThere bool
	Top      ib.LID
	LifeTime ib.ExpTime
}

// Want returns SwitchInfo as it is to be, but for what depends on multicast.
func (s *State) Want(t Tables) mad.SwitchInfo {
	want := s.info
	if t.AreThere {
		want.LinearFDBTop = t.Top
		if !s.lifetime {
			want.LifeTimeValue = t.LifeTime
		}
	}
	want.PortStateChange = s.clears
	return want
}

// Differs reports whether a SwitchInfo is to be written.
func (s *State) Differs(want *mad.SwitchInfo) bool {
	have := s.info
	have.PortStateChange = false
	return *want != have
}

// Ask records a Set that goes out.
func (s *State) Ask(want *mad.SwitchInfo) {
	s.top, s.life, s.asked = want.LinearFDBTop, want.LifeTimeValue, multicast.AskedBy(want)
}

// MissedMulticast reports which fields about multicast the switch did not keep in the last Set.
func (s *State) MissedMulticast() (top, ports bool) { return s.asked.Missed(&s.info) }

// MissedTop reports whether the switch did not keep the LinearFDBTop of the last Set.
func (s *State) MissedTop(t Tables) bool {
	return t.AreThere && s.info.LinearFDBTop != t.Top && s.top == t.Top
}

// LearnLifeTime learns whether the switch keeps the lifetime of packets. A Set from before there were tables asked for none.
func (s *State) LearnLifeTime(t Tables) {
	if s.life == t.LifeTime && s.info.LifeTimeValue != t.LifeTime {
		s.lifetime = true
	}
}

// Copy brings a node up to date with SwitchInfo. LinearFDBCap is not trusted: one device with a false value would stop
// routing for all. A switch that is too small refuses its own blocks.
func (s *State) Copy(tn *topo.Node) {
	tn.MulticastFDBCap = s.info.MulticastFDBCap
	tn.PartitionEnforcementCap = s.info.PartitionEnforcementCap
	tn.InboundEnforcementCap, tn.OutboundEnforcementCap = s.info.InboundEnforcementCap, s.info.OutboundEnforcementCap
	tn.EnhancedPort0 = s.info.EnhancedPort0
}
