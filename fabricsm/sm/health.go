package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Condition is a way in which what is behind a switch port, or a switch itself,
// misbehaves.
type Condition uint8

// Conditions. Marked, Overgrown and RefusesKey have no HealthRule. Their numbers are saved.
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
	RefusesKey                     // its host set another M_Key several times; see refusing.go
	numConditions
)

var conditionNames = [numConditions]string{"flapping", "unresponsive", "noisy", "set-errors", "illegal-answers", "rebooting", "marked", "too-many-nodes", "guessing", "refuses-key"}

func (c Condition) String() string {
	if c < numConditions {
		return conditionNames[c]
	}
	return fmt.Sprintf("condition %d", uint8(c))
}

// ruled reports whether a condition has a HealthRule.
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

// HealthRule says how often a condition may occur before something follows. The
// zero value means the default of its condition.
type HealthRule struct {
	Count  int           // so many times ...
	Window time.Duration // ... within this time
	Action Action
}

// HealthConfig says when a port or switch counts as unhealthy, and what follows.
// Our own port, and the one in front of it, are never acted upon.
type HealthConfig struct {
	Flapping      HealthRule // default 12 in 1 min: Isolate
	Unresponsive  HealthRule // default 5 in 10 min: Report
	Noisy         HealthRule // default 600 in 1 min: Report; the sender of a trap cannot be proven, so no more is done
	SetErrors     HealthRule // default 10 in 10 min: Report
	IllegalAnswer HealthRule // default 10 in 10 min: Report
	Rebooting     HealthRule // default 5 in 10 min: Report
	Guessing      HealthRule // default 10 in 10 min: Report; see package bruteforce. Disable alone keeps management packets out
	Marked        Action     // what follows from MarkUnhealthy; Report means the default, Isolate

	// Recover is how long the condition must not have occurred before a port
	// counts as healthy again; default 1 min. It doubles each time the port
	// falls ill again within four times that, up to RecoverMax; default 1 h.
	Recover, RecoverMax time.Duration
}

func (h *HealthConfig) withDefaults() {
	def(&h.Flapping, HealthRule{12, time.Minute, Isolate})
	def(&h.Unresponsive, HealthRule{5, 10 * time.Minute, Report})
	def(&h.Noisy, HealthRule{600, time.Minute, Report})
	def(&h.SetErrors, HealthRule{10, 10 * time.Minute, Report})
	def(&h.IllegalAnswer, HealthRule{10, 10 * time.Minute, Report})
	def(&h.Rebooting, HealthRule{5, 10 * time.Minute, Report})
	def(&h.Guessing, HealthRule{10, 10 * time.Minute, Report})
	def(&h.Marked, Isolate)
	def(&h.Recover, time.Minute)
	def(&h.RecoverMax, time.Hour)
}

func (h *HealthConfig) rule(cond Condition) HealthRule {
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
		return HealthRule{Count: 1, Action: h.Marked}
	}
}

// health checks the rules.
func (k *configChecker) health(h *HealthConfig) {
	for cond := range numConditions {
		r := h.rule(cond)
		if cond.ruled() && r != (HealthRule{}) && (r.Count <= 0 || r.Window <= 0 || r.Action >= numActions) {
			k.wrong("health rule %v: %d times in %v, %v: want a count and a time above 0 and an action", cond, r.Count, r.Window, r.Action)
		}
	}
	if h.Marked >= numActions {
		k.wrong("health: action %d for what is marked: want one of %q", uint8(h.Marked), actionNames)
	}
	k.notNegative("time to recover", int64(h.Recover))
	k.notNegative("longest time to recover", int64(h.RecoverMax))
}

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

// HealthMarked is the input by which an operator overrides the rules at a place;
// port 0 of a switch stands for the switch. MarkNone also ends a quarantine that
// follows from a rule. It is remembered over restarts.
type HealthMarked struct {
	Place  ib.Place
	Mark   Mark
	Reason string // the operator's words, at most MaxReason bytes; more is cut off
}

func (*HealthMarked) input() {}

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

func (*Unhealthy) FabricEvent() {}
func (*Healthy) FabricEvent()   {}

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

