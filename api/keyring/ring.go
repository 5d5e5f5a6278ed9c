// Package keyring keeps keys of the service that sign for others: in one record of the store, so that every service over it
// signs by the same ones. Their private halves are sealed in a vault of their own, whose root stands outside the store: a
// stolen disk or backup signs nothing.
//
// A key signs for a period. The next one is published ahead, because others keep their copy for a while; those before are
// accepted for as long as something that they signed may count. Whichever service first finds that the next one is due
// makes it. It is made only once the one before signs, so that there are never many.
//
// The user of a ring decides what a key is and what it signs.
package keyring

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/vault"
)

// automatic is the actor of changes that no caller requested.
const automatic = "service"

// Options configure a Ring of keys that open to a K. All are required but where a default
// is named.
type Options[K any] struct {
	Store *store.Store
	Root  vault.Root // seals keys
	Log   *slog.Logger
	Now   func() time.Time // default time.Now

	Scope  string        // what the keys sign for: those of another one count no more; default none
	Period time.Duration // that a key signs, more than Ahead; default: until an operator rotates
	Ahead  time.Duration // a key is published for that long before it signs
	After  time.Duration // a key is accepted for that long after the next one began

	// Make makes a key that signs from a time on.
	Make func(now, from time.Time) (*Fresh, error)
	// Open puts the halves of a key together. It keeps nothing of secret.
	Open func(public, secret []byte) (K, error)

	Words Words
}

// Fresh is a key that was just made.
type Fresh struct {
	ID     string // of no other
	Public []byte
	Secret []byte    // is cleared once it is sealed
	Until  time.Time // Key.Until
}

// Words are what operators know a ring by.
type Words struct {
	Name    string // collection of the store; begins actions and objects of the audit log
	Code    string // begins codes of refusals: CODE_locked, CODE_next
	Key     string // what one is
	Signed  string // what they sign, all of it
	Setting string // names the root
	Show    string // command that lists keys
	Anew    string // command that drops all of them
}

// Ring keeps keys. Methods are safe for concurrent use, and several Rings may share one
// store. Refusals are *refusal.Error.
type Ring[K any] struct {
	o       Options[K]
	records store.Collection[record]

	mu     sync.Mutex
	known  string // what is sealed in opened, and as what
	opened K

	recentMu sync.Mutex
	recent   *reading // the last one; nil: the store has changed since
}

