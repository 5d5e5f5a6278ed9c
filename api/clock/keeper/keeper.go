// Package keeper keeps the time of a service: it reads the machine's clocks, shares the highest time with other
// instances by the store, and reports jumps.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/clock"
	"portcullis/api/store"
)

const (
	// tick is how often the clock is looked at although nothing asks for the time.
	tick = 5 * time.Second
	// retryPause is the rest before the store is followed again.
	retryPause = time.Second
)

// markKey is the key of the one record.
const markKey = "highest"

// Marks holds the highest time that any instance has seen.
func Marks() store.Collection[clock.Mark] { return store.NewCollection[clock.Mark]("clock", 1) }

// Options configure a Keeper. Store and Log are required.
type Options struct {
	Store    *store.Store
	Log      *slog.Logger
	Instance string // its name; empty: it is the only one

	Wall    func() time.Time     // what the machine takes the time for; default time.Now
	Elapsed func() time.Duration // by a clock that is never set; default since New
}

// Keeper keeps the time. Methods are safe for concurrent use.
type Keeper struct {
	o Options

	mu    sync.Mutex
	water *clock.Water
	jumps []clock.Jump   // that are not reported yet
	set   map[bool]int64 // jumps since the start, by whether ahead
}

// New makes a Keeper. Its time counts once Read has returned nil.
func New(o Options) *Keeper {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Elapsed == nil {
		began := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(began) }
	}
	return &Keeper{o: o, water: clock.New(o.Instance), set: map[bool]int64{}}
}

// Read reads the highest time that is recorded.
func (k *Keeper) Read(ctx context.Context) error {
	m, err := k.recorded(ctx, k.o.Store)
	if err == nil {
		k.take(m)
	}
	return err
}

func (*Keeper) recorded(ctx context.Context, r store.Reader) (clock.Mark, error) {
	rec, err := Marks().Get(ctx, r, markKey)
	if errors.Is(err, store.ErrNotFound) {
		return clock.Mark{}, nil
	}
	return rec.Value, err
}

// reading is called with mu held, so that readings are taken in the order in which they are used.
func (k *Keeper) reading() clock.Reading {
	return clock.Reading{Wall: k.o.Wall(), Elapsed: k.o.Elapsed()}
}

func (k *Keeper) take(m clock.Mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.water.Take(m, k.reading())
}

// Now returns the time. It never goes back, unless an operator has set it.
func (k *Keeper) Now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.water.Now(k.reading())
}

// Standing returns how the clock is.
func (k *Keeper) Standing() clock.Standing {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.water.Standing(k.reading())
}

// Jumps returns how many jumps there were since the start, by whether the clock was ahead.
func (k *Keeper) Jumps(ahead bool) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.set[ahead]
}

// Halted returns why nothing new is granted now; nil: the clock is believed.
func (k *Keeper) Halted() error {
	s := k.Standing()
	if s.State == clock.Steady {
		return nil
	}
	return errors.New(describe(&s))
}

// describe says what is wrong with the clock.
func describe(s *clock.Standing) string {
	wall, now, off := s.Wall.Format(time.RFC3339), s.Time.Format(time.RFC3339), s.Off().Abs().Round(time.Second)
	text := ""
	switch s.State {
	case clock.Steady:
		return ""
	case clock.Behind:
		text = fmt.Sprintf("the clock of this machine shows %s, %v behind %s, the highest time seen", wall, off, now)
	case clock.Waiting:
		text = fmt.Sprintf("the clock of this machine shows %s, %v ahead of the recorded time; until %v have passed another instance may contradict", wall, off, clock.Wait)
	case clock.Ahead:
		text = fmt.Sprintf("the clock of this machine shows %s, %v ahead of the time of the other instances", wall, off)
	}
	return text + ", since " + s.Since.Format(time.RFC3339) + ": nothing new is granted; removals go on"
}

// Raise records the time in tx, so that the grants of tx are not undone by a clock that is set back.
func (k *Keeper) Raise(ctx context.Context, tx *store.Tx) error { return k.raise(ctx, tx, true) }

func (k *Keeper) raise(ctx context.Context, tx *store.Tx, always bool) error {
	was, err := k.recorded(ctx, tx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	r := k.reading()
	k.water.Take(was, r)
	m, due := k.water.Due(r, always)
	k.mu.Unlock()
	if !due {
		return nil
	}
	return Marks().Put(tx, markKey, m)
}

// Flush records the time at the end of a service.
func (k *Keeper) Flush(ctx context.Context) {
	if err := k.record(ctx, true); err != nil {
		k.o.Log.Warn("the highest time was not recorded at the end; what was recorded is a minute old at most", "error", err)
	}
}

func (k *Keeper) record(ctx context.Context, always bool) error {
	k.mu.Lock()
	_, due := k.water.Due(k.reading(), always)
	k.mu.Unlock()
	if !due {
		return nil
	}
	_, err := k.o.Store.Update(ctx, func(tx *store.Tx) error { return k.raise(ctx, tx, always) })
	if err == nil {
		err = k.Read(ctx)
	}
	return err
}

// Run records the time, follows what other instances record, and reports jumps, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	told := ""
	for ctx.Err() == nil {
		err := k.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if text := fmt.Sprint(err); text != told {
			k.o.Log.Error("the highest time is neither recorded nor followed", "error", err, "retry_in", retryPause)
			told = text
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
}

func (k *Keeper) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	snap, err := k.o.Store.Snapshot(ctx)
	if err != nil {
		return err
	}
	m, err := k.recorded(ctx, snap)
	if err != nil {
		return err
	}
	k.take(m)
	changes := Marks().Watch(ctx, k.o.Store, snap.Revision)
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		if err := errors.Join(k.record(ctx, false), k.report(ctx)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticks.C:
		case ev, ok := <-changes:
			if !ok || ev.Err != nil {
				return errors.Join(errors.New("watch ended"), ev.Err)
			}
			if !ev.Deleted {
				k.take(ev.Value)
			}
		}
	}
}