// record is what is known of the health of a place.
type record struct {
	guid    ib.GUID
	strikes [numConditions]struct {
		since time.Time
		n     int
	}
	sick   bool
	worst  Condition // the one that the action in force follows from
	action Action    // in force while sick
	last   time.Time // when it last misbehaved, or recovered
	pause  time.Duration
	mark   Mark
	since  time.Time // of the mark, or when it fell ill
	why    string    // the operator's words, or what the rule counted
	shun   ib.GUID   // the unhealthy switch behind it that it is sick for, if it is
	saved  bool      // a fact says something of it
}

// maxRecords bounds the places whose health is known.
const maxRecords = 1 << 14

// suspectPlace returns the place that answers for the behaviour of a node: a switch itself, or the switch port in front of
// a host. It returns zero if there is none.
func (c *Core) suspectPlace(id topo.NodeID) ib.Place {
	if tn := c.topo.Node(id); tn.Type == ib.NodeSwitch {
		return ib.Place{Switch: tn.GUID}
	}
	return c.topo.PlaceOf(c.nodes[id].up)
}

// strikeNode records that a node misbehaved.
func (c *Core) strikeNode(id topo.NodeID, cond Condition) {
	if id != c.root {
		c.strike(c.suspectPlace(id), c.topo.NodeGUID(id), cond)
	}
}

// strike records that the device at a place misbehaved.
func (c *Core) strike(pl ib.Place, guid ib.GUID, cond Condition) {
	c.strikeBy(c.cfg.Health.rule(cond), pl, guid, cond)
}

// strikeUnproven records a condition that is only claimed, or that was caused under the name of the node: it is reported,
// and nothing else follows.
func (c *Core) strikeUnproven(pl ib.Place, guid ib.GUID, cond Condition) {
	rule := c.cfg.Health.rule(cond)
	if rule.Action != Ignore && !c.cfg.Weakness.TrustsTraps {
		rule.Action = Report
	}
	c.strikeBy(rule, pl, guid, cond)
}

func (c *Core) strikeBy(rule HealthRule, pl ib.Place, guid ib.GUID, cond Condition) {
	if pl.IsZero() || rule.Action == Ignore {
		return
	}
	r := c.health.of(pl)
	if r == nil || r.mark != MarkNone {
		return
	}
	if guid != 0 {
		r.guid = guid
	}
	s := &r.strikes[cond]
	if s.n == 0 || c.now.Sub(s.since) > rule.Window {
		s.since, s.n = c.now, 0
	}
	s.n++
	if r.sick && r.worst == cond {
		r.last = c.now
		c.health.changed = true // it lasts longer
	}
	if s.n < rule.Count || r.sick && rule.Action <= r.action {
		return
	}
	count := s.n
	s.n = 0
	if c.untouchable(pl) {
		rule.Action = Report
	}
	c.fallIll(pl, r, &Unhealthy{Place: pl, GUID: r.guid, Condition: cond, Count: count, Window: rule.Window, Action: rule.Action})
}

// fallIll puts an action into force.
func (c *Core) fallIll(pl ib.Place, r *record, e *Unhealthy) {
	if !r.sick {
		if r.pause > 0 && c.now.Sub(r.last) > steadyFor*r.pause {
			r.pause = 0
		}
		r.pause = min(max(2*r.pause, c.cfg.Health.Recover), max(c.cfg.Health.Recover, c.cfg.Health.RecoverMax))
		c.health.sick = append(c.health.sick, pl)
		r.since = c.now
	} else if illness(r.worst, pl) != illness(e.Condition, pl) {
		c.faults.Clear(illness(r.worst, pl))
	}
	r.sick, r.worst, r.action, r.last = true, e.Condition, e.Action, c.now
	r.why, r.shun, c.health.changed = e.cause(), 0, true
	c.watchHealth()
	c.problem(illness(e.Condition, pl), e)
	c.saveHealth(pl, r)
	c.quarantineAt(pl, r.action)
}

// recovered takes an action out of force.
func (c *Core) recovered(pl ib.Place, r *record) {
	r.sick, r.action, r.last, r.shun = false, Report, c.now, 0
	if r.mark == MarkNone {
		r.why = ""
	}
	c.health.changed = true
	c.faults.Clear(illness(r.worst, pl))
	c.event(&Healthy{Place: pl, GUID: r.guid})
	c.saveHealth(pl, r)
	c.quarantineAt(pl, Report)
}
