package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// FabricHealth is a switch port, or a switch, that is unhealthy or that an operator
// marked.
type FabricHealth struct {
	At        string    `json:"at" doc:"by name: leaf1/7, or leaf1 for the switch itself"`
	Place     ib.Place  `json:"place" doc:"switch port in front of it; port 0: the switch itself"`
	Node      ib.GUID   `json:"node_guid,omitzero" doc:"what was seen there last"`
	Unhealthy bool      `json:"unhealthy" doc:"false: marked healthy"`
	Condition string    `json:"condition,omitempty" doc:"flapping, unresponsive, noisy, set-errors, illegal-answers, rebooting, marked, too-many-nodes, guessing or refuses-key"`
	Action    string    `json:"action,omitempty" doc:"in force: report, no-discover, isolate or disable"`
	Mark      string    `json:"mark,omitempty" doc:"what an operator said: healthy or unhealthy"`
	Reason    string    `json:"reason,omitempty" doc:"the operator's words, or what was counted"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until,omitzero" doc:"when it counts as healthy again if it holds still; none: when an operator says so"`
}

// HealthMark is what an operator says of the health of a place.
type HealthMark struct {
	Place  string `json:"place" maxLength:"160" doc:"switch port as SWITCH/PORT, or SWITCH alone; NODE/PORT of a host means the switch port it is cabled to"`
	Mark   string `json:"mark" enum:"unhealthy,healthy,none" doc:"none: what was said is taken back, a quarantine ends, and the rules decide again"`
	Reason string `json:"reason,omitempty" maxLength:"200" doc:"for those who read it later; needed to mark something unhealthy"`
}

// Values of HealthMark.Mark.
const (
	MarkUnhealthy = "unhealthy"
	MarkHealthy   = "healthy"
	MarkNone      = "none"
)
