package topology

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/approval"
	"portcullis/fabricsm/topospec/simulate"
)

// Sight is the fabric as it is seen at one moment.
type Sight struct {
	At       time.Time
	Fabric   *topo.Fabric
	SM       topo.PortID // the Subnet Manager's own port, topo.None: not found
	Complete bool        // all that can be reached was looked at
	Placed   *declared.TopologyView
}

// Options configure a Service. Store and Log are required.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	// Look returns the fabric as it is seen; nil: another process has the Subnet Manager.
	Look func() (*Sight, error)
	// Owners says whose a port is; nil: hosts as revisions name them.
	Owners simulate.Directory
	// FromFile reports whether the configuration names the topology in force, and in which mode: then what is activated
	// here waits until it does not. nil: never.
	FromFile func() (topospec.Mode, bool)
	// Problem is called with the reason why what is wanted cannot be followed, and with "" when it can; nil: it is not
	// called.
	Problem func(string)
	// Opens refuses a topology under which packets would pass that do not pass now; nil: none is refused for it.
	Opens func(ctx context.Context, next *topospec.Spec) error
	Rules Rules
	Now   func() time.Time // time.Now when nil
}

// Rules are those of a site. The zero Rules ask for two persons, and do not watch.
type Rules struct {
	// Alone switches the rule of two persons off.
	Alone bool
	// Watch is how long the fabric is watched after an activation; 0: it is not.
	Watch time.Duration
	// Allowance is how many of 1000 links may be lost in that time by themselves; two
	// may always.
	Allowance topospec.Permille
}

// Service keeps revisions. Methods are safe for concurrent use. Refusals are
// *refusal.Error.
type Service struct {
	o     Options
	cache cache

	current atomic.Pointer[Rules]
	views   chan struct{} // holds a token while a view was not looked at

	mu        sync.Mutex
	refused   *declared.TopologyRefused // by the Subnet Manager since something was given to it
	refusedAt uint64                    // viewed when it was
	viewed    uint64                    // views that came
	broken    string                    // why what the store wants cannot be followed
}

// New makes a Service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FromFile == nil {
		o.FromFile = func() (topospec.Mode, bool) { return 0, false }
	}
	if o.Problem == nil {
		o.Problem = func(string) {}
	}
	s := &Service{o: o, views: make(chan struct{}, 1)}
	s.SetRules(o.Rules)
	return s
}

// SetRules changes the rules, for a reload.
func (s *Service) SetRules(r Rules) { s.current.Store(&r) }

func (s *Service) rules() Rules { return *s.current.Load() }

// fromFile reports whether the configuration names the topology in force.
func (s *Service) fromFile() bool { _, yes := s.o.FromFile(); return yes }

// present returns the mode that is in force.
func (s *Service) present(b *book) topospec.Mode {
	if m, yes := s.o.FromFile(); yes {
		return m
	}
	return b.head.Mode
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }

// change runs one step: fn changes the book, and says what it did. A step without an
// action changes nothing.
func (s *Service) change(ctx context.Context, fn func(tx *store.Tx, b *book) (step, error)) error {
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		was, err := s.load(ctx, tx)
		if err != nil {
			return unreadable(err)
		}
		now, err := was.clone(approval.Rule{Alone: s.rules().Alone})
		if err != nil {
			return unreadable(err)
		}
		why, err := fn(tx, now)
		if err != nil || why.action == "" {
			return err
		}
		return s.save(ctx, tx, was, now, s.now(), why)
	})
	return explain(err)
}

// Wanted is what the Subnet Manager is to have in force.
type Wanted struct {
	Spec     *topospec.Spec // nil: nothing
	Mode     topospec.Mode
	By       string
	Revision uint64
	Back     bool // it was in force before
}

// Wanted reads what is wanted in force. An error means that it cannot be known: a caller that starts a Subnet Manager
// without it would open what is closed.
func (s *Service) Wanted(ctx context.Context) (Wanted, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return Wanted{}, err
	}
	b, err := s.load(ctx, snap)
	if err != nil {
		return Wanted{}, err
	}
	return s.wanted(ctx, snap, b)
}

func (s *Service) wanted(ctx context.Context, r store.Reader, b *book) (Wanted, error) {
	spec, err := s.activeContent(ctx, r, b)
	if err != nil {
		return Wanted{}, fmt.Errorf("the declared topology in force cannot be read: %w", err)
	}
	return Wanted{Spec: spec, Mode: b.head.Mode, By: b.head.By, Revision: b.head.Revision, Back: b.head.Back}, nil
}

// sight returns the fabric as it is seen, if that says enough to decide by.
func (s *Service) sight() (*Sight, error) {
	if s.o.Look == nil {
		return nil, elsewhere()
	}
	seen, err := s.o.Look()
	switch {
	case err != nil:
		return nil, err
	case !seen.Complete || seen.SM == topo.None:
		return nil, unsettled()
	}
	return seen, nil
}

// simulate judges by the fabric as it is seen now what putting a revision into force in a mode would do. It also returns
// when the fabric was seen.
func (s *Service) simulate(c *contents, mode topospec.Mode) (*simulate.Report, time.Time, error) {
	seen, err := s.sight()
	if err != nil {
		return nil, time.Time{}, err
	}
	return simulate.Run(simulate.Input{
		Active: c.active, Next: c.next, Fabric: seen.Fabric, SM: seen.SM, Owners: s.o.Owners, Now: s.now(),
		Ask: &simulate.Ask{Mode: mode, Now: s.present(c.book)},
	}), seen.At, nil
}

// allowance returns how many of some links may be lost by themselves.
func (s *Service) allowance(links int) int {
	return max(2, links*int(s.rules().Allowance)/1000)
}
