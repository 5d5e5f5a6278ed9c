package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/store"
)

// DefaultTTL is how long a lease lasts that is not kept alive. It bounds how long a leader
// that was killed is missed.
const DefaultTTL = 2 * time.Second

// Options name the candidate and the role.
type Options struct {
	Store    *store.Store
	Role     string // in which one leads
	Instance string // name of this instance, which no other has

	TTL    time.Duration // whole seconds; DefaultTTL when 0
	Margin time.Duration // by which the holder believes the lease to end early; a fifth of TTL when 0
	Clock  Clock         // Boottime when nil
	Log    *slog.Logger
	// OnChange is called with each new State; nil: it is not called. It must not block.
	OnChange func(State)
}

// State is how leadership stands, as far as this instance knows.
type State struct {
	Leader string // instance that leads; "": none does, or it is not known
	Epoch  uint64 // of that leader; else of the last that was seen
	Leads  bool   // the leader is this instance
}

// Record is the present leader.
type Record struct {
	Instance string    `json:"instance"`
	Epoch    uint64    `json:"epoch"`
	Since    time.Time `json:"since"`
}

// leaders holds the present leaders, by role. The lease of its holder alone ends a record.
func leaders() store.Collection[Record] { return store.NewCollection[Record]("leader/now", 1) }

// Epoch is the epoch of the last term in a role.
type Epoch struct {
	Epoch uint64 `json:"epoch"`
}

// Skip has the next term of a role have an epoch that is higher by that much, where terms may
// have been that these records do not know of. It returns the last epoch that they know.
func Skip(ctx context.Context, tx *store.Tx, role string, by uint64) (uint64, error) {
	last, err := epochs().Get(ctx, tx, role)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	return last.Value.Epoch, epochs().Put(tx, role, Epoch{last.Value.Epoch + by})
}

// epochs holds the last epochs, by role. Its records stay.
func epochs() store.Collection[Epoch] { return store.NewCollection[Epoch]("leader/epoch", 1) }

// Current returns the leader in a role, or an error that is store.ErrNotFound.
func Current(ctx context.Context, s *store.Store, role string) (Record, error) {
	r, err := leaders().Get(ctx, s, role)
	return r.Value, err
}

// Candidate is an instance that leads whenever it can.
type Candidate struct {
	o   Options
	log *slog.Logger

	mu    sync.Mutex
	state State
	term  *Term         // nil: this instance does not lead
	step  chan struct{} // closed to end the term
	rest  time.Duration // for which this instance does not lead after that
}

// New makes a Candidate. It does nothing before Run.
func New(o Options) *Candidate {
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	o.Margin = cmp.Or(o.Margin, o.TTL/5)
	if o.Clock == nil {
		o.Clock = Boottime
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Candidate{o: o, log: log.With("role", o.Role, "instance", o.Instance)}
}

// State returns how leadership stands, and for how long the lease of this instance surely
// holds; 0 when it does not lead.
func (c *Candidate) State() (State, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term == nil {
		return c.state, 0
	}
	return c.state, c.term.Left()
}

// Run calls lead in each term of this instance, until ctx ends. The context of lead ends
// when the term is over; its cause is ErrDeposed, ErrSteppedDown, or that of ctx. When lead returns
// the lease is given back at once, so that another instance need not wait for its end.
// Run returns an error of lead that came before the end of its context.
func (c *Candidate) Run(ctx context.Context, lead func(context.Context, *Term) error) error {
	there, leave := context.WithCancel(ctx)
	var present sync.WaitGroup
	present.Go(func() { c.present(there) })
	defer present.Wait()
	defer leave()
	for ctx.Err() == nil {
		t, l, err := c.campaign(ctx)
		if err != nil {
			break // ctx has ended
		}
		err = c.serve(ctx, t, l, lead)
		switch {
		case errors.Is(err, ErrSteppedDown):
			c.standBack(ctx)
		case err != nil:
			return err
		}
	}
	return nil
}

// serve runs one term. It returns an error of lead, or ErrSteppedDown.
func (c *Candidate) serve(ctx context.Context, t *Term, l *lease, lead func(context.Context, *Term) error) error {
	step := make(chan struct{})
	c.lead(t, step)
	c.log.Info("this instance leads", "epoch", t.Epoch)
	term, end := context.WithCancelCause(ctx)
	defer end(nil)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		c.keep(term, t, l, step, end)
	}()
	err := lead(term, t)
	cause := context.Cause(term) // nil: lead ended by itself
	end(nil)
	<-kept
	t.over()
	c.lead(nil, nil)
	c.set(State{Epoch: t.Epoch})
	c.giveBack(ctx, l)
	switch {
	case errors.Is(cause, ErrSteppedDown):
		return ErrSteppedDown
	case cause == nil:
		return err
	default:
		c.log.Info("this instance leads no longer", "epoch", t.Epoch, "reason", cause)
		return nil
	}
}

// lead notes the term of this instance.
func (c *Candidate) lead(t *Term, step chan struct{}) {
	c.mu.Lock()
	c.term, c.step = t, step
	c.mu.Unlock()
	if t != nil {
		c.set(State{Leader: c.o.Instance, Epoch: t.Epoch, Leads: true})
	}
}

func (c *Candidate) set(s State) {
	c.mu.Lock()
	changed := c.state != s
	c.state = s
	c.mu.Unlock()
	if changed && c.o.OnChange != nil {
		c.o.OnChange(s)
	}
}

// giveBack ends the lease, which deletes the record.
func (c *Candidate) giveBack(ctx context.Context, l *lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.TTL)
	defer cancel()
	if err := c.o.Store.Revoke(ctx, l.id); err != nil {
		c.log.Warn("the lease was not given back, and ends by itself", "error", err, "within", c.o.TTL)
	}
}

// errLed says that another instance leads.
type errLed struct{ Record }

func (e *errLed) Error() string { return fmt.Sprintf("%s leads in epoch %d", e.Instance, e.Epoch) }
