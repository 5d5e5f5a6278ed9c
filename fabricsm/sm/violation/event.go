package violation

import (
	"fmt"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
)

// Violation is the event of one row of the list of violations: a kind, a source, a reporter and the same detail. It is sent
// when the row begins and when its count reaches 2, 5, 10, 20, 50, .... If the row grew since, it is sent again once a
// second with Quiet set, so that the last of a series has the exact count. No field has a key, except for P_Keys, which are
// no secrets.
type Violation struct {
	ID   uint64 // of the row
	Kind Kind
	Trap mad.TrapNum // 0 if no trap reported it, and for the class traps

	// The source is the accused, as far as it is known, and By says what names it. None of
	// these proves it.
	Place ib.Place // switch port in front of it
	GUID  ib.GUID  // end port there
	LID   ib.LID
	By    Basis
	// Named is a LID that the sender itself wrote into the SMP as its own, where that is
	// not the accused's. It accuses no port.
	Named ib.LID
	// Victim is the port whose LID or GUID an adapter was given: HostWrote.
	Victim ib.GUID

	Reporter      ib.GUID  // end port of the device that reports it
	ReporterPlace ib.Place // switch port in front of that, or of a switch that stopped a packet the port; zero: the switch itself

	PKey   ib.PKey
	Detail string // the attempt: "SubnSet PortInfo", "queue pair 0x2a"

	Verdict Verdict
	Count   uint64 // reports
	Repeats uint64 // reports that were sent again, as if they had been lost
	Counted uint64 // violations that the reporter has counted, of which reports are a sample; 0: not known
	First   time.Time
	Last    time.Time

	Others bool // it stands for rows that there is no room for: all of its kind and source, or of its kind
	Quiet  bool // not for the log
}

func (*Violation) FabricEvent() {}

// String returns a sentence. It says no more than is known: "claimed" while only a trap says so.
func (e *Violation) String() string {
	var b strings.Builder
	b.WriteString(violationWords[e.Kind])
	if e.Others {
		b.WriteString(", various")
	}
	if e.PKey != 0 {
		fmt.Fprintf(&b, " %v", e.PKey)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ", %s,", e.Detail)
	}
	b.WriteString(" by " + e.source())
	if e.Kind == HostWrote {
		b.WriteString(e.written())
		return b.String()
	}
	if e.Named != 0 {
		fmt.Fprintf(&b, "; the SMP names LID %v as its sender's", e.Named)
	}
	if e.Reporter != 0 {
		fmt.Fprintf(&b, "; reported by port %v", e.Reporter)
		if !e.ReporterPlace.IsZero() {
			fmt.Fprintf(&b, " at %v", e.ReporterPlace)
		}
	}
	switch e.Verdict {
	case Confirmed:
		b.WriteString(", which has counted it, whoever did it")
	case Refuted:
		b.WriteString(", which has counted nothing: the trap is another's")
	default:
		b.WriteString("; claimed, not proven")
	}
	fmt.Fprintf(&b, "; number %d", e.Count)
	return b.String()
}

var violationWords = [NumKinds]string{
	BadMKey: "wrong M_Key", BadPKey: "wrong P_Key", BadQKey: "wrong Q_Key", BadCCKey: "wrong CC_Key", BadVSKey: "wrong VS_Key",
	BadN2NKey: "wrong N2N key", N2NMisconfigured: "N2N key of a neighbour that does not match", BadSMKey: "no right SM_Key",
	ForgedTrap: "forged trap", StrayMAD: "answer that nobody asked for", TrapStorm: "storm of traps", HostWrote: "adapter written to, by its host or another subnet manager",
	LinkState: "link state change", LinkIntegrity: "link integrity threshold reached", BufferOverrun: "buffer overrun threshold reached",
	FlowControl: "flow control watchdog expired", LocalChange: "local change", ImageChange: "system image GUID changed", OwnMKey: "M_Key tried by this subnet manager", OtherTrap: "trap",
}

// written is what an adapter holds now.
func (e *Violation) written() string {
	text := ""
	if e.LID != 0 && !e.Others {
		text = fmt.Sprintf("; LID %v", e.LID)
	}
	if e.Victim != 0 {
		text += fmt.Sprintf("; that is of port %v", e.Victim)
	}
	return text + fmt.Sprintf("; read there by this subnet manager, number %d", e.Count)
}

// source names the source of the violation.
func (e *Violation) source() string {
	switch {
	case e.Place.IsZero() && e.GUID == 0 && e.LID == 0:
		return "somebody unknown"
	case e.Place.IsZero() && e.GUID == 0:
		return fmt.Sprintf("LID %v, which nobody has", e.LID)
	case e.Place.IsZero():
		return fmt.Sprintf("port %v", e.GUID)
	}
	text := fmt.Sprintf("what is at %v", e.Place)
	if e.GUID != 0 {
		text += fmt.Sprintf(" (port %v)", e.GUID)
	}
	switch e.By {
	case ByLID:
		text += ", as the LID says"
	case ByWay:
		text += ", as the way of the SMP says, which its sender may have made up"
	default:
	}
	return text
}

// TrapReceived reports a trap that is no violation, by the same sequence as
// Violation: a source of one number is a row.
type TrapReceived struct {
	LID   ib.LID
	GUID  ib.GUID  // end port the LID belongs to, zero if unknown
	Place ib.Place // switch port in front of it, or the port of a switch that it is about
	Trap  mad.TrapNum
	Count uint64 // from that source so far
	Quiet bool   // not for the log
}

func (*TrapReceived) FabricEvent() {}

func (e *TrapReceived) String() string {
	at := ""
	if !e.Place.IsZero() {
		at = fmt.Sprintf(" at %v", e.Place)
	}
	return fmt.Sprintf("trap %v from LID %v (port %v%s), number %d from there", e.Trap, e.LID, e.GUID, at, e.Count)
}

// KeyGuessing says that the count of wrong keys of a device grows fast: an attacker tries keys. The count is read from the
// device itself, under its key. The event is sent when Count reaches 10, 20, 50, ... within ten minutes. The source is what
// the violations claim; where that is proven, health.Unhealthy follows with the condition Guessing.
type KeyGuessing struct {
	Kind   keys.Kind // MKey, or that of a class
	GUID   ib.GUID   // port GUID of the device, of a switch that of port 0
	Place  ib.Place  // zero for a switch
	Count  uint64    // wrong keys in Window
	Window time.Duration
}

func (*KeyGuessing) FabricEvent() {}

func (e *KeyGuessing) String() string {
	return fmt.Sprintf("somebody tries the %v of port %v: %d wrong ones in %v", e.Kind, e.GUID, e.Count, e.Window.Round(time.Second))
}
