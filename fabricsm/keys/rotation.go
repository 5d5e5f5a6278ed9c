package keys

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
)

// RotationConfig says how keys are changed from time to time.
type RotationConfig struct {
	// Period is from the end of one cycle to the beginning of the next, and from
	// start-up to the first; 0 turns rotation off. At least a minute.
	Period time.Duration
	// Grace is how long after a cycle devices still accept the keys before it.
	// Short: tools that hold them fail. Long: so does a key that leaked. Below Period.
	Grace time.Duration
	// Window is how many devices are changed at once, for each kind. One is the
	// choice for N2NNodeKey whatever it says: its neighbours come before the next.
	Window int
	// Succeeds says that another instance used the keys before this one did. The first cycle then begins at once, switches
	// first, and its grace ends after SuccessionGrace, so that devices reject the keys which that instance has.
	Succeeds bool
}

// SuccessionGrace is how long devices accept the keys of the instance before, once all of
// them have new ones. Answers that were on their way have come by then.
const SuccessionGrace = 10 * time.Second

// SuccessionPatience is how long an instance that takes over waits for devices to drop the keys of the instance before,
// until it counts what it reads of them: a device that takes no new key holds up no removal for ever.
const SuccessionPatience = 5 * time.Minute

// DefaultRotation is a change every day.
func DefaultRotation() RotationConfig {
	return RotationConfig{Period: 24 * time.Hour, Grace: time.Hour, Window: 16}
}

// Check reports values that make no sense.
func (c RotationConfig) Check() error {
	switch {
	case c.Period == 0:
		return nil
	case c.Period < time.Minute || c.Period > 366*24*time.Hour:
		return fmt.Errorf("rotation period %v: want 1m to a year, or 0 for none", c.Period)
	case c.Grace < 0 || c.Grace >= c.Period:
		return fmt.Errorf("rotation grace %v: want less than the period, %v", c.Grace, c.Period)
	case c.Window < 1 || c.Window > 500:
		return fmt.Errorf("rotation window %d: want 1 to 500", c.Window)
	default:
		return nil
	}
}

// Cycle is what must be durable about the rotation of one kind of key: where the
// latest cycle has got to.
type Cycle struct {
	Kind    Kind      `json:"kind"`
	Epoch   Epoch     `json:"epoch"`
	Began   time.Time `json:"began"`
	Changed time.Time `json:"changed,omitzero"` // all devices were tried
	Ended   time.Time `json:"ended,omitzero"`   // keys before it were dropped
	// Succession says that it replaces the keys that another instance has.
	Succession bool `json:"succession,omitempty"`
}

// Member is a device as a cycle sees it.
type Member struct {
	GUID  ib.GUID
	Epoch Epoch // of its Current key, 0: none, or imported
	Dual  bool  // it accepts two keys for a while; others are not rotated
	Keyed bool  // it has a Current key
	Prior bool  // it has a Previous key to drop
	Depth int   // hops from the subnet manager
	// Switch says that it is a switch: others depend on the packets that it forwards.
	Switch bool
}

// Target is one device whose key is to change, or whose Previous is to go.
type Target struct {
	Kind  Kind
	GUID  ib.GUID
	Epoch Epoch // of the new key
}

// Turn is the work that a Rotator wants done. Save comes first.
type Turn struct {
	Save   []Cycle
	Change []Target // Plan a key of that epoch, unless one is pending, and call Done
	Commit []Target // Commit, and call Done
	Ended  []Summary
	Wake   time.Time // call again then; zero: only after Done
}

// Summary is the result of a cycle.
type Summary struct {
	Cycle
	Done   int // devices with a new key
	Failed int // devices that did not take it, or did not answer
	Single int // devices without dual keys, which keep theirs
}

type phase uint8

const (
	waiting phase = iota
	changing
	grace
	committing
)

// spin is the rotation of one kind.
type spin struct {
	cycle  Cycle
	phase  phase
	listed bool // queue was filled since the phase began, or since a restart
	at     time.Time
	queue  []Target
	out    map[ib.GUID]bool
	sum    Summary
	first  map[ib.GUID]bool // targets that come before all others, until they are done
	due    bool             // a cycle of succession is to begin as soon as none is under way
}

// grace is how long devices accept the keys before a cycle.
func (c *RotationConfig) grace(of *Cycle) time.Duration {
	if of.Succession || c.Succeeds {
		return min(c.Grace, SuccessionGrace)
	}
	return c.Grace
}

// Rotator decides when which keys change. The caller passes the time, and it holds no keys. Its durable state is in Cycles
// and Records: after a crash it continues an unfinished cycle at once, and only with devices that miss its epoch. Otherwise
// the first cycle begins a full period after start-up.
type Rotator struct {
	cfg   RotationConfig
	spins [endOfKinds]*spin
}

// NewRotator returns a Rotator for some kinds of device keys, with the cycles that were saved.
func NewRotator(cfg RotationConfig, kinds []Kind, start time.Time, saved []Cycle) (*Rotator, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	r := &Rotator{cfg: cfg}
	if cfg.Period == 0 {
		return r, nil
	}
	for _, k := range kinds {
		if !k.OfDevice() {
			return nil, fmt.Errorf("rotation of %v: it is not the key of a device", k)
		}
		r.spins[k] = &spin{cycle: Cycle{Kind: k}, at: start.Add(cfg.Period), out: make(map[ib.GUID]bool), first: make(map[ib.GUID]bool), due: cfg.Succeeds}
		if cfg.Succeeds {
			r.spins[k].at = start
		}
	}
	for _, c := range saved {
		if !c.Kind.OfDevice() {
			return nil, fmt.Errorf("saved rotation of %v: it is not the key of a device", c.Kind)
		}
		if s := r.spins[c.Kind]; s != nil {
			s.resume(c, start, cfg)
		}
	}
	return r, nil
}

