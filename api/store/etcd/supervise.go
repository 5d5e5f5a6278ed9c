package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"portcullis/api/store"
)

const (
	// restartMin and restartMax bound the doubling pause between attempts to start the
	// member.
	restartMin = 100 * time.Millisecond
	restartMax = 5 * time.Second
	// startTime bounds one attempt, which replays the log.
	startTime = 2 * time.Minute
	// steadyTime is how long a member must have served for the pause to start again from its first value.
	steadyTime = time.Minute
	// lookEvery is how often sizes are looked at and the member is asked.
	lookEvery = 500 * time.Millisecond
	// probeTime bounds how long the member may take to answer before the store counts as
	// away.
	probeTime = 2 * time.Second
	// hungTime is how long a member may say nothing at all before it is killed.
	hungTime = time.Minute
)

// ErrOpening is Health.Away before the first attempt to start the member has ended. It is a
// store.ErrAway.
var ErrOpening = fmt.Errorf("%w: it is being opened", store.ErrAway)

// supervised is a store.Backend whose member runs in a process of its own and is started
// again whenever it dies.
type supervised struct {
	o    Options
	disk reserve

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	done chan struct{} // closed when keep has ended

	mu     sync.Mutex
	member *backend // nil: none serves
	health Health
	closed error // what the end of the member brought

	release func() error // of the lock, once
}

// supervise locks the state directory and starts its member, again and again until ctx
// ends.
func supervise(ctx context.Context, o Options) (*supervised, error) {
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	if _, err := readFormat(o.Dir); err != nil {
		return nil, errors.Join(err, lock.release())
	}
	s := &supervised{o: o, disk: reserveOf(o.Dir), done: make(chan struct{})}
	s.release = sync.OnceValue(lock.release)
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.health.Away, s.health.Free = ErrOpening, -1
	first := make(chan struct{})
	go s.keep(sync.OnceFunc(func() { close(first) }))
	select {
	case <-first:
		return s, nil
	case <-ctx.Done():
		why := s.Health().Away
		return nil, errors.Join(fmt.Errorf("the store did not open: %w", why), s.Close())
	}
}

// keep has a member serve until Close.
func (s *supervised) keep(first func()) {
	defer close(s.done)
	for pause := restartMin; ; pause = min(2*pause, restartMax) {
		began := time.Now()
		b, err := s.start()
		if err == nil {
			s.serves(b)
			first()
			s.watch(b)
			s.set(func(h *Health) { h.Restarts++ }, nil)
			err = b.Err()
		}
		if s.ctx.Err() != nil {
			return
		}
		if time.Since(began) > steadyTime {
			pause = restartMin
		}
		s.away(err)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
	}
}

// start starts the member, on the reserve if there is no other space.
func (s *supervised) start() (*backend, error) {
	s.look(nil)
	if err := checkSpace(memberDir(s.o)); errors.Is(err, store.ErrFull) && s.disk.held() {
		s.o.Log.Warn("the disk of the state directory is full; its reserve is given back", "error", err)
		if err := s.disk.release(); err != nil {
			s.o.Log.Error("the reserve stays", "error", err)
		}
		s.look(nil)
	}
	if err := prepare(s.o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, startTime)
	defer cancel()
	return startChild(ctx, s.o)
}

// serves notes that a member serves.
func (s *supervised) serves(b *backend) {
	s.set(func(h *Health) { h.Away = nil }, b)
}

// away notes that there is no member, and why.
func (s *supervised) away(cause error) {
	s.set(func(h *Health) { h.Away = fmt.Errorf("%w: %v", store.ErrAway, cause) }, nil)
}

// set changes how the store is and which member serves, and calls OnHealth if it is news.
func (s *supervised) set(change func(*Health), member *backend) {
	s.mu.Lock()
	was := s.health
	change(&s.health)
	s.health.judge()
	now := s.health
	s.member = member
	s.mu.Unlock()
	if s.o.OnHealth != nil && !now.alike(&was) {
		s.o.OnHealth(now)
	}
}

// HealthOf returns how a store is that was opened with Options.Command, and the zero Health
// for others.
func HealthOf(st *store.Store) Health {
	if s, ok := st.Backend().(*supervised); ok {
		return s.Health()
	}
	return Health{}
}

