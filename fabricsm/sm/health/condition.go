// Package health keeps how ports and switches misbehave, and says what follows: which are to be cut off, and until when.
//
// It has no clock and sends nothing. The core reports each fault by [Records.Strike], and puts actions into force.
package health

import (
	"cmp"
	"fmt"
	"time"
)

// Condition is a way in which what is behind a switch port, or a switch itself,
// misbehaves.
type Condition uint8

// Conditions. Marked, Overgrown and RefusesKey have no Rule. Their numbers are saved.
const (
	Flapping      Condition = iota // its link went down
	Unresponsive                   // it fell silent
	Noisy                          // it sent traps
	SetErrors                      // it refused a Set, or answered it with something else
	IllegalAnswer                  // it answered what the standard does not allow
	Rebooting                      // it lost its tables
	Marked                         // an operator says that it is unhealthy
	Overgrown                      // more is found behind it than GrowthConfig allows
	Guessing                       // it tries M_Keys or SM_Keys; see package bruteforce
	RefusesKey                     // its host set another M_Key several times; see package refusing
	numConditions
)

var conditionNames = [numConditions]string{"flapping", "unresponsive", "noisy", "set-errors", "illegal-answers", "rebooting", "marked", "too-many-nodes", "guessing", "refuses-key"}

func (c Condition) String() string {
	if c < numConditions {
		return conditionNames[c]
	}
	return fmt.Sprintf("condition %d", uint8(c))
}

// ruled reports whether a condition has a Rule.
func (c Condition) ruled() bool { return c != Marked && c != Overgrown && c != RefusesKey }

// Action is what follows when a rule is broken. Each does what the one before it
// does, and more.
type Action uint8

// Actions, the mildest first.
const (
	Report     Action = iota // an event, and a problem in the views
	Ignore                   // nothing at all: the condition is switched off
	NoDiscover               // what is behind the port is not looked at and not part of the fabric: no routes, no memberships
	Isolate                  // and its link is kept from carrying data: it stays in Init
	Disable                  // and the port is switched off, until it counts as healthy
	numActions
)

var actionNames = [numActions]string{"report", "ignore", "no-discover", "isolate", "disable"}

func (a Action) String() string {
	if a < numActions {
		return actionNames[a]
	}
	return fmt.Sprintf("action %d", uint8(a))
}

// MarshalText returns the name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a name.
func (a *Action) UnmarshalText(b []byte) error {
	for i, name := range actionNames {
		if name == string(b) {
			*a = Action(i)
			return nil
		}
	}
	return fmt.Errorf("action %q: want one of %q", b, actionNames)
}

// Rule says how often a condition may occur before something follows. The
// zero value means the default of its condition.
type Rule struct {
	Count  int           // so many times ...
	Window time.Duration // ... within this time
	Action Action
}

// Config says when a port or switch counts as unhealthy, and what follows.
// Our own port, and the one in front of it, are never acted upon.
type Config struct {
	Flapping      Rule   // default 12 in 1 min: Isolate
	Unresponsive  Rule   // default 5 in 10 min: Report
	Noisy         Rule   // default 600 in 1 min: Report; the sender of a trap cannot be proven, so no more is done
	SetErrors     Rule   // default 10 in 10 min: Report
	IllegalAnswer Rule   // default 10 in 10 min: Report
	Rebooting     Rule   // default 5 in 10 min: Report
	Guessing      Rule   // default 10 in 10 min: Report; see package bruteforce. Disable alone keeps management packets out
	Marked        Action // what follows from MarkUnhealthy; Report means the default, Isolate

	// Recover is how long the condition must not have occurred before a port
	// counts as healthy again; default 1 min. It doubles each time the port
	// falls ill again within four times that, up to RecoverMax; default 1 h.
	Recover, RecoverMax time.Duration
}

// SetDefaults fills in the default of every field that is zero.
func (h *Config) SetDefaults() {
	h.Flapping = cmp.Or(h.Flapping, Rule{12, time.Minute, Isolate})
	h.Unresponsive = cmp.Or(h.Unresponsive, Rule{5, 10 * time.Minute, Report})
	h.Noisy = cmp.Or(h.Noisy, Rule{600, time.Minute, Report})
	h.SetErrors = cmp.Or(h.SetErrors, Rule{10, 10 * time.Minute, Report})
	h.IllegalAnswer = cmp.Or(h.IllegalAnswer, Rule{10, 10 * time.Minute, Report})
	h.Rebooting = cmp.Or(h.Rebooting, Rule{5, 10 * time.Minute, Report})
	h.Guessing = cmp.Or(h.Guessing, Rule{10, 10 * time.Minute, Report})
	h.Marked = cmp.Or(h.Marked, Isolate)
	h.Recover = cmp.Or(h.Recover, time.Minute)
	h.RecoverMax = cmp.Or(h.RecoverMax, time.Hour)
}

func (h *Config) rule(cond Condition) Rule {
	switch cond {
	case Flapping:
		return h.Flapping
	case Unresponsive:
		return h.Unresponsive
	case Noisy:
		return h.Noisy
	case SetErrors:
		return h.SetErrors
	case IllegalAnswer:
		return h.IllegalAnswer
	case Rebooting:
		return h.Rebooting
	case Guessing:
		return h.Guessing
	default:
		return Rule{Count: 1, Action: h.Marked}
	}
}

// Check reports what is wrong with the rules.
func (h *Config) Check(wrong func(format string, args ...any)) {
	for cond := range numConditions {
		r := h.rule(cond)
		if cond.ruled() && r != (Rule{}) && (r.Count <= 0 || r.Window <= 0 || r.Action >= numActions) {
			wrong("health rule %v: %d times in %v, %v: want a count and a time above 0 and an action", cond, r.Count, r.Window, r.Action)
		}
	}
	if h.Marked >= numActions {
		wrong("health: action %d for what is marked: want one of %q", uint8(h.Marked), actionNames)
	}
}