func (s *spin) resume(c Cycle, start time.Time, cfg RotationConfig) {
	s.cycle = c
	s.sum = Summary{Cycle: c}
	switch {
	case c.Epoch == 0 || !c.Ended.IsZero():
	case c.Changed.IsZero():
		s.phase = changing
	default:
		s.phase = grace
		s.at = earlier(c.Changed, start).Add(cfg.grace(&c)) // the clock may have been set back
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Next returns what is due now. Ready says that the subnet manager is master, has no handover or failed sweep under way,
// and can save; otherwise nothing new begins. Fleet lists the devices of a kind; it is called once for each cycle.
func (r *Rotator) Next(now time.Time, ready bool, fleet func(Kind) []Member) Turn {
	var t Turn
	for _, k := range Kinds() {
		if s := r.spins[k]; s != nil && ready {
			s.advance(r.cfg, now, fleet, &t)
			if s.waitsForTime() && (t.Wake.IsZero() || s.at.Before(t.Wake)) {
				t.Wake = s.at
			}
		}
	}
	return t
}

func (s *spin) waitsForTime() bool { return s.phase == waiting || s.phase == grace }

// limit has a phase that waits end no later than a whole one that begins now: it would if the clock was set back meanwhile.
func (s *spin) limit(cfg RotationConfig, now time.Time) {
	whole := cfg.Period
	if s.phase == grace {
		whole = cfg.grace(&s.cycle)
	}
	if s.at.Sub(now) > whole {
		s.at = now.Add(whole)
	}
}

// advance goes through as many phases as are due.
func (s *spin) advance(cfg RotationConfig, now time.Time, fleet func(Kind) []Member, t *Turn) {
	if s.waitsForTime() && now.Before(s.at) {
		s.limit(cfg, now)
		return
	}
	switch s.phase {
	case waiting:
		s.begin(now, fleet, t)
	case grace:
		s.phase, s.listed = committing, false
	default:
	}
	if !s.listed {
		s.list(fleet(s.cycle.Kind))
	}
	window := cfg.Window
	if s.cycle.Kind == N2NNodeKey {
		window = 1
	}
	for len(s.queue) > 0 && len(s.out) < window {
		next := s.queue[0]
		if len(s.first) > 0 && !s.first[next.GUID] {
			break
		}
		s.queue = s.queue[1:]
		s.out[next.GUID] = true
		if s.phase == changing {
			t.Change = append(t.Change, next)
		} else {
			t.Commit = append(t.Commit, next)
		}
	}
	if len(s.out) == 0 {
		s.finish(cfg, now, t)
	}
}

// begin starts a cycle, with an epoch that no device has had.
func (s *spin) begin(now time.Time, fleet func(Kind) []Member, t *Turn) {
	members := fleet(s.cycle.Kind)
	epoch := s.cycle.Epoch
	for _, m := range members {
		epoch = max(epoch, m.Epoch)
	}
	s.cycle = Cycle{Kind: s.cycle.Kind, Epoch: epoch + 1, Began: now, Succession: s.due}
	s.due = false
	s.sum = Summary{}
	s.phase = changing
	s.list(members)
	t.Save = append(t.Save, s.cycle)
}

// list fills the queue: the farthest devices first, so that one that is lost
// cuts off none whose turn is still to come. In a succession switches come before
// adapters.
func (s *spin) list(members []Member) {
	s.listed = true
	s.queue = s.queue[:0]
	s.sum.Single = 0
	clear(s.first)
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b Member) int {
		if s.cycle.Succession && a.Switch != b.Switch {
			if a.Switch {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Depth, a.Depth), cmp.Compare(a.GUID, b.GUID))
	})
	for _, m := range members {
		switch {
		case !m.Keyed:
		case s.phase == changing && !m.Dual:
			s.sum.Single++
		case s.phase == changing && m.Epoch < s.cycle.Epoch, s.phase == committing && m.Prior:
			s.queue = append(s.queue, Target{s.cycle.Kind, m.GUID, s.cycle.Epoch})
			if s.cycle.Succession && m.Switch {
				s.first[m.GUID] = true
			}
		}
	}
}

// finish ends a phase in which nothing is left.
func (s *spin) finish(cfg RotationConfig, now time.Time, t *Turn) {
	switch s.phase {
	case changing:
		s.cycle.Changed = now
		s.phase, s.at = grace, now.Add(cfg.grace(&s.cycle))
		s.sum.Cycle = s.cycle
		t.Ended = append(t.Ended, s.sum)
	case committing:
		s.cycle.Ended = now
		s.phase, s.at = waiting, s.cycle.Changed.Add(cfg.Period)
		if s.at.Before(now) {
			s.at = now.Add(cfg.Period)
		}
		if s.due {
			s.at = now
		}
	default:
		return
	}
	t.Save = append(t.Save, s.cycle)
}

// Done records that a Target is settled, or that it failed for now. A failed Target is tried again in the next cycle; its
// record keeps both keys until then.
func (r *Rotator) Done(kind Kind, guid ib.GUID, ok bool) {
	s := r.spins[kind]
	if s == nil || !s.out[guid] {
		return
	}
	delete(s.out, guid)
	delete(s.first, guid)
	switch {
	case s.phase != changing:
	case ok:
		s.sum.Done++
	default:
		s.sum.Failed++
	}
}

// Cycle returns the latest cycle of a kind, with Epoch 0 if there was none.
func (r *Rotator) Cycle(kind Kind) Cycle {
	if !kind.Valid() || r.spins[kind] == nil {
		return Cycle{Kind: kind}
	}
	return r.spins[kind].cycle
}