// New makes a Ring.
func New[K any](o Options[K]) (*Ring[K], error) {
	switch {
	case o.Root == nil:
		return nil, fmt.Errorf("%s: no root to seal keys with (%s)", o.Words.Key, o.Words.Setting)
	case o.Period != 0 && o.Period <= o.Ahead:
		return nil, fmt.Errorf("%s: it signs for %v: want more than %v, for which the next one is published ahead", o.Words.Key, o.Period, o.Ahead)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Ring[K]{o: o, records: store.NewCollection[record](o.Words.Name, 1)}, nil
}

// Now is the time as the ring knows it, in UTC.
func (r *Ring[K]) Now() time.Time { return r.o.Now().UTC().Round(0) }

// Keys returns the keys that count now.
func (r *Ring[K]) Keys(ctx context.Context) (Keys, error) {
	rec, err := r.read(ctx, r.o.Store)
	return rec.Keys, r.explain(err)
}

// Signer returns the key that signs now. It makes the first one, and the next one where that is due; if that fails, the one
// before signs on.
func (r *Ring[K]) Signer(ctx context.Context) (k *Key, opened K, err error) {
	rec, err := r.read(ctx, r.o.Store)
	if err != nil {
		return nil, opened, r.explain(err)
	}
	if _, due := r.due(rec.Keys); due {
		switch fresh, err := r.update(ctx, r.renew); {
		case err == nil:
			rec = fresh
		case len(rec.Keys) == 0:
			return nil, opened, err
		default:
			r.o.Log.ErrorContext(ctx, "the next "+r.o.Words.Key+" could not be made", "err", err)
		}
	}
	k = &rec.Keys[rec.Keys.Signer(r.Now())]
	opened, err = r.open(&rec, k)
	return k, opened, err
}

// Current returns the key that signs now, as Signer does, and makes none. The error is a refusal if there is none.
func (r *Ring[K]) Current(ctx context.Context) (k *Key, opened K, err error) {
	rec, err := r.read(ctx, r.o.Store)
	if err != nil {
		return nil, opened, r.explain(err)
	}
	if len(rec.Keys) == 0 {
		return nil, opened, &refusal.Error{
			Code: r.o.Words.Code + "_none", Status: refusal.Unavailable, Detail: "there is no " + r.o.Words.Key + " yet", Hint: r.o.Words.Anew + " makes one",
		}
	}
	k = &rec.Keys[rec.Keys.Signer(r.Now())]
	opened, err = r.open(&rec, k)
	return k, opened, err
}

// Rotate makes the next key and returns the keys that count then. With atOnce the new one signs at once, and all others and
// what they are sealed in are dropped.
func (r *Ring[K]) Rotate(ctx context.Context, actor, reason string, atOnce bool) (Keys, error) {
	rec, err := r.update(ctx, func(ctx context.Context, tx *store.Tx, rec *record) error {
		from, why := r.Now(), reason
		switch next := rec.Keys.next(from); {
		case atOnce:
			why += "; given up: " + rec.Keys.list()
			*rec = record{}
		case next != nil:
			return &refusal.Error{
				Code: r.o.Words.Code + "_next", Status: refusal.Conflict,
				Detail: fmt.Sprintf("%s %s is the next one already: it signs from %s", r.o.Words.Key, next.ID, next.From.Format(time.RFC3339)),
				Hint:   fmt.Sprintf("wait until it does; to end %s now: %s", r.o.Words.Signed, r.o.Words.Anew),
			}
		case len(rec.Keys) > 0:
			from = from.Add(r.o.Ahead)
		}
		return r.add(ctx, tx, rec, from, actor, why)
	})
	return rec.Keys, err
}

// renew makes the next key, unless another service was first.
func (r *Ring[K]) renew(ctx context.Context, tx *store.Tx, rec *record) error {
	from, due := r.due(rec.Keys)
	if !due {
		return nil
	}
	return r.add(ctx, tx, rec, from, automatic, "it was due")
}

// due reports whether the next key is to be made, and from when it signs.
func (r *Ring[K]) due(keys Keys) (from time.Time, due bool) {
	now := r.Now()
	if len(keys) == 0 {
		return now, true
	}
	last, ahead := &keys[len(keys)-1], now.Add(r.o.Ahead)
	switch {
	case !last.Until.IsZero() && last.Until.Before(ahead.Add(r.o.After)):
		return now, true // too late for ahead
	case r.o.Period != 0 && !last.From.Add(r.o.Period).After(ahead):
		return ahead, true
	default:
		return time.Time{}, false
	}
}

// add makes a key in tx.
func (r *Ring[K]) add(ctx context.Context, tx *store.Tx, rec *record, from time.Time, actor, why string) error {
	v, err := r.vault(rec)
	if err != nil {
		return err
	}
	now := r.Now()
	made, err := r.o.Make(now, from)
	if err != nil {
		return fmt.Errorf("make a %s: %w", r.o.Words.Key, err)
	}
	defer clear(made.Secret)
	k := Key{ID: made.ID, Scope: r.o.Scope, Public: made.Public, Created: now, From: from, Until: made.Until}
	if k.Sealed, err = v.Seal(k.sealedAs(), 1, made.Secret); err != nil {
		return err
	}
	rec.Vault, rec.Keys = v.Header(), append(rec.Keys, k)
	return errors.Join(r.records.Put(tx, theRecord, *rec), audit.Append(ctx, tx, audit.Entry{
		Time: now, Actor: actor, Action: r.o.Words.Name + ".rotate", Object: r.o.Words.Name + "/" + k.ID, Code: "ok",
		Detail: fmt.Sprintf("%s; signs from %s; those that count: %s", why, from.Format(time.RFC3339), rec.Keys.list()),
	}))
}

// vault opens what the keys are sealed in, or makes it.
func (r *Ring[K]) vault(rec *record) (*vault.Vault, error) {
	if rec.Vault == nil {
		return vault.Create(r.o.Root, rand.Reader)
	}
	v, err := vault.Open(rec.Vault, r.o.Root, rand.Reader)
	if err != nil {
		return nil, r.locked(err)
	}
	return v, nil
}

// open unseals a key, once: a key that was opened before is at hand.
func (r *Ring[K]) open(rec *record, k *Key) (opened K, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := k.sealedAs()
	known := name + "/" + k.Sealed
	if known == r.known {
		return r.opened, nil
	}
	v, err := r.vault(rec)
	if err != nil {
		return opened, err
	}
	secret, _, err := v.Open(name, k.Sealed)
	if err != nil {
		return opened, r.locked(err)
	}
	defer clear(secret)
	if opened, err = r.o.Open(k.Public, secret); err != nil {
		return opened, r.locked(err)
	}
	r.known, r.opened = known, opened
	return opened, nil
}

// stored returns the record as it is.
func (r *Ring[K]) stored(ctx context.Context, from store.Reader) (record, error) {
	found, err := r.records.Get(ctx, from, theRecord)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return record{}, err
	}
	return found.Value, nil
}

// read returns the record with the keys that count now.
func (r *Ring[K]) read(ctx context.Context, from store.Reader) (record, error) {
	rec, err := r.stored(ctx, from)
	if err != nil {
		return record{}, err
	}
	if rec.Keys = rec.Keys.counting(r.o.Scope, r.Now(), r.o.After); len(rec.Keys) == 0 {
		rec.Vault = nil // nothing in it is wanted
	}
	return rec, nil
}

// update changes the record and returns it as it is stored then.
func (r *Ring[K]) update(ctx context.Context, change func(context.Context, *store.Tx, *record) error) (rec record, err error) {
	defer r.forget() // also after an error: what was committed may not have been confirmed
	_, err = r.o.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if rec, err = r.read(ctx, tx); err != nil {
			return err
		}
		return change(ctx, tx, &rec)
	})
	if err != nil {
		return record{}, r.explain(err)
	}
	return rec, nil
}

// locked says what to do about keys that do not open.
func (r *Ring[K]) locked(err error) error {
	w := &r.o.Words
	return &refusal.Error{
		Code: w.Code + "_locked", Status: refusal.Unavailable, Err: err,
		Detail: fmt.Sprintf("the %s does not open: %v", w.Key, err),
		Hint:   fmt.Sprintf("bring back the root that it was sealed under (%s); if that is lost, begin again, which ends %s: %s", w.Setting, w.Signed, w.Anew),
	}
}

func (r *Ring[K]) explain(err error) error {
	if _, ours := errors.AsType[*refusal.Error](err); err == nil || ours {
		return err
	}
	return refusal.Unconfirmed(err, "look at the keys before trying again: "+r.o.Words.Show)
}
