package quarantine

import "portcullis/fabricsm/sm/health"

// cause is why an action is in force.
type cause uint8

const (
	byHealth cause = iota // by how what is behind the port behaves
	byLaw                 // by the declared topology
	numCauses
)

// State is what is in force at a switch port. The zero value is that of a port at which nothing is.
type State struct {
	by      [numCauses]health.Action // above health.Ignore nothing behind the port is looked at
	reopens bool                     // the port was switched off by us, and is to be switched on
}

// Action returns the action in force.
func (s *State) Action() health.Action { return max(s.by[byHealth], s.by[byLaw]) }

// IsDark reports whether nothing behind the port is read.
func (s *State) IsDark() bool { return s.Action() > health.Ignore }

// IsOutlawed reports whether the port is dark by the declared topology.
func (s *State) IsOutlawed() bool { return s.by[byLaw] > health.Ignore }

// Reopen records that the port was switched off by us and is to be switched on.
func (s *State) Reopen() { s.reopens = true }

// set puts an action into force.
func (s *State) set(why cause, a health.Action) {
	s.reopens = s.reopens || s.by[why] == health.Disable
	s.by[why] = a
}
