package lifecycle

// State is where a host is on its way into a partition and out again.
type State uint8

// States, in the order of a host's life. In the first five no tenant has the host.
const (
	Unknown     State = iota // inventory does not have it: not yet, or not any more
	Registered               // in inventory, never assigned
	Released                 // the last assignment has ended, and no P_Key of it is left in a switch port
	Fenced                   // as Released, and a switch port of it is shut
	Quarantined              // as Released, and another host claims a GUID of it
	WindowOpen               // assigned, and evidence is accepted
	WindowShut               // assigned, without evidence that counts, and the window is over or was closed by a repair
	Suspended                // assigned, and another host claims a GUID of it
	Attested                 // evidence is accepted, with the locks that policy demands; not handed over yet
	Proven                   // handed over: evidence, locks and seal are there; a condition of the fabric is missing
	Granting                 // a grant is given, and not read back from each port
	Admitted                 // each grant was read back
	Releasing                // the assignment has ended, and a P_Key of it may still be in a switch port
	states
)

var stateNames = [states]string{
	"unknown", "registered", "released", "fenced", "quarantined", "window-open", "window-shut", "suspended",
	"attested", "proven", "granting", "admitted", "releasing",
}

var stateMeanings = [states]string{
	"Inventory does not have the host, or not any more.",
	"The host is in inventory, and was never assigned.",
	"The last assignment has ended. No P_Key of it is left in a switch port.",
	"As released, and a switch port of the host is shut.",
	"As released, and another host claims a GUID of it.",
	"The host is assigned. Evidence is accepted until the window closes.",
	"The host is assigned, and has no evidence that counts. The window has closed, or a repair has closed it.",
	"The host is assigned, and another host claims a GUID of it.",
	"Evidence was accepted, with the locks that policy demands. The host was not handed over yet.",
	"The host was handed over. A condition of inventory, fabric or review is missing.",
	"A grant is given, and not read back from each port.",
	"Each grant was read back.",
	"The assignment has ended. A P_Key of it may still be in a switch port.",
}

// String returns the name of the state, as the API has it.
func (s State) String() string { return stateNames[s] }

// Facts are what is known of a host when a command is decided. The zero value is a host that inventory does not have.
type Facts struct {
	Known    bool // inventory has the host
	Before   bool // it was assigned before, or is
	Assigned bool
	Window   bool // the time in which evidence is accepted is not over
	Evidence bool // evidence of this assignment meets policy, with the locks that it demands
	Sealed   bool // the host was handed over with that evidence, or policy does not demand it
	Given    bool // grants are given
	Granted  bool // a grant was given in this assignment
	Applied  bool // each of them was read back
	Admitted bool // the host was reported as admitted in this assignment
	Left     bool // a P_Key of an ended grant may still be in a switch port
	Traces   bool // a P_Key of a grant is not proven absent from switch port and adapter
	Held     bool // another host claims a GUID of it
	CutOff   bool // the site withdraws the grants of an admitted host that is held
	Braked   bool // a brake keeps its grants, although its evidence does not count
	Shut     bool // a switch port of it is shut
	Ready    bool // inventory, fabric and review have nothing against a grant
}

// Of returns the state that follows from facts.
func Of(f Facts) State {
	switch {
	case !f.Known:
		return Unknown
	case !f.Assigned:
		return f.away()
	case !f.counts():
		return f.awaiting()
	case f.Given && f.Applied:
		return Admitted
	case f.Given:
		return Granting
	case f.Sealed:
		return Proven
	default:
		return Attested
	}
}

// away returns the state of a host that is in no cluster.
func (f *Facts) away() State {
	switch {
	case f.Left:
		return Releasing
	case f.Held:
		return Quarantined
	case f.Shut:
		return Fenced
	case f.Before:
		return Released
	default:
		return Registered
	}
}

// awaiting returns the state of a host that is in a cluster, and whose evidence does not count.
func (f *Facts) awaiting() State {
	switch {
	case f.suspended():
		return Suspended
	case f.Window && !f.Admitted:
		return WindowOpen
	default:
		return WindowShut
	}
}

// suspended reports whether a claim of another host keeps the host from being a member.
func (f *Facts) suspended() bool { return f.Held && (!f.Admitted || f.CutOff) }

// counts reports whether the evidence of the host leads to grants, or keeps them.
func (f *Facts) counts() bool { return f.Braked || f.Evidence && !f.suspended() }
