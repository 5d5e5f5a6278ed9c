package sm

import (
	"fmt"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
)

// ReportKind is what a trap, or another MAD without a request, reports. Its text is shown by the API, metrics and the
// command line.
type ReportKind uint8

// Kinds of reports. Those before LinkState are violations.
const (
	BadMKey          ReportKind = iota // an SMP showed a wrong M_Key: trap 256
	BadPKey                            // a packet had a P_Key that the port does not have: traps 257 and 259
	BadQKey                            // a packet had a wrong Q_Key: trap 258
	BadCCKey                           // a MAD of class 0x21 showed a wrong key: its trap 0
	BadVSKey                           // of class 0x0A
	BadN2NKey                          // of class 0x0C
	N2NMisconfigured                   // a neighbour showed a wrong key of class 0x0C: its trap 1
	BadSMKey                           // a subnet manager without our SM_Key, or not where one is allowed; see SMInfoRefused, ForeignSM
	ForgedTrap                         // a trap that cannot be from the device it names
	StrayMAD                           // an answer to nothing that was asked; see StrayAnswer
	TrapStorm                          // more traps than a device sends by itself
	HostWrote                          // an adapter holds what was not left there: its own host wrote it, or another subnet manager
	LinkState                          // a port of a switch changed: trap 128
	LinkIntegrity                      // trap 129
	BufferOverrun                      // trap 130
	FlowControl                        // trap 131
	LocalChange                        // trap 144
	ImageChange                        // the system image GUID changed: trap 145
	OwnMKey                            // trap 256 about this subnet manager, which had to find out which of two keys a device is on
	OtherTrap                          // a vendor's, or a number that means nothing here
	NumReportKinds   int        = iota
)

var reportNames = [NumReportKinds]string{
	"m-key", "p-key", "q-key", "cc-key", "vs-key", "n2n-key", "n2n-config", "sm-key", "forged-trap", "stray-answer", "trap-storm", "host-wrote",
	"link-state", "link-integrity", "buffer-overrun", "flow-control", "local-change", "system-image", "own-m-key", "other",
}

// String returns the name: "m-key".
func (k ReportKind) String() string {
	if int(k) < NumReportKinds {
		return reportNames[k]
	}
	return fmt.Sprintf("report kind %d", uint8(k))
}

// Violation reports whether the kind is about a forbidden act, and not about a change of state.
func (k ReportKind) Violation() bool { return k < LinkState }

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

// Violation is the event of one row of the list of violations: a kind, a source, a reporter and the same detail. It is sent
// when the row begins and when its count reaches 2, 5, 10, 20, 50, .... If the row grew since, it is sent again once a
// second with Quiet set, so that the last of a series has the exact count. No field has a key, except for P_Keys, which are
// no secrets.
type Violation struct {
	ID   uint64 // of the row
	Kind ReportKind
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

func (*Violation) event() {}

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

var violationWords = [NumReportKinds]string{
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

// KeyGuessing says that the count of wrong keys of a device grows fast: an attacker tries keys. The count is read from the
// device itself, under its key. The event is sent when Count reaches 10, 20, 50, ... within ten minutes. The source is what
// the violations claim; where that is proven, Unhealthy follows with the condition Guessing.
type KeyGuessing struct {
	Kind   keys.Kind // MKey, or that of a class
	GUID   ib.GUID   // port GUID of the device, of a switch that of port 0
	Place  ib.Place  // zero for a switch
	Count  uint64    // wrong keys in Window
	Window time.Duration
}

func (*KeyGuessing) event() {}

func (e *KeyGuessing) String() string {
	return fmt.Sprintf("somebody tries the %v of port %v: %d wrong ones in %v", e.Kind, e.GUID, e.Count, e.Window.Round(time.Second))
}

// ProtectionLapsed says that a device dropped the protection of its M_Key: the lease has run out after a violation that
// this SM did not answer in time. It is protected again at once.
type ProtectionLapsed struct {
	GUID  ib.GUID
	Place ib.Place // zero for a switch
}

func (*ProtectionLapsed) event() {}

func (e *ProtectionLapsed) String() string {
	return fmt.Sprintf("port %v gave up the protection of its M_Key: its lease ran out; everybody could read the key, which is protected again now", e.GUID)
}

// ViolationConfig bounds what violations and traps may cost.
type ViolationConfig struct {
	// Rows is how many rows are kept, half of them for those that are confirmed; default 4096. Reports without room are
	// counted in rows that stand for others.
	Rows int
	// RowsPerSource is how many rows one source may have; default 64.
	RowsPerSource int
	// TellEvery is how often rows that grew are reported again; default 1 s.
	TellEvery time.Duration
	// ChecksPerSecond is how many Gets a second traps of hosts and of violations may
	// cause, all sources together; default 200.
	ChecksPerSecond int
	// Quiet is the time after which a row that comes again is reported from the beginning of the sequence; default 10 min.
	Quiet time.Duration
}

func (v *ViolationConfig) withDefaults() {
	def(&v.Rows, 4096)
	def(&v.RowsPerSource, 64)
	def(&v.TellEvery, time.Second)
	def(&v.ChecksPerSecond, 200)
	def(&v.Quiet, 10*time.Minute)
}

func (k *configChecker) violations(v *ViolationConfig) {
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"rows of violations", int64(v.Rows)},
		{"rows of violations of one source", int64(v.RowsPerSource)},
		{"time between two events of a violation", int64(v.TellEvery)},
		{"checks of traps in a second", int64(v.ChecksPerSecond)},
		{"quiet time of violations", int64(v.Quiet)},
	} {
		k.notNegative(n.name, n.n)
	}
}
