package main

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"portcullis/api/fabric"
	"portcullis/api/store"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

const (
	// quietFacts is how long the facts of the leader must not have changed for a standby to
	// begin to read the fabric.
	quietFacts = time.Second
	// readEvery is the shortest time between the beginnings of two readings, and readShare the
	// share of the time that readings take at most: one in so many parts.
	readEvery = 10 * time.Second
	readShare = 5
	// standbyRest is the time after which a standby tries again to reach the fabric or the store.
	standbyRest = 30 * time.Second
)

// standby reads the fabric along while another instance leads, so that a term of this one
// begins with what it has read. See fabricsm/sm/standby.go for what that depends on.
type standby struct {
	s *service

	mu    sync.Mutex
	leads bool
	halt  context.CancelFunc // ends the reading under way
	ready *reading           // that was ended for a term
	under *reading           // under way
	free  chan struct{}      // closed while this instance does not lead
	idle  chan struct{}      // closed while nothing reads
}

// reading is a core that has read the fabric, and what it was started with.
type reading struct {
	port  transport.Port
	run   *driver.Standby
	core  sm.Config
	facts []sm.Fact // as stored
	ring  *keyring

	followed *followedFacts
}

// close ends a reading that is not used.
func (r *reading) close() {
	r.followed.end()
	r.run.Close()
}

func newStandby(s *service) *standby {
	b := &standby{s: s, free: make(chan struct{}), idle: make(chan struct{}), halt: func() {}}
	close(b.free)
	close(b.idle)
	return b
}

// hold ends reading, as a term begins.
func (b *standby) hold() {
	b.mu.Lock()
	b.leads, b.free = true, make(chan struct{})
	b.halt()
	idle := b.idle
	b.mu.Unlock()
	<-idle
}

// release has this instance read along again.
func (b *standby) release() {
	b.drop()
	b.mu.Lock()
	b.leads = false
	close(b.free)
	b.mu.Unlock()
}

// drop closes a reading that is not used.
func (b *standby) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ready != nil {
		b.ready.close()
		b.ready = nil
	}
}

// take returns the reading that a term may begin with; nil: there is none. A reading that no longer holds is closed. Only
// the first attachment of a term can use it.
func (b *standby) take(stored *loadedOnce, core *sm.Config) (*reading, error) {
	if b == nil {
		return nil, nil
	}
	b.mu.Lock()
	r := b.ready
	b.ready = nil
	b.mu.Unlock()
	if r == nil {
		return nil, nil
	}
	facts, err := stored.Load()
	if err != nil {
		r.close()
		return nil, err
	}
	reason := ""
	switch {
	case !r.run.Holds():
		reason = "it was not complete"
	case !sm.SameGround(r.facts, facts):
		reason = "the leader has changed the fabric since"
	case !sameCore(&r.core, core):
		reason = "the configuration has changed since"
	}
	if reason != "" {
		r.close()
		b.s.log.Info("what was read of the fabric while another instance led is not used", "reason", reason)
		return nil, nil
	}
	r.followed.end()
	b.s.log.Info("this term begins with what was read of the fabric while another instance led")
	return r, nil
}

// sameCore compares configurations, except for where new keys come from.
func sameCore(a, b *sm.Config) bool {
	x, y := *a, *b
	x.MKey.Source, y.MKey.Source, x.ClassKeys.Source, y.ClassKeys.Source = nil, nil, nil, nil
	return reflect.DeepEqual(x, y)
}

// runDriver runs the subnet manager, with what was read before if there is any.
func runDriver(ctx context.Context, o driver.Options, r *reading, intents <-chan sm.Intent) error {
	if r == nil {
		return driver.Run(ctx, o, intents)
	}
	facts, err := o.Store.Load()
	if err != nil {
		r.run.Close()
		return err
	}
	return r.run.Lead(ctx, o, facts, intents)
}

// run reads along until ctx ends. A process that has just started waits first, so that one
// that ends again and again reads nothing.
func (b *standby) run(ctx context.Context) {
	defer b.drop()
	pause(ctx, readEvery)
	for told := ""; ctx.Err() == nil; {
		b.mu.Lock()
		free := b.free
		b.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		took, err := b.read(ctx)
		reason := ""
		if err != nil {
			reason = err.Error()
		}
		if reason != told && reason != "" {
			b.s.log.Info("the fabric is not read along while another instance leads; tried again", "reason", reason)
		}
		told = reason
		pause(ctx, restAfter(time.Since(began), took, err))
	}
}

