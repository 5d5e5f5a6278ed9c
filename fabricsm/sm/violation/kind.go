package violation

import "fmt"

// Kind is what a trap, or another MAD without a request, reports. Its text is shown by the API, metrics and the
// command line.
type Kind uint8

// Kinds of reports. Those before LinkState are violations.
const (
	BadMKey          Kind = iota // an SMP showed a wrong M_Key: trap 256
	BadPKey                      // a packet had a P_Key that the port does not have: traps 257 and 259
	BadQKey                      // a packet had a wrong Q_Key: trap 258
	BadCCKey                     // a MAD of class 0x21 showed a wrong key: its trap 0
	BadVSKey                     // of class 0x0A
	BadN2NKey                    // of class 0x0C
	N2NMisconfigured             // a neighbour showed a wrong key of class 0x0C: its trap 1
	BadSMKey                     // a subnet manager without our SM_Key, or not where one is allowed; see sm.SMInfoRefused, sm.ForeignSM
	ForgedTrap                   // a trap that cannot be from the device it names
	StrayMAD                     // an answer to nothing that was asked; see sm.StrayAnswer
	TrapStorm                    // more traps than a device sends by itself
	HostWrote                    // an adapter holds what was not left there: its own host wrote it, or another subnet manager
	LinkState                    // a port of a switch changed: trap 128
	LinkIntegrity                // trap 129
	BufferOverrun                // trap 130
	FlowControl                  // trap 131
	LocalChange                  // trap 144
	ImageChange                  // the system image GUID changed: trap 145
	OwnMKey                      // trap 256 about this subnet manager, which had to find out which of two keys a device is on
	OtherTrap                    // a vendor's, or a number that means nothing here
	NumKinds         int  = iota
)

var reportNames = [NumKinds]string{
	"m-key", "p-key", "q-key", "cc-key", "vs-key", "n2n-key", "n2n-config", "sm-key", "forged-trap", "stray-answer", "trap-storm", "host-wrote",
	"link-state", "link-integrity", "buffer-overrun", "flow-control", "local-change", "system-image", "own-m-key", "other",
}

// String returns the name: "m-key".
func (k Kind) String() string {
	if int(k) < NumKinds {
		return reportNames[k]
	}
	return fmt.Sprintf("report kind %d", uint8(k))
}

// Violation reports whether the kind is about a forbidden act, and not about a change of state.
func (k Kind) Violation() bool { return k < LinkState }

// Verdict says what became of a report. Any host may send a trap in the name of another, so a report is only a claim until
// the device that it names was asked. No report is a reason to cut off a device.
type Verdict uint8

// Verdicts.
const (
	Claimed   Verdict = iota // not checked, or nothing there could prove it
	Confirmed                // the device that it names has counted it: a Get of its PortInfo shows that. Which host caused it that does not show
	Refuted                  // the device that it names has counted nothing: another device sent the trap
	NumVerdicts
)

var verdictNames = [NumVerdicts]string{"claimed", "confirmed", "refuted"}

// String returns the name: "confirmed".
func (v Verdict) String() string {
	if v < NumVerdicts {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// Basis is what a report names its source by.
type Basis uint8

// Bases. A host can make up each of them in what a trap says: LID and way with other
// firmware or another kernel, the rest by forging the trap.
const (
	ByNothing Basis = iota // the source is not known
	ByLID                  // the source LID of the packet, which the sender's adapter stamped
	ByWay                  // the return path of the SMP, walked back over known cables
	ByPort                 // the switch port that stopped it, as a trap says, or over which we asked
	NumBases
)

var basisNames = [NumBases]string{"", "lid", "way", "port"}

// String returns the name: "way"; "" for ByNothing.
func (b Basis) String() string {
	if b < NumBases {
		return basisNames[b]
	}
	return fmt.Sprintf("basis %d", uint8(b))
}
