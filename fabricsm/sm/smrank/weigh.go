package smrank

import "portcullis/fabricsm/ib"

// Verdict is what follows from what another Subnet Manager says of itself.
type Verdict uint8

// Verdicts.
const (
	Nothing Verdict = iota

	// MasterRules: the polled Subnet Manager is master, as expected.
	MasterRules
	// MasterIsLower: it is, but of lower rank. It is to be asked for a handover.
	MasterIsLower
	// MasterLeft: it stepped down, or is of lower rank and no master. This one takes over.
	MasterLeft
	// MasterIsLate: it did not become master in time. This one takes over, and yields to masters only.
	MasterIsLate
	// OtherRules: another one is master than the one that is polled.
	OtherRules

	// HandOver: this master is to hand over.
	HandOver
	// AwaitHandover: the other is a master of lower rank. This one stops writing until that one has handed over.
	AwaitHandover
	// Remind: the other is still a master of lower rank, and is to be asked for a handover again.
	Remind
	// RivalLeft: the awaited Subnet Manager is no longer master.
	RivalLeft
)

// Moment is what this Subnet Manager is waiting for when it weighs an answer.
type Moment struct {
	// As a standby.
	Polled  bool // the answer is that of the Subnet Manager that is polled
	Handing bool // a command to that one is under way
	Late    bool // it has had enough time to become master
	Ruled   bool // the Subnet Manager that is polled is known to be master

	// As a master.
	Waits   bool // for the handover of a master of lower rank
	Awaited bool // the answer is that of the awaited one
}

// Weigh returns what follows from an answer.
func (s *Own) Weigh(o *Other, at Moment) Verdict {
	switch {
	case s.State == ib.SMStandby && at.Polled:
		return s.weighMaster(o, at)
	case !o.Trusted:
		return Nothing
	case s.State == ib.SMStandby:
		if o.State == ib.SMMaster && !at.Ruled {
			return OtherRules
		}
		return Nothing
	case s.Shown() == ib.SMMaster:
		return s.weighRival(o, at)
	default:
		return Nothing
	}
}

// weighMaster judges the Subnet Manager that a standby polls.
func (s *Own) weighMaster(o *Other, at Moment) Verdict {
	switch {
	case at.Handing:
		return Nothing
	case o.Trusted && o.State == ib.SMMaster:
		if s.IsBelow(o) {
			return MasterRules
		}
		return MasterIsLower
	case o.Trusted && (o.State == ib.SMNotActive || !s.IsBelow(o)):
		return MasterLeft
	case at.Late:
		return MasterIsLate
	default:
		return Nothing
	}
}

// weighRival judges another Subnet Manager while this one is master.
func (s *Own) weighRival(o *Other, at Moment) Verdict {
	switch {
	case s.IsBelow(o) && (o.State == ib.SMMaster || o.State == ib.SMStandby):
		return HandOver
	case o.State == ib.SMMaster && !at.Waits && !o.Ignored && s.State == ib.SMMaster:
		return AwaitHandover
	case o.State == ib.SMMaster:
		return Remind
	case at.Awaited:
		return RivalLeft
	default:
		return Nothing
	}
}
