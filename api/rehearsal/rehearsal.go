// Package rehearsal records that an escrow kit was opened where its identity is kept, and has every key of the store.
//
// The service opens no kit. It verifies a proof, which only a kit of its own store that is open can make (package escrow).
package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/vault"
	"portcullis/fabricsm/vault/escrow"
)

// maxAhead is how far the clock of the machine that made a list may be ahead.
const maxAhead = 5 * time.Minute

// Record is the last rehearsal that was proven.
type Record struct {
	KitMade  time.Time `json:"kit_made"`
	Listed   time.Time `json:"listed"` // the kit was opened then or later
	Keys     int       `json:"keys"`
	Devices  int       `json:"devices"`
	Recorded time.Time `json:"recorded"`
	By       string    `json:"by"`
}

// key is that of the only record.
const key = "kit"

// Records holds the Record.
func Records() store.Collection[Record] { return store.NewCollection[Record]("rehearsals", 1) }

// Last returns the last rehearsal that was proven; the zero Record: there was none.
func Last(ctx context.Context, r store.Reader) (Record, error) {
	return store.Optional(Records().Get(ctx, r, key))
}

// Book records rehearsals.
type Book struct {
	Store *store.Store
	Now   func() time.Time
	// Check returns the name of the vault and the check key of the store.
	Check func() (id string, k vault.CheckKey, err error)
}

// Record verifies a proof and records it. It refuses one of another store, of a time that is not now, and one that is older than the
// last.
func (b *Book) Record(ctx context.Context, actor string, in v1.KeyRehearsal) (*v1.KeyRehearsed, error) {
	id, check, err := b.Check()
	if err != nil {
		return nil, &refusal.Error{
			Code: v1.CodeUnavailable, Status: refusal.Unavailable, Err: err, Detail: "the proof was not verified: the keys of the service do not open",
			Hint: "the log of the service has the reason",
		}
	}
	p := escrow.Proof{Fabric: in.Fabric, KitMade: in.KitMade, Listed: in.Listed, Keys: in.Keys, Devices: in.Devices, List: in.List, Seal: in.Seal}
	if err := p.Verify(check); err != nil {
		return nil, &refusal.Error{
			Code: "rehearsal_foreign", Status: refusal.Invalid, Detail: err.Error(), Err: err,
			Hint: "make a list of this service with portcullis keys digests, and rehearse a kit of it with --proof",
		}
	}
	now := b.Now().UTC().Round(0)
	switch {
	case p.Fabric != id:
		return nil, refusal.New(refusal.Conflict, "rehearsal_old_vault", "make another kit, and rehearse that one",
			"the kit is of vault %.40s, and the keys of this service are in vault %s now", p.Fabric, id)
	case p.Listed.After(now.Add(maxAhead)):
		return nil, refusal.New(refusal.Invalid, "rehearsal_early", "set the clock of the machine that makes the list right, and make the list again",
			"the list of keys was made at %s, and it is %s", p.Listed.UTC().Format(time.RFC3339), now.Format(time.RFC3339))
	}
	rec := Record{KitMade: p.KitMade.UTC(), Listed: p.Listed.UTC(), Keys: p.Keys, Devices: p.Devices, Recorded: now, By: actor}
	_, err = b.Store.Update(ctx, func(tx *store.Tx) error {
		was, err := Last(ctx, tx)
		if err != nil {
			return err
		}
		if rec.Listed.Before(was.Listed) {
			return refusal.New(refusal.Conflict, "rehearsal_older", "nothing is to be done", "a rehearsal with a list of %s is recorded, which is later than that of %s",
				was.Listed.Format(time.RFC3339), rec.Listed.Format(time.RFC3339))
		}
		return errors.Join(Records().Put(tx, key, rec), audit.Append(ctx, tx, audit.Entry{
			Time: now, Actor: actor, Action: "fabric.keys.rehearsed", Object: "fabric/keys",
			Detail: fmt.Sprintf("a kit of %s has all %d keys of %d devices as of %s", rec.KitMade.Format(time.RFC3339), rec.Keys, rec.Devices, rec.Listed.Format(time.RFC3339)),
		}))
	})
	if err != nil {
		return nil, refusal.Explain(err)
	}
	return &v1.KeyRehearsed{KitMade: rec.KitMade, Listed: rec.Listed, Keys: rec.Keys, Devices: rec.Devices, Recorded: rec.Recorded, By: rec.By}, nil
}