// Health returns how the store is.
func (s *supervised) Health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health
}

// watch looks after a member until it is dead or the store is closed, in which case it
// ends it.
func (s *supervised) watch(b *backend) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	u := upkeep{s: s, b: b, heard: time.Now()}
	for {
		select {
		case <-b.Failed():
			s.set(func(h *Health) { h.Away = fmt.Errorf("%w: %v", store.ErrAway, b.Err()) }, nil)
			if err := b.release(); err != nil {
				s.o.Log.Warn("a dead member of the store was not left in order", "error", err)
			}
			return
		case <-s.ctx.Done():
			s.mu.Lock()
			s.member = nil
			s.mu.Unlock()
			s.closed = b.Close()
			return
		case <-tick.C:
			u.turn(s.ctx)
		}
	}
}

// current returns the member that serves.
func (s *supervised) current() (*backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return nil, store.ErrClosed
	case s.health.Away != nil:
		return nil, s.health.Away
	default:
		return s.member, nil
	}
}

// unsure adds to an error that came of the member's death that the outcome of the request is not known: requests in its log
// are replayed.
func unsure(b *backend, err error) error {
	if err != nil && b.Err() != nil {
		return fmt.Errorf("the store ended meanwhile: %v", b.Err())
	}
	return err
}

// Read implements store.Backend.
func (s *supervised) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	b, err := s.current()
	if err != nil {
		return store.Items{}, err
	}
	items, err := b.Read(ctx, key, prefix, rev)
	return items, unsure(b, err)
}

// Commit implements store.Backend.
func (s *supervised) Commit(ctx context.Context, batch store.Batch) (int64, error) {
	if store.IsGrowing(ctx) {
		if err := s.Room(); err != nil {
			return 0, err
		}
	}
	b, err := s.current()
	if err != nil {
		return 0, err
	}
	rev, err := b.Commit(ctx, batch)
	return rev, unsure(b, err)
}

// Watch implements store.Backend.
func (s *supervised) Watch(ctx context.Context, prefix string, from int64) <-chan store.Changes {
	b, err := s.current()
	if err != nil {
		out := make(chan store.Changes, 1)
		out <- store.Changes{Err: err}
		close(out)
		return out
	}
	return b.Watch(ctx, prefix, from)
}

// Range implements store.Backend.
func (s *supervised) Range(ctx context.Context, prefix, after string, limit int, rev int64) (store.Items, error) {
	b, err := s.current()
	if err != nil {
		return store.Items{}, err
	}
	items, err := b.Range(ctx, prefix, after, limit, rev)
	return items, unsure(b, err)
}

// Get implements store.Backend.
func (s *supervised) Get(ctx context.Context, keys []string, rev int64) (store.Items, error) {
	b, err := s.current()
	if err != nil {
		return store.Items{}, err
	}
	items, err := b.Get(ctx, keys, rev)
	return items, unsure(b, err)
}

// NewLease implements store.Backend.
func (s *supervised) NewLease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	b, err := s.current()
	if err != nil {
		return 0, err
	}
	l, err := b.NewLease(ctx, ttl)
	return l, unsure(b, err)
}

// KeepAlive implements store.Backend.
func (s *supervised) KeepAlive(ctx context.Context, l store.Lease) error {
	b, err := s.current()
	if err != nil {
		return err
	}
	return unsure(b, b.KeepAlive(ctx, l))
}

// Revoke implements store.Backend.
func (s *supervised) Revoke(ctx context.Context, l store.Lease) error {
	b, err := s.current()
	if err != nil {
		return err
	}
	return unsure(b, b.Revoke(ctx, l))
}

// Room implements store.Roomy.
func (s *supervised) Room() error {
	h := s.Health()
	if h.Away != nil {
		return h.Away
	}
	return h.Short
}

// Failed implements store.Backend: the member is started again without limit.
func (s *supervised) Failed() <-chan struct{} { return nil }

// Err implements store.Backend.
func (s *supervised) Err() error { return nil }

// Close implements store.Backend.
func (s *supervised) Close() error {
	s.stop()
	<-s.done
	return errors.Join(s.closed, s.release())
}

// release detaches a member that died in its process.
func (e *backend) release() error {
	err := e.client.Close()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, e.member.abandon())
}
