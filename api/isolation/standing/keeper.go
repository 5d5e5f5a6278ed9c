package standing

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

const (
	// lookEvery is how often the age of the newest examination is looked at.
	lookEvery = time.Minute
	// retryEvery is the pause while the store does not take the record.
	retryEvery = 5 * time.Second
	// grace is how long an instance leads before it calls an examination of another one too old: it could not make any so far.
	grace = 15 * time.Minute
)

// Options are what a Keeper is made of. All but Why and Beside are required.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time
	// Every is from one examination by the service itself to the next; 0: it makes none.
	Every time.Duration
	// MaxAge is after which an examination is too old.
	MaxAge time.Duration
	// Newest returns what this instance found last of all tenants; nil: nothing.
	Newest func() *v1.Isolation
	// Why returns why there is no newer one; empty: not known.
	Why func() string
	// Beside records what else is kept of the newest examination, and does nothing if that is recorded; nil: there is nothing else.
	Beside func(ctx context.Context) error
}

// Keeper keeps the record while this instance leads, once.
type Keeper struct {
	o    Options
	news chan struct{}

	mu   sync.Mutex
	read bool // kept is what the store had
	kept record
}

// New returns a Keeper for as long as this instance leads now.
func New(o Options) *Keeper { return &Keeper{o: o, news: make(chan struct{}, 1)} }

// News has Run look at what Newest returns.
func (k *Keeper) News() {
	select {
	case k.news <- struct{}{}:
	default: // it is about to look
	}
}

// Run records what is found, and events of what changes, until ctx ends, which is to be while this instance leads.
func (k *Keeper) Run(ctx context.Context) {
	led, failing := k.o.Now(), false
	for {
		pause := lookEvery
		err := k.look(ctx, led)
		if err == nil && k.o.Beside != nil {
			err = k.o.Beside(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			pause = retryEvery
			if !failing {
				k.o.Log.Warn("what the examination of all tenants found was not recorded", "error", err, "retry_in", pause)
			}
		}
		failing = err != nil
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-k.news:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// look records what changed.
func (k *Keeper) look(ctx context.Context, led time.Time) error {
	in := k.input(led)
	k.mu.Lock()
	was, read := k.kept, k.read
	k.mu.Unlock()
	if read {
		if next, told := was.after(in); len(told) == 0 && next.same(&was) {
			return nil
		}
	}
	var next record
	_, err := k.o.Store.Update(ctx, func(tx *store.Tx) error {
		was, err := store.Optional(records().Get(ctx, tx, key))
		if err != nil {
			return err
		}
		var told []*v1.Event
		next, told = was.after(in)
		for _, e := range told {
			if err := events.Record(ctx, tx, in.now, *e); err != nil {
				return err
			}
		}
		if next.same(&was) {
			return nil
		}
		return records().Put(tx, key, next)
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.kept, k.read = next, true
	k.mu.Unlock()
	return nil
}

func (k *Keeper) input(led time.Time) *input {
	in := &input{now: k.o.Now().UTC().Round(0), newest: k.o.Newest(), maxAge: k.o.MaxAge, never: k.o.Every > 0}
	in.ages = in.now.Sub(led) >= grace
	if k.o.Why != nil {
		in.why = k.o.Why()
	}
	return in
}

// Standing returns how isolation stands. It reports false while the record is not read.
func (k *Keeper) Standing() (Standing, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.read {
		return Standing{}, false
	}
	return k.kept.standing(k.o.MaxAge), true
}
