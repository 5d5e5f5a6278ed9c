package verify

import "fmt"

// Verdict is the result for a link end, compared with the specification. The zero Verdict, Unseen, is that of a port
// without a fact.
type Verdict uint8

// Verdicts.
const (
	Unseen        Verdict = iota
	Verified              // as specified
	Held                  // the switch itself is not verified: nothing behind it is believed
	Spoof                 // the GUID belongs elsewhere
	Unknown               // the GUID belongs nowhere
	Malformed             // no device can have the GUID (threat T26)
	RetiredGUID           // the GUID was retired and must never be seen again
	Swapped               // two cables, or two hosts' GUIDs, are exchanged
	IntraHostSwap         // adapters or ports of one host are exchanged
	WrongPort             // the right device by a wrong port
	TypeMismatch          // the node type differs
	Attributes            // port GUID, system image or number of ports differs
	RMACandidate          // under maintenance, and a spare of the same model is there
	Unplanned             // something where the specification has no link
	Missing               // nothing where the specification has a link
	NotDiscovered         // a boundary port: nothing behind it is asked
	Off                   // the specification wants the port switched off
	Lit                   // a reserved port has a link
	// NumVerdicts is how many verdicts there are.
	NumVerdicts
)

var verdictNames = [NumVerdicts]string{
	"unseen", "verified", "held", "spoof", "unknown", "malformed", "retired", "swapped", "intra_host_swap", "wrong_port",
	"type_mismatch", "attributes", "rma_candidate", "unplanned", "missing", "no_discover", "disabled", "reserved",
}

func (v Verdict) String() string {
	if v < NumVerdicts {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// MarshalText returns the name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a name.
func (v *Verdict) UnmarshalText(b []byte) error {
	for i, name := range verdictNames {
		if name == string(b) {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("verdict %.40q: want one of %q", b, verdictNames)
}

// Action is the Subnet Manager's action on a link end. The zero Action is Hold: an end that was not judged gets nothing.
type Action uint8

// Actions.
const (
	Hold    Action = iota // no key, no LID, no route, no partition; the link stays as it is and nothing behind is asked
	Admit                 // it is part of the fabric
	Leave                 // no packet goes beyond the port; its link state is reported
	Disable               // the port is switched off, and only this port
	Keep                  // it would be switched off, but it is protected: existing grants stay, nothing is newly granted, an operator is called
)

var actionNames = []string{"hold", "admit", "leave", "disable", "keep"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("action %d", uint8(a))
}

// MarshalText returns the name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// State is where a port is in its life: dark, seen, held, verified, drift,
// disabled, released.
type State uint8

// States of a port.
const (
	StateDark     State = iota // nothing seen
	StateSeen                  // something is there that is not verified, and the mode does not act
	StateHeld                  // waits: for its switch to be verified, or for an operator
	StateVerified              // as specified
	StateDrift                 // was verified and is not any more, and the mode or its protection keeps it
	StateDisabled              // switched off for the reason in its verdict, until it is released
	StateReleased              // an operator released it; the next fact is judged from the beginning
	// NumStates is how many states there are.
	NumStates
)

var stateNames = [NumStates]string{"dark", "seen", "held", "verified", "drift", "disabled", "released"}

func (s State) String() string {
	if s < NumStates {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText returns the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Fields is a set of fields in which a fact differs.
type Fields uint8

// Fields of the comparison.
const (
	FieldGUID Fields = 1 << iota
	FieldPort
	FieldType
	FieldPortGUID
	FieldSystemImage
	FieldNumPorts
)

var fieldNames = []string{"guid", "port", "type", "portguid", "sysimage", "numports"}

func (f Fields) String() string {
	s := ""
	for i, name := range fieldNames {
		if f&(1<<i) != 0 {
			if s != "" {
				s += "|"
			}
			s += name
		}
	}
	if s == "" {
		return "none"
	}
	return s
}
