package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"portcullis/api/store"
)

// ErrCut is what a watch that Cutting ends has last.
var ErrCut = errors.New("the watch was cut")

// Cutting is a Backend whose watches end, or stand still, and whose reads fail, when a test says so.
type Cutting struct {
	store.Backend

	mu      sync.Mutex
	watches int
	reads   []time.Time // when a prefix was read
	end     context.CancelFunc
	still   bool
	down    error
}

// Watch implements store.Backend.
func (c *Cutting) Watch(ctx context.Context, prefix string, from int64) <-chan store.Changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches++
	watched, end := context.WithCancel(ctx)
	c.end = end
	in, out := c.Backend.Watch(watched, prefix, from), make(chan store.Changes)
	go func() {
		defer close(out)
		for changes := range in {
			if c.isStill() {
				continue
			}
			select {
			case out <- changes:
			case <-ctx.Done():
				return
			}
		}
		if ctx.Err() == nil {
			out <- store.Changes{Err: ErrCut}
		}
	}()
	return out
}

// Read implements store.Backend.
func (c *Cutting) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	c.mu.Lock()
	if prefix {
		c.reads = append(c.reads, time.Now())
	}
	down := c.down
	c.mu.Unlock()
	if down != nil {
		return store.Items{}, down
	}
	return c.Backend.Read(ctx, key, prefix, rev)
}

func (c *Cutting) isStill() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.still
}

// Cut ends the newest watch.
func (c *Cutting) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
}

// Hold has watches lose all changes from now on.
func (c *Cutting) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still = true
}

// Fail has all reads fail with err from now on; nil: they work.
func (c *Cutting) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

// Watches returns how many watches there were.
func (c *Cutting) Watches() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watches
}

// TakeReads returns when prefixes were read since the last call.
func (c *Cutting) TakeReads() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.reads
	c.reads = nil
	return out
}
