package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/api/fabric/owed"
	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/sm"
)

const (
	// saveTimeout bounds how long the store may take to read facts, or to write records.
	saveTimeout = 10 * time.Second
	// savePatience bounds how long the subnet manager waits for the store to take its
	// facts; then they go to the journal. It sends nothing meanwhile.
	savePatience = 2 * time.Second
)

// Facts holds what the subnet manager must not forget, by
// "kind/GUID", "kind/GUID/port" or "kind/name".
func Facts() store.Collection[sm.Fact] { return store.NewCollection[sm.Fact]("fabric/facts", 1) }

// Load implements driver.Store. While the store is away it returns what was loaded and saved
// before, if anything was.
func (l *Link) Load() ([]sm.Fact, error) {
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	var recs []store.Record[sm.Fact]
	var err error
	if copies := l.ahead.facts.Swap(nil); copies != nil {
		recs, err = list(ctx, source{l.store.At(copies.Revision()), copies}, Facts())
	} else {
		recs, _, err = Facts().List(ctx, l.store, "")
	}
	if err != nil {
		if facts, known := l.owed.Known(); known {
			l.log.Warn("what must not be forgotten is taken from memory: the store does not answer", "facts", len(facts), "error", err)
			return facts, nil
		}
		return nil, err
	}
	out := make([]sm.Fact, 0, len(recs))
	for _, r := range recs {
		out = append(out, r.Value)
	}
	return l.owed.Loaded(out), nil
}

// Save implements driver.Store: the facts are on disk when it returns, in the store or in
// the journal of what it is owed. Facts of a term go to the store alone: the leader that
// follows has no other. Where neither takes them, those that the fabric shows
// again after a restart are kept in memory; others are an error that is owed.ErrNotDurable.
func (l *Link) Save(facts []sm.Fact) error {
	if err := refuseClear(facts); err != nil {
		return err
	}
	if l.termed || !l.owed.Owes() {
		ctx, cancel := context.WithTimeout(context.Background(), savePatience)
		err := saveAll(ctx, l.store, l.guard, facts)
		cancel()
		switch {
		case err == nil:
			l.owed.Saved(facts)
			return nil
		case errors.Is(err, leader.ErrDeposed):
			return err // another instance says now what holds
		}
		if l.termed {
			return fmt.Errorf("%w: %w", err, driver.ErrLater)
		}
		l.log.Warn("the store does not take what must not be forgotten; it goes to the journal", "facts", len(facts), "error", err)
	}
	if err := l.owed.AddFacts(facts); err != nil {
		return fmt.Errorf("save %d facts of the subnet manager: %w: %w", len(facts), err, driver.ErrLater)
	}
	return nil
}

// SaveFacts writes facts into a store that were owed to it.
func SaveFacts(ctx context.Context, st *store.Store, facts []sm.Fact) error {
	return saveAll(ctx, st, always, facts)
}

func saveAll(ctx context.Context, st *store.Store, guard func(context.Context, *store.Tx) error, facts []sm.Fact) error {
	for chunk := range slices.Chunk(facts, maxWrites) {
		_, err := st.Update(ctx, func(tx *store.Tx) error {
			if err := guard(ctx, tx); err != nil {
				return err
			}
			return saveFacts(tx, chunk)
		})
		if err != nil {
			return fmt.Errorf("save %d facts of the subnet manager: %w", len(facts), err)
		}
	}
	return nil
}

// refuseClear refuses facts whose secrets are not sealed.
func refuseClear(facts []sm.Fact) error {
	for i := range facts {
		if f := &facts[i]; f.Key != nil || !f.Private.IsZero() {
			return fmt.Errorf("%s was to be kept in clear; it has to be sealed first", owed.Key(f))
		}
	}
	return nil
}

func saveFacts(tx *store.Tx, facts []sm.Fact) error {
	for _, f := range facts {
		if f.TakesBack() {
			Facts().Delete(tx, owed.Key(&f)) // it was taken back
			continue
		}
		if err := Facts().Put(tx, owed.Key(&f), f); err != nil {
			return err
		}
	}
	return nil
}
