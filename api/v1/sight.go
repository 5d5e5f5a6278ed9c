package v1

import "time"

// Values of Sight.State.
const (
	SightClear  = "clear"
	SightPartly = "partly-blind"
	SightBlind  = "blind"
)

// Values of Sight.Cause.
const (
	SightOwnPort = "own-port" // our own port has no link
	SightAdapter = "adapter"  // the adapter cannot be used
	SightAlone   = "alone"    // no node but our own is in sight
	SightNodes   = "nodes"    // a large part of what was known went out of sight at once
)

// Sight says whether the subnet manager sees the fabric that it knows. While the state is not clear, no membership is
// withdrawn because of evidence, and no LID of a port out of sight is given to another.
type Sight struct {
	State  string    `json:"state" enum:"clear,partly-blind,blind"`
	Cause  string    `json:"cause,omitempty" doc:"own-port, adapter, alone or nodes; none: the state is clear"`
	Reason string    `json:"reason,omitempty" doc:"the cause in a sentence"`
	Since  time.Time `json:"since,omitzero" doc:"when the state was clear last"`
	Known  int       `json:"known" doc:"nodes that are in sight, or were until a short time ago"`
	Nodes  int       `json:"nodes" doc:"of these, out of sight"`
	Ports  int       `json:"ports" doc:"connected ports of the nodes out of sight"`
	Hosts  int       `json:"hosts" doc:"hosts of the inventory that have one of the nodes out of sight"`
	Names  []string  `json:"names,omitempty" doc:"switches and then hosts out of sight, at most 16"`
	More   int       `json:"more,omitempty" doc:"how many more switches and hosts are out of sight than are named"`
}

// Frozen reports whether what automatic causes take away is kept. The zero Sight is not frozen.
func (s *Sight) Frozen() bool { return s.State == SightPartly || s.State == SightBlind }

// SightAccept says that the part out of sight is gone permanently.
type SightAccept struct {
	Reason string `json:"reason" minLength:"1" maxLength:"200" doc:"why, for the audit log"`
}