// restAfter returns how long a standby rests after an attempt that began some time ago, in which
// it read for a while.
func restAfter(since, took time.Duration, err error) time.Duration {
	if err != nil && !errors.Is(err, driver.ErrDiverged) {
		return standbyRest
	}
	return max(readEvery, readShare*took) - since
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// read reads along until the facts change, or this instance leads. It returns for how long it
// read what there is.
func (b *standby) read(ctx context.Context) (time.Duration, error) {
	ctx, halt := context.WithCancel(ctx)
	defer halt()
	b.mu.Lock()
	if b.leads {
		b.mu.Unlock()
		return 0, nil
	}
	idle := make(chan struct{})
	b.halt, b.idle = halt, idle
	b.mu.Unlock()
	defer close(idle)

	recs, revision, err := b.quiet(ctx)
	if err != nil || recs == nil {
		return 0, err
	}
	r, err := b.open(ctx, recs)
	if err != nil || r == nil {
		return 0, err
	}
	reading, end := context.WithCancel(ctx)
	defer end()
	// It goes on after the end of reading: the term asks which facts it begins with.
	r.followed = followFacts(context.WithoutCancel(ctx), b.s.store, recs, revision, end)
	b.mu.Lock()
	b.under = r
	b.mu.Unlock()
	err = r.run.Run(reading)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.under = nil
	took := r.run.Took()
	if err != nil || !b.leads {
		r.close()
		return took, err
	}
	b.ready = r
	return took, nil
}

// complete reports whether this instance has read the fabric that another one leads.
func (b *standby) complete() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.under != nil && b.under.run.Complete()
}

// quiet returns the facts once they have not changed for a while and the leader has settled
// the fabric, nil when ctx ends first.
func (b *standby) quiet(ctx context.Context) ([]store.Record[sm.Fact], int64, error) {
	var before []sm.Fact
	for wait := quietFacts; ; wait = min(2*wait, readEvery) {
		recs, revision, err := fabric.Facts().List(ctx, b.s.store, "")
		if err != nil {
			return nil, 0, b.unless(ctx, err)
		}
		facts := factsOf(recs)
		if sm.SameGround(before, facts) {
			return recs, revision, nil
		}
		before = facts
		if pause(ctx, wait); ctx.Err() != nil {
			return nil, 0, nil
		}
	}
}

func factsOf(recs []store.Record[sm.Fact]) []sm.Fact {
	facts := make([]sm.Fact, 0, len(recs))
	for _, r := range recs {
		facts = append(facts, r.Value)
	}
	return facts
}

// unless returns an error unless ctx has ended.
func (b *standby) unless(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// open attaches to the fabric, with a core that is started with facts.
func (b *standby) open(ctx context.Context, recs []store.Record[sm.Fact]) (*reading, error) {
	s, facts := b.s, factsOf(recs)
	r := &reading{facts: facts, core: s.withDeclared(ctx, s.core())}
	r.core.IntentWait = intentWait
	if err := s.withSiblings(ctx, &r.core); err != nil {
		return nil, b.unless(ctx, err)
	}
	r.core.MKey.Rotation.Succeeds = true // another instance leads now
	kept, ring, err := s.config.Fabric.Keys.openKeys(stored(facts), s.config.path, &r.core)
	if err != nil {
		return nil, err
	}
	r.ring = ring
	opened, err := kept.Load()
	if err != nil {
		return nil, err
	}
	if r.port, err = s.dial(ctx); err != nil {
		return nil, b.unless(ctx, err)
	}
	r.run, err = driver.NewStandby(driver.Options{Port: r.port, Core: r.core, Timeout: s.config.Fabric.Timeout}, opened)
	return r, err
}

var errStandby = errors.New("an instance that stands by saves nothing")

// stored are facts that were loaded. Nothing is saved to them.
type stored []sm.Fact

func (f stored) Load() ([]sm.Fact, error) { return slices.Clone(f), nil }

func (stored) Save([]sm.Fact) error { return errStandby }

// loadedOnce loads the facts once for all that begin a term with them. They are loaded again
// after the first that was saved: until then they are those of the instance before.
type loadedOnce struct {
	driver.Store

	mu    sync.Mutex
	facts []sm.Fact
	known bool
}

// Load implements driver.Store.
func (l *loadedOnce) Load() ([]sm.Fact, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		facts, err := l.Store.Load()
		if err != nil {
			return nil, err
		}
		l.facts, l.known = facts, true
	}
	return slices.Clone(l.facts), nil
}

// Save implements driver.Store.
func (l *loadedOnce) Save(facts []sm.Fact) error {
	l.mu.Lock()
	l.facts, l.known = nil, false
	l.mu.Unlock()
	return l.Store.Save(facts)
}
