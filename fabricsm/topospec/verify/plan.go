package verify

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Plan is the treatment of a port by the specification before any device behind it is asked.
type Plan uint8

// Plans. The zero Plan is PlanHold.
const (
	PlanHold    Plan = iota // the switch is not verified: send nothing beyond the port
	PlanProbe               // ask for NodeInfo, and pass the answer to the judge
	PlanLeave               // no_discover: send nothing, report the link state
	PlanDisable             // switch the port off, without asking
	PlanDark                // there should be nothing: if there is a link, ask for NodeInfo, and pass it to the judge
)

// Before says what to do at a switch port before a packet goes through it. In a
// mode below Enforce everything but a boundary is asked.
func (j *Judge) Before(at ib.Place) Plan {
	id := j.spec.DeviceByGUID(at.Switch)
	acts := j.mode == topospec.Enforce
	if acts && (id == topospec.None || !j.trusts(id)) {
		return PlanHold
	}
	rec := j.find(at)
	if acts && rec != nil && rec.state == StateDisabled {
		return PlanDisable
	}
	link, _ := j.spec.LinkAt(j.spec.SlotOf(topospec.EndAt(at)))
	switch {
	case link == nil:
		return PlanDark
	case link.State == topospec.NoDiscover:
		return PlanLeave
	case link.State == topospec.Disabled && acts:
		return PlanDisable
	case link.State == topospec.Disabled || link.State == topospec.Reserved:
		return PlanDark
	default:
		return PlanProbe
	}
}
