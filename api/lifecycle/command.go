package lifecycle

// Command is what an actor asks for.
type Command uint8

// Commands.
const (
	Import   Command = iota // inventory gets the host
	Assign                  // the operator wants it in a cluster
	Attest                  // the host sends evidence that is right
	Seal                    // the host shows that it attests nothing more in this boot
	ReadBack                // the Subnet Manager has found the ports as the grants want them
	Appear                  // the last condition of inventory, fabric or review is met
	Vanish                  // one of them is not met any more
	Claim                   // another host proves a GUID of it
	Resolve                 // the operator decides whose GUID it is
	Replace                 // two persons record another TPM (RMA)
	Expire                  // the window ends, or evidence does not count any more
	Release                 // the operator ends the assignment
	Fence                   // the operator ends it, and has the switch ports shut
	Reopen                  // the operator has the switch ports opened again
	Remove                  // the host leaves inventory
	commands
)

var commandNames = [commands]string{
	"import", "assign", "attest", "seal", "read-back", "appear", "vanish", "claim", "resolve", "replace", "expire", "release", "fence", "reopen", "remove",
}

// String returns the name of the command.
func (c Command) String() string { return commandNames[c] }

// Actor is the role that sends a command.
type Actor string

// Actors.
const (
	Operator     Actor = "operator"
	Provisioning Actor = "provisioning"
	OtherHost    Actor = "another host"
	Service      Actor = "service"
)

// Guard is a condition of a command.
type Guard string

// Guards. Beside these, a command is refused that names another assignment than the last one (Changed).
const (
	GuardUnknown     Guard = "not in inventory"
	GuardKnown       Guard = "in inventory"
	GuardNotHeld     Guard = "not held"
	GuardAbsent      Guard = "no P_Key left in a switch port"
	GuardNotBound    Guard = "in no cluster, or in this one with nothing granted"
	GuardAway        Guard = "in no cluster"
	GuardTraceless   Guard = "each P_Key proven absent"
	GuardLeaving     Guard = "in a cluster, or being released"
	GuardAssigned    Guard = "in a cluster"
	GuardNotAdmitted Guard = "not admitted in this assignment"
	GuardWindow      Guard = "window open"
	GuardEvidence    Guard = "evidence there"
	GuardOpen        Guard = "no switch port shut"
	Changed          Guard = "the assignment named is the last one"
)

// Code returns the code by which the service refuses a command for a guard.
func (g Guard) Code() string {
	switch g {
	case GuardKnown:
		return "host_unknown"
	case GuardNotHeld:
		return "host_held"
	case GuardAbsent:
		return "host_releasing"
	case GuardNotBound, GuardAway:
		return "host_assigned"
	case GuardTraceless:
		return "host_granted"
	case GuardLeaving:
		return "host_not_assigned"
	case GuardAssigned, GuardNotAdmitted, GuardWindow:
		return "window"
	case GuardEvidence, Changed:
		return "changed"
	default: // GuardUnknown, GuardOpen: no caller gets an answer
		return ""
	}
}

// Asked is what a command says beside its kind.
type Asked struct {
	Command Command
	Late    bool // it names another assignment than the last one
	Other   bool // of Assign: it names another cluster than the one the host is in
}

// met reports whether a guard lets a command pass.
func (g Guard) met(f *Facts, a Asked) bool {
	switch g {
	case GuardUnknown:
		return !f.Known
	case GuardKnown:
		return f.Known
	case GuardNotHeld:
		return !f.Held
	case GuardAbsent:
		return f.Assigned || !f.Left
	case GuardNotBound:
		return !f.Assigned || !a.Other && !f.Granted
	case GuardAway:
		return !f.Assigned
	case GuardTraceless:
		return !f.Traces
	case GuardLeaving:
		return f.Assigned || f.Left
	case GuardAssigned:
		return f.Assigned
	case GuardNotAdmitted:
		return !f.Admitted
	case GuardWindow:
		return f.Window
	case GuardOpen:
		return !f.Shut
	default: // GuardEvidence
		return f.Assigned && f.Evidence
	}
}
