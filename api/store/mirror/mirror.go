// Package mirror keeps copies of collections in memory, decoded, while an instance stands by. An instance that begins to lead
// takes them, and reads nothing: to read the records of a great fabric from the store takes seconds.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/store"
)

const (
	// quietTime is how long nothing is read after a start, and after the copies were taken: an instance that starts may lead
	// at once, and one that led may lead again.
	quietTime = 5 * time.Second
	// firstPause is the rest after the store did not answer, after it ended a watch, and after a record that does not decode. It
	// doubles up to longestPause: to read everything again for a record that stays as it is takes a CPU for seconds each time.
	firstPause   = time.Second
	longestPause = time.Minute
	// readTimeout bounds how long the store may take to read all collections.
	readTimeout = time.Minute
)

// Mirror follows collections of one store. Its methods may be called from any goroutine.
type Mirror struct {
	store *store.Store
	log   *slog.Logger
	of    []Collection

	mu     sync.Mutex
	copies *Copies            // nil: nothing was read, or it was taken
	taken  bool               // nothing is read before Resume
	moved  chan struct{}      // closed when one of these changes
	stop   context.CancelFunc // ends what reads and follows now; nil: nothing does
}

// New returns a Mirror of collections of s. Nothing is read before Run.
func New(s *store.Store, log *slog.Logger, of ...Collection) *Mirror {
	return &Mirror{store: s, log: log, of: of, moved: make(chan struct{})}
}

// Run reads the collections and follows their changes until ctx ends. It pauses between Take and Resume. It outlives every
// failure of the store: there are no copies meanwhile.
func (m *Mirror) Run(ctx context.Context) {
	pause := firstPause
	for rest := quietTime; m.awaitTurn(ctx, rest); {
		followed, stop := context.WithCancel(ctx)
		rest = quietTime
		if m.begin(stop) {
			lasted, err := m.follow(followed)
			if lasted >= longestPause || followed.Err() != nil {
				pause = firstPause
			}
			if followed.Err() == nil {
				m.log.Debug("records are not read ahead", "error", err, "retry_in", pause)
				rest, pause = pause, min(2*pause, longestPause)
			}
		}
		stop()
		m.drop()
	}
}

// awaitTurn returns true once copies may be made and rest has passed since, and false when ctx ends.
func (m *Mirror) awaitTurn(ctx context.Context, rest time.Duration) bool {
	for ctx.Err() == nil {
		m.mu.Lock()
		taken, moved := m.taken, m.moved
		m.mu.Unlock()
		var due <-chan time.Time
		if !taken {
			due = time.After(rest)
		}
		select {
		case <-due:
			return true
		case <-moved:
		case <-ctx.Done():
		}
	}
	return false
}

// begin notes how to end what reads from now on. It returns false where the copies were taken meanwhile.
func (m *Mirror) begin(stop context.CancelFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken {
		return false
	}
	m.stop = stop
	return true
}

// drop forgets copies that are followed no longer.
func (m *Mirror) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop, m.copies = nil, nil
	m.wake()
}

// wake has those look again that wait. The caller holds the lock.
func (m *Mirror) wake() {
	close(m.moved)
	m.moved = make(chan struct{})
}

// follow reads everything, and then takes each change. It returns for how long there were copies, and why it ended.
func (m *Mirror) follow(ctx context.Context) (lasted time.Duration, err error) {
	c, err := m.read(ctx)
	if err != nil {
		return 0, err
	}
	if !m.show(ctx, c) {
		return 0, ctx.Err()
	}
	began := time.Now()
	for changes := range m.store.Watch(ctx, "", c.revision) {
		err := changes.Err
		if err == nil {
			err = m.change(ctx, c, changes)
		}
		if err != nil {
			return time.Since(began), err
		}
	}
	return time.Since(began), errors.New("the watch ended")
}

// read reads all collections as of one revision.
func (m *Mirror) read(ctx context.Context) (*Copies, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	snap, err := m.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	c := &Copies{revision: snap.Revision, of: make(map[string]held, len(m.of))}
	for _, x := range m.of {
		if c.of[x.name], err = x.read(ctx, snap); err != nil {
			return nil, fmt.Errorf("read %s: %w", x.name, err)
		}
	}
	return c, nil
}

// show has copies wait to be taken. It returns false where ctx ended: another goroutine has taken what there was.
func (m *Mirror) show(ctx context.Context, c *Copies) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	m.copies = c
	m.wake()
	return true
}

// change applies changes of the store to copies that were not taken.
func (m *Mirror) change(ctx context.Context, c *Copies, changes store.Changes) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, ch := range changes.Changes {
		for _, h := range c.of {
			if err := h.change(ch); err != nil {
				return err
			}
		}
	}
	c.revision = max(c.revision, changes.Revision)
	m.wake()
	return nil
}

// Take returns the copies once they hold all up to a revision at which a record of the store was changed, and follows them
// no longer. It returns nil where there are none, and where they have not come so far when ctx ends. Nothing is read from
// then on until Resume is called.
func (m *Mirror) Take(ctx context.Context, revision int64) *Copies {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.copies != nil && m.copies.revision < revision && ctx.Err() == nil {
		moved := m.moved
		m.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		m.mu.Lock()
	}
	c := m.copies
	if c != nil && c.revision < revision {
		c = nil
	}
	m.copies, m.taken = nil, true
	if m.stop != nil {
		m.stop()
	}
	m.wake()
	return c
}

// Resume has the collections read and followed again after Take.
func (m *Mirror) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = false
	m.wake()
}
