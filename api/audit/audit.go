// Package audit keeps an append-only chain of changes and their actors.
//
// Every entry carries the hash of the one before it, so that an entry that was altered, dropped or inserted afterwards
// breaks the chain from there on. Append takes part in the transaction of the change itself: there is no change without its
// entry and no entry without its change.
//
// The chain proves order and integrity against an attacker who edits the store later. It does not stop an attacker who can
// rewrite all of it, or put an older state back; for that package anchor keeps the newest hash elsewhere, too.
package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"portcullis/api/audit/chain"
	"portcullis/api/caller"
	"portcullis/api/reason"
	"portcullis/api/store"
)

// Entry is one link of the chain.
type Entry = chain.Entry

// Head is the end of the chain.
type Head = chain.Head

// Service is the actor of what the service does by itself.
const Service = "service"

const headKey = "head"

// Entries is the chain in the store, by 20-digit sequence number.
func Entries() store.Collection[Entry] { return store.NewCollection[Entry]("audit/entries", 1) }

func heads() store.Collection[Head] { return store.NewCollection[Head]("audit/head", 1) }

// Append puts e at the end of the chain when tx commits. Seq, Prev and Hash
// are filled in; Time, Actor, Action and Object must be set. Several entries
// may be appended in one transaction.
func Append(ctx context.Context, tx *store.Tx, e Entry) error {
	if e.Time.IsZero() || e.Actor == "" || e.Action == "" || e.Object == "" {
		return fmt.Errorf("audit entry without time, actor, action or object: %+v", e)
	}
	h, err := head(ctx, tx)
	if err != nil {
		return err
	}
	e.Time = e.Time.UTC().Round(0)
	// What the service does by itself in the course of a request has causes, and the reason is that of the caller.
	if e.Reason == "" && e.Actor != Service {
		e.Reason = reason.Of(ctx)
	}
	from := caller.Of(ctx)
	e.Request, e.Source = cmp.Or(e.Request, from.ID), cmp.Or(e.Source, from.Source)
	// JSON replaces other bytes when it writes them, and the replacement reads back differently, so the entry would look
	// altered.
	for _, text := range []*string{&e.Actor, &e.Action, &e.Object, &e.Code, &e.Detail, &e.Reason, &e.Request, &e.Source} {
		*text = strings.ToValidUTF8(*text, "?")
	}
	e.Seq, e.Prev = h.Seq+1, h.Hash
	if e.Hash, err = e.Sum(); err != nil {
		return err
	}
	return errors.Join(
		Entries().Put(tx, key(e.Seq), e),
		heads().Put(tx, headKey, h.After(&e)),
	)
}

// Latest returns the end of the chain; its Hash is what to keep elsewhere.
func Latest(ctx context.Context, r store.Reader) (Head, error) { return head(ctx, r) }

// Origin returns the hash of the first entry, which says which installation a log is of; empty: there is none.
func Origin(ctx context.Context, r store.Reader) (string, error) {
	rec, err := Entries().Get(ctx, r, key(1))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return rec.Value.Hash, err
}

// Get returns the entry with a number. The error is store.ErrNotFound if the log has none.
func Get(ctx context.Context, r store.Reader, seq uint64) (*Entry, error) {
	rec, err := Entries().Get(ctx, r, key(seq))
	if err != nil {
		return nil, err
	}
	return &rec.Value, nil
}

func head(ctx context.Context, r store.Reader) (Head, error) {
	rec, err := heads().Get(ctx, r, headKey)
	if errors.Is(err, store.ErrNotFound) {
		return Head{}, nil
	}
	return rec.Value, err
}

func key(seq uint64) string { return fmt.Sprintf("%020d", seq) }

// Digest returns the SHA-256 of a record for Before and After, "" for nil.
func Digest(record any) (string, error) {
	if record == nil {
		return "", nil
	}
	b, err := json.Marshal(record)
	if err != nil {
		return "", fmt.Errorf("digest of %T: %w", record, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
