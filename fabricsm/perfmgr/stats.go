package perfmgr

import (
	"math/bits"
	"time"
)

// Stats says how the reading goes. Counts are since New.
type Stats struct {
	Answered    uint64 // requests that a device answered with values
	Refused     uint64 // with an error
	TimedOut    uint64 // not at all, or only to others
	Invalid     uint64 // with what is no answer to the question
	Strays      uint64 // answers to no request that was out
	Resets      uint64 // answers in which a counter was less than before
	Implausible uint64 // answers in which a counter grew by more than any link carries

	Passes   uint64        // that are over
	Interval time.Duration // that is wanted
	Took     time.Duration // the last pass
	Between  time.Duration // from the begin of the last but one pass to that of the last; 0: there was one, or nothing to read in between
	Begun    time.Time     // of the last pass that is over; zero: there is none

	// As of the end of the last pass; 0 where there is nothing to read:
	Ports     int // with a link
	Current   int // of these: read in the last two passes
	Silent    int // agents that did not answer, and are asked less and less often
	Saturated int // counters that are at their largest value
}

// Stats returns how the reading goes.
func (m *Manager) Stats() Stats { return m.stats }

// survey counts at the end of a pass.
func (m *Manager) survey(now time.Time) {
	s := &m.stats
	s.Ports, s.Current, s.Silent, s.Saturated = 0, 0, 0, 0
	oldest := now.Add(-2 * max(m.Interval, s.Took))
	for _, a := range m.list {
		if a.fails >= patience {
			s.Silent++
		}
		for i := range a.ports {
			p := &a.ports[i]
			if !p.listed {
				continue
			}
			s.Ports++
			s.Saturated += bits.OnesCount32(uint32(p.full))
			if p.newest().After(oldest) {
				s.Current++
			}
		}
	}
}
