package health

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"portcullis/fabricsm/ib"
)

// Mark is what an operator says of the health of a place.
type Mark uint8

// Marks.
const (
	MarkNone      Mark = iota // nothing: the rules decide
	MarkHealthy               // it is healthy whatever it does
	MarkUnhealthy             // it is unhealthy whatever it does
)

var markNames = map[Mark]string{MarkHealthy: "healthy", MarkUnhealthy: "unhealthy"}

// String returns "healthy", "unhealthy", or nothing for MarkNone.
func (m Mark) String() string { return markNames[m] }

// ParseMark returns the mark with a name, MarkNone for any other text.
func ParseMark(name string) Mark {
	for m, n := range markNames {
		if n == name {
			return m
		}
	}
	return MarkNone
}

// Unhealthy says that what is at a place misbehaves, and what follows.
type Unhealthy struct {
	Place     ib.Place // switch port in front of it; port 0: the switch itself
	GUID      ib.GUID  // node that was seen there last, 0 if none
	Condition Condition
	Count     int           // times within Window
	Window    time.Duration // 0: an operator said so
	Action    Action
	Reason    string // of the operator, if it was marked
}

// Healthy says that a place counts as healthy again.
type Healthy struct {
	Place ib.Place
	GUID  ib.GUID
}

// FabricEvent marks an event of the fabric.
func (*Unhealthy) FabricEvent() {}

// FabricEvent marks an event of the fabric.
func (*Healthy) FabricEvent() {}

func (e *Unhealthy) String() string {
	what := fmt.Sprintf("what is behind %v (node %v)", e.Place, e.GUID)
	if e.Place.Port == 0 {
		what = fmt.Sprintf("switch %v", e.Place.Switch)
	}
	switch {
	case e.Condition == Marked && e.Reason != "":
		return fmt.Sprintf("%s is unhealthy, an operator says (%s): %v", what, e.Reason, e.Action)
	case e.Condition == Marked:
		return fmt.Sprintf("%s is unhealthy, an operator says: %v", what, e.Action)
	case e.Condition == Overgrown && e.Count > 0:
		return fmt.Sprintf("%s shows too many new nodes, of the size of %d: %v; pull the cable if no switches belong there; if they are real, raise fabric.growth, or: portcullis fabric health trust %v",
			what, e.Count, e.Action, e.Place)
	case e.Condition == Noisy && e.Count > 0:
		return fmt.Sprintf("%s is said to be noisy: %d traps in its name in %v, which any host can send: %v", what, e.Count, e.Window, e.Action)
	case e.Count == 0:
		return fmt.Sprintf("%s is unhealthy, %v since before the start: %v", what, e.Condition, e.Action)
	}
	return fmt.Sprintf("%s is unhealthy: %v, %d times in %v: %v", what, e.Condition, e.Count, e.Window, e.Action)
}

func (e *Healthy) String() string {
	if e.Place.Port == 0 {
		return fmt.Sprintf("switch %v counts as healthy again", e.Place.Switch)
	}
	return fmt.Sprintf("what is behind %v counts as healthy again", e.Place)
}

// cause is why a place counts as unhealthy, beside its condition.
func (e *Unhealthy) cause() string {
	switch {
	case e.Condition == Marked:
		return e.Reason
	case e.Condition == Overgrown, e.Count == 0:
		return ""
	default:
		return fmt.Sprintf("%d times in %v", e.Count, e.Window)
	}
}

// MaxReason is how many bytes of an operator's reason are kept.
const MaxReason = 200

// CleanReason returns the part of an operator's words that is kept: what can be printed, at most MaxReason bytes.
func CleanReason(words string) string {
	words = CleanText([]byte(words))
	if len(words) > MaxReason {
		n := MaxReason
		for !utf8.RuneStart(words[n]) {
			n--
		}
		words = words[:n]
	}
	return words
}

// CleanText returns a text that a device or a person wrote, fit to be printed.
func CleanText(b []byte) string {
	out := make([]rune, 0, len(b))
	for _, r := range string(b) {
		if r == 0 {
			break
		}
		if r == '\uFFFD' || !unicode.IsPrint(r) { // controls, and what changes the direction of text
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
