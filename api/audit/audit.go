// Package audit keeps an append-only chain of who changed what.
//
// Every entry carries the hash of the one before it, so that an entry that was
// altered, dropped or inserted afterwards breaks the chain from there on.
// Append takes part in the transaction of the change itself: there is no
// change without its entry and no entry without its change.
//
// The chain proves order and integrity against whoever edits the store later.
// It does not stop somebody who can rewrite all of it; for that the newest
// hash has to be kept elsewhere too.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"portcullis/api/store"
)

// Entry is one link of the chain.
type Entry struct {
	Seq    uint64    `json:"seq"` // from 1, without gaps
	Time   time.Time `json:"time"`
	Actor  string    `json:"actor"`            // who: a credential's name, "agent:HOST" once its TPM answered, "source:ADDRESS" before, or "service"
	Action string    `json:"action"`           // what, for example "host.assign"
	Object string    `json:"object"`           // of what, for example "host/compute-01"
	Code   string    `json:"code,omitempty"`   // reason code, for refusals and decisions
	Detail string    `json:"detail,omitempty"` // one sentence; never a secret
	Before string    `json:"before,omitempty"` // digest of the object's record before, empty: did not exist
	After  string    `json:"after,omitempty"`  // and after
	Prev   string    `json:"prev"`             // Hash of the entry before, empty in the first
	Hash   string    `json:"hash"`             // of all of the above
}

// Head is the end of the chain.
type Head struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

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
	// What JSON writes for other bytes is not what it writes for what it reads back of
	// that, so the entry would look altered.
	for _, text := range []*string{&e.Actor, &e.Action, &e.Object, &e.Code, &e.Detail} {
		*text = strings.ToValidUTF8(*text, "?")
	}
	e.Seq, e.Prev = h.Seq+1, h.Hash
	if e.Hash, err = e.digest(); err != nil {
		return err
	}
	return errors.Join(
		Entries().Put(tx, key(e.Seq), e),
		heads().Put(tx, headKey, Head{Seq: e.Seq, Hash: e.Hash}),
	)
}

// Latest gives the end of the chain; its Hash is what to keep elsewhere.
func Latest(ctx context.Context, r store.Reader) (Head, error) { return head(ctx, r) }

func head(ctx context.Context, r store.Reader) (Head, error) {
	rec, err := heads().Get(ctx, r, headKey)
	if errors.Is(err, store.ErrNotFound) {
		return Head{}, nil
	}
	return rec.Value, err
}

func key(seq uint64) string { return fmt.Sprintf("%020d", seq) }

// Digest gives the SHA-256 of a record for Before and After, "" for nil.
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

// digest hashes the entry's JSON without its Hash. Field order is that of the
// struct, so the bytes are always the same.
func (e Entry) digest() (string, error) {
	e.Hash = ""
	return Digest(e)
}

// Verify walks the whole chain as of one revision and gives its end. The
// error names the first entry that does not fit.
func Verify(ctx context.Context, s *store.Store) (Head, error) {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return Head{}, err
	}
	entries, _, err := Entries().List(ctx, snap, "")
	if err != nil {
		return Head{}, err
	}
	end, err := head(ctx, snap)
	if err != nil {
		return Head{}, err
	}
	got, err := walk(entries)
	if err == nil && got != end {
		err = fmt.Errorf("audit chain ends at entry %d with hash %.12s, its head says %d and %.12s: entries were removed", got.Seq, got.Hash, end.Seq, end.Hash)
	}
	return got, err
}

func walk(entries []store.Record[Entry]) (Head, error) {
	var h Head
	for _, r := range entries {
		e := r.Value
		if r.Key != key(h.Seq+1) || e.Seq != h.Seq+1 {
			return h, fmt.Errorf("audit entry %d is missing: found %s after %d", h.Seq+1, r.Key, h.Seq)
		}
		if e.Prev != h.Hash {
			return h, fmt.Errorf("audit entry %d does not follow entry %d: the chain was cut there", e.Seq, h.Seq)
		}
		sum, err := e.digest()
		if err != nil {
			return h, err
		}
		if sum != e.Hash {
			return h, fmt.Errorf("audit entry %d was altered: its hash is %.12s, its content gives %.12s", e.Seq, e.Hash, sum)
		}
		h = Head{Seq: e.Seq, Hash: e.Hash}
	}
	return h, nil
}
