package route

import (
	"errors"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// MaxFindings is how many faults a Report describes; the counts go on.
const MaxFindings = 20

// Fault is a way in which a forwarding table is wrong.
type Fault uint8

// Faults of forwarding tables.
const (
	// NoTable: a switch has no table, or one that ends below the highest LID.
	NoTable Fault = iota + 1
	// NoRoute: a switch drops packets for a LID that it could reach.
	NoRoute
	// BadPort: the entry names a port that does not exist, has no usable
	// cable, or leads to an end port that the LID does not belong to.
	BadPort
	// WrongDelivery: the switch that the LID is behind sends it elsewhere.
	WrongDelivery
	// ForwardingLoop: packets return to a switch they passed before.
	ForwardingLoop
	// Stray: there is a route to a LID that has no owner or that lies in another island.
	Stray
	// TooFewLanes: a link between switches has fewer virtual lanes than the
	// tables have layers.
	TooFewLanes

	numFaults = int(TooFewLanes) + 1
)

func (f Fault) String() string {
	switch f {
	case NoTable:
		return "no forwarding table"
	case NoRoute:
		return "no route"
	case BadPort:
		return "egress port leads nowhere"
	case WrongDelivery:
		return "delivered to the wrong port"
	case ForwardingLoop:
		return "packets go round in circles"
	case Stray:
		return "route to a LID that is not there"
	case TooFewLanes:
		return "the link has fewer virtual lanes than the routes need"
	default:
		return fmt.Sprintf("Fault(%d)", uint8(f))
	}
}

// Finding is one fault at one entry.
type Finding struct {
	Fault  Fault
	Switch ib.GUID
	LID    ib.LID
	Port   ib.PortNum // value of the entry
}

// String names the entry and the fault.
func (f Finding) String() string {
	switch f.Fault {
	case NoTable:
		return fmt.Sprintf("switch %v: %v", f.Switch, f.Fault)
	case TooFewLanes:
		return fmt.Sprintf("switch %v port %d: %v", f.Switch, f.Port, f.Fault)
	default:
	}
	return fmt.Sprintf("switch %v LID %v egress port %d: %v", f.Switch, f.LID, f.Port, f.Fault)
}

// Channel is one direction of a cable between switches, the unit whose buffers
// can wait.
type Channel struct {
	Switch ib.GUID // the sending end
	Port   ib.PortNum
	Peer   ib.GUID // the receiving switch
	// LID is, in a credit loop, a destination whose route goes on from this
	// channel to the next one of the loop.
	LID ib.LID
}

// String returns "switch/port", and the LID if there is one.
func (c Channel) String() string {
	if c.LID == 0 {
		return fmt.Sprintf("%v/%d", c.Switch, c.Port)
	}
	return fmt.Sprintf("%v/%d (LID %v)", c.Switch, c.Port, c.LID)
}

// Report is the verdict of [Check] and the figures it found on the way.
type Report struct {
	Switches int
	LIDs     int // judged, those of absent owners included
	Links    int // between switches, both directions counted

	Counts   [numFaults]int // by Fault
	Findings []Finding      // the first MaxFindings, by switch that the LID is behind
	Input    error          // the fabric itself cannot be routed, see NewGraph

	// CreditLoop is a shortest cycle through one channel among those whose buffers can wait for each other, nil if there is
	// none.
	CreditLoop   []Channel
	CreditLoopVL ib.VL // the lane it is on; the lowest that has one

	MaxHops int // links between switches on the longest route between CAs
	// Loads count routes from a CA port to a LID of a CA port, by channel: the load of each if all sent to all.
	WorstLoad int64
	Worst     Channel
	MeanLoad  float64

	// Waits are, by layer, which links may wait for which; nil if there is an error.
	Waits []Waits
}

// Err is nil if the tables may be used. Otherwise it lists the first findings.
func (r Report) Err() error {
	var errs []error
	if r.Input != nil {
		errs = append(errs, r.Input)
	}
	total := 0
	for _, n := range r.Counts {
		total += n
	}
	for i, f := range r.Findings {
		if i == 5 && total > 5 {
			errs = append(errs, fmt.Errorf("and %d more faults in the tables", total-i))
			break
		}
		errs = append(errs, errors.New(f.String()))
	}
	if r.CreditLoop != nil {
		errs = append(errs, errors.New(r.loopSentence()))
	}
	return errors.Join(errs...)
}

func (r Report) loopSentence() string {
	var b strings.Builder
	lane := ""
	if r.CreditLoopVL != 0 {
		lane = fmt.Sprintf(" of VL %d", r.CreditLoopVL)
	}
	fmt.Fprintf(&b, "credit loop over %d links%s: ", len(r.CreditLoop), lane)
	for i, c := range r.CreditLoop {
		if i == 12 {
			b.WriteString("... -> ")
			break
		}
		fmt.Fprintf(&b, "%v -> ", c)
	}
	fmt.Fprintf(&b, "%v/%d again; use an engine that restricts turns", r.CreditLoop[0].Switch, r.CreditLoop[0].Port)
	return b.String()
}
