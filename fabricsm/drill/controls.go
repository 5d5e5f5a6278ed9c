package drill

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/drill/weak"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/mkeys/keyplace"
)

// Control is something that stops threats, by name.
type Control string

// Controls.
const (
	SwitchEnforcement Control = "switch_enforcement"
	SenderMembership  Control = "sender_membership"
	LimitedDefault    Control = "limited_default"
	LimitedClients    Control = "limited_clients"
	StableIndices     Control = "stable_indices"
	CapacityCheck     Control = "capacity_check"
	RevokeOrder       Control = "revoke_order"
	RawFilter         Control = "raw_filter"
	PlaceBinding      Control = "place_binding"
	FirstPlace        Control = "first_place"
	HostPlaces        Control = "host_places"
	ExplorationBudget Control = "exploration_budget"
	Audit             Control = "audit"
	FlapQuarantine    Control = "flap_quarantine"
	Topospec          Control = "topospec"
)

// Carried is a control with what it is and the drills it carries: each passes with
// all controls, and fails without this one.
type Carried struct {
	Name   Control
	What   string
	Drills []string
	off    func(*SiteOptions) // nil: the drills ask Scene.Off themselves
}

// Controls lists all controls.
func Controls() []Carried {
	return slices.Concat(partitionControls(), managementControls(), classControls(), administrationControls(), registrationControls())
}

func partitionControls() []Carried {
	return []Carried{
		{
			SwitchEnforcement, "switch ports drop packets whose P_Key the host behind them does not have",
			[]string{"T1", "T2", "T6", "T10", "T11", "T12", "T15", "T38"},
			func(o *SiteOptions) { o.Device().PretendsEnforcement = true },
		},
		{
			LimitedDefault, "hosts are limited members of the default partition",
			[]string{"T2", "T12", "T56", "T57"},
			func(o *SiteOptions) { o.SM.Controls.Partitions = weak.FullDefault{} },
		},
		{
			SenderMembership, "switch ports let no limited member send as a full one",
			[]string{"T2", "T15"},
			func(o *SiteOptions) { o.Device().InboundBaseOnly = true },
		},
		{
			LimitedClients, "who uses a shared partition is a limited member of it",
			[]string{"T15"},
			func(o *SiteOptions) { o.FullClients = true },
		},
		{
			StableIndices, "a P_Key keeps its index in the table for as long as it is there",
			[]string{"T9"},
			func(o *SiteOptions) { o.SM.Controls.Partitions = weak.MovesKeys{} },
		},
		{
			CapacityCheck, "no host is admitted whose P_Key does not fit into every table on the way",
			[]string{"T7"},
			func(o *SiteOptions) { o.SM.Controls.Partitions = weak.AnyCapacity{} },
		},
		{
			RevokeOrder, "a P_Key is taken from the switch port first, which the host does not own",
			[]string{"T10"},
			func(o *SiteOptions) { o.SM.Controls.Partitions = weak.AdapterFirst{} },
		},
		{
			RawFilter, "switch ports in front of hosts drop packets that carry no P_Key",
			[]string{"T14"},
			func(o *SiteOptions) { o.SM.Controls.Ports = weak.NoRawFilter{} },
		},
		{
			PlaceBinding, "a membership holds for a GUID at one switch port only",
			[]string{"T18"},
			func(o *SiteOptions) { o.Follows = true },
		},
		{
			Topospec, "what is not at the switch port where it was declared to be is switched off",
			[]string{
				"T17", "T18", "T19", "T20", "T21", "T22", "T23", "T24", "T26", "T28", "T148", "T149", "T150", "T151", "T152",
			},
			func(o *SiteOptions) {
				o.SM.Topology = sm.TopologyConfig{}
				if o.SM.MKey.Source != nil {
					o.SM.MKey.Places = keyplace.Seen
				}
			},
		},
		{
			FirstPlace, "a GUID that is shown twice is believed where it was first",
			[]string{"T17"},
			func(o *SiteOptions) { o.SM.Controls.Ports = weak.NewestWins{} },
		},
		{
			HostPlaces, "no switch is believed where inventory has a host",
			[]string{"T21"},
			func(o *SiteOptions) { o.NoHosts = true },
		},
		{
			ExplorationBudget, "what may be found behind one port is bounded",
			[]string{"T21"},
			func(o *SiteOptions) { o.SM.Growth = sm.GrowthConfig{} },
		},
		{
			Audit, "every port is asked again who it is, without any cause",
			[]string{"T22", "T23", "T38"},
			func(o *SiteOptions) { o.SM.AuditPeriod = -1 },
		},
		{
			FlapQuarantine, "a link that goes up and down is closed for a while",
			[]string{"T153"},
			func(o *SiteOptions) { o.SM.Health.Flapping = health.Rule{Action: health.Ignore} },
		},
	}
}

// ParseControl returns the control of a list that has a name.
func ParseControl(list []Carried, name string) (Control, error) {
	var near []string
	for _, c := range list {
		if string(c.Name) == name {
			return c.Name, nil
		}
		if name != "" && (strings.Contains(string(c.Name), name) || strings.Contains(name, string(c.Name))) {
			near = append(near, string(c.Name))
		}
	}
	slices.Sort(near)
	if len(near) > 0 {
		return "", fmt.Errorf("no control %q; is it %s?", name, strings.Join(near, " or "))
	}
	return "", fmt.Errorf("no control %q: drill list names all %d", name, len(list))
}

// weaken switches controls off.
func (o *SiteOptions) weaken(without []Control) {
	for _, c := range Controls() {
		if c.off != nil && slices.Contains(without, c.Name) {
			c.off(o)
		}
	}
}
