package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"

	"portcullis/api/store"
)

// Position is a place in the order of all events: it names a change of one row of the store. Every instance that uses the
// store has the same positions, and they stay the same when services are started again.
type Position struct {
	Series   string // of revisions: a store that was restored or rolled back begins another
	Revision int64  // of the store
	Row      uint64 // of the rows of one revision: they are in the order of this number
}

// lastRow is behind every row of a revision.
const lastRow = ^uint64(0)

// String returns the id of the event at the position.
func (p Position) String() string { return fmt.Sprintf("%s-%d-%016x", p.Series, p.Revision, p.Row) }

// Compare orders positions of one series.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Revision, q.Revision), cmp.Compare(p.Row, q.Row))
}

var idForm = regexp.MustCompile(`^([0-9a-f]{16})-([1-9][0-9]{0,18})-([0-9a-f]{16})$`)

// ParsePosition reads what String wrote, and reports whether it is that.
func ParsePosition(s string) (Position, bool) {
	m := idForm.FindStringSubmatch(s)
	if m == nil {
		return Position{}, false
	}
	revision, err := strconv.ParseInt(m[2], 10, 64)
	row, err2 := strconv.ParseUint(m[3], 16, 64)
	return Position{m[1], revision, row}, err == nil && err2 == nil
}

// at returns the position of a change of the row at key.
func (s Series) at(revision int64, key string) Position {
	h := fnv.New64a()
	h.Write([]byte(key))
	return Position{s.ID, revision, h.Sum64()}
}

// Series is what the store has of its positions.
type Series struct {
	ID string `json:"id"`
	// Removed is the last revision of a row that was removed for its age.
	Removed int64 `json:"removed,omitempty"`
}

const seriesKey = "now"

// allSeries is among the collections that no restored or rolled back state keeps: review.Seen has its name.
func allSeries() store.Collection[Series] { return store.NewCollection[Series]("event-series", 1) }

// SeriesOf returns the series of the store, which begins with the first call.
func SeriesOf(ctx context.Context, s *store.Store) (Series, error) {
	rec, err := allSeries().Get(ctx, s, seriesKey)
	if !errors.Is(err, store.ErrNotFound) {
		return rec.Value, err
	}
	var out Series
	_, err = s.Update(ctx, func(tx *store.Tx) error {
		rec, err := allSeries().Get(ctx, tx, seriesKey)
		if !errors.Is(err, store.ErrNotFound) {
			out = rec.Value
			return err
		}
		var id [8]byte
		rand.Read(id[:])
		out = Series{ID: hex.EncodeToString(id[:])}
		return allSeries().Put(tx, seriesKey, out)
	})
	return out, err
}

// removed notes in tx that a row of this revision is removed.
func removed(ctx context.Context, tx *store.Tx, revision int64) error {
	s, err := store.Optional(allSeries().Get(ctx, tx, seriesKey))
	if err != nil || s.ID == "" || s.Removed >= revision {
		return err
	}
	s.Removed = revision
	return allSeries().Put(tx, seriesKey, s)
}
