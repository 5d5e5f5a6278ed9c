package leader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"portcullis/api/store"
)

// ErrDeposed says that a term is over: its lease has ended, and another instance may lead.
var ErrDeposed = errors.New("this instance no longer leads")

// Term is the leadership of one instance. Its methods may be called from any goroutine.
type Term struct {
	Epoch    uint64
	Instance string

	role        string
	clock       Clock
	ttl, margin time.Duration

	until    atomic.Int64 // an Instant, or lapsed
	revision atomic.Int64 // of the record of the term
}

const lapsed = math.MinInt64

// Left returns for how long the lease surely holds from now on, 0 when it may have ended.
// It allocates nothing.
func (t *Term) Left() time.Duration {
	until := t.until.Load()
	now := int64(t.clock())
	if until <= now {
		return 0
	}
	return time.Duration(until - now)
}

// Revision returns the revision of the store at which the term began. No leader before wrote at a later one.
func (t *Term) Revision() int64 { return t.revision.Load() }

// Guard makes it a condition of tx that the term is not over, and returns an error that is
// ErrDeposed when it is.
func (t *Term) Guard(ctx context.Context, tx *store.Tx) error {
	if t.Left() > 0 {
		leaders().Expect(tx, t.role, t.revision.Load()) // nothing has to be read
		return nil
	}
	now, err := leaders().Get(ctx, tx, t.role)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w: the lease of epoch %d has ended", ErrDeposed, t.Epoch)
	case err != nil:
		return err
	case now.Value.Epoch != t.Epoch:
		return fmt.Errorf("%w: the lease of epoch %d has ended, and %s leads in epoch %d", ErrDeposed, t.Epoch, now.Value.Instance, now.Value.Epoch)
	}
	return nil
}

// kept extends the time of the lease, which the store began after the request at sent.
func (t *Term) kept(sent Instant) {
	t.until.Store(max(t.until.Load(), int64(sent)+int64(t.ttl-t.margin)))
}

// over ends the term for this process.
func (t *Term) over() { t.until.Store(lapsed) }
