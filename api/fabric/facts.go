package fabric

import (
	"context"
	"fmt"
	"slices"
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/sm"
)

// saveTimeout bounds how long the subnet manager waits for its facts to be
// durable. It sends nothing meanwhile.
const saveTimeout = 10 * time.Second

// Facts holds what the subnet manager must not forget, by
// "kind/GUID", "kind/GUID/port" or "kind/name".
func Facts() store.Collection[sm.Fact] { return store.NewCollection[sm.Fact]("fabric/facts", 1) }

func factKey(f sm.Fact) string {
	if f.Name != "" {
		return fmt.Sprintf("%s/%s", f.Kind, f.Name)
	}
	if f.Port != 0 {
		return fmt.Sprintf("%s/%v/%d", f.Kind, f.GUID, f.Port)
	}
	return fmt.Sprintf("%s/%v", f.Kind, f.GUID)
}

// Load implements driver.Store.
func (l *Link) Load() ([]sm.Fact, error) {
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	recs, _, err := Facts().List(ctx, l.store, "")
	if err != nil {
		return nil, err
	}
	out := make([]sm.Fact, 0, len(recs))
	for _, r := range recs {
		out = append(out, r.Value)
	}
	return out, nil
}

// Save implements driver.Store: the facts are on disk when it returns.
func (l *Link) Save(facts []sm.Fact) error {
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	for chunk := range slices.Chunk(facts, maxWrites) {
		_, err := l.store.Update(ctx, func(tx *store.Tx) error {
			if err := l.guard(ctx, tx); err != nil {
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

func saveFacts(tx *store.Tx, facts []sm.Fact) error {
	for _, f := range facts {
		if f.Key != nil || !f.Private.IsZero() {
			return fmt.Errorf("%s was to be kept in clear; it has to be sealed first", factKey(f))
		}
		if f.TakesBack() {
			Facts().Delete(tx, factKey(f)) // it was taken back
			continue
		}
		if err := Facts().Put(tx, factKey(f), f); err != nil {
			return err
		}
	}
	return nil
}
