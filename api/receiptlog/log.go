package receiptlog

import (
	"context"
	"crypto"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"portcullis/api/audit"
	"portcullis/api/receipt/translog"
	"portcullis/api/refusal"
	"portcullis/api/review"
	"portcullis/api/store"
)

// Signer returns the key that signs heads now. It makes none.
type Signer func(ctx context.Context) (crypto.Signer, error)

// Log is the transparency log of receipts. Methods are safe for concurrent use, and several Logs may share one store. Refusals are
// *refusal.Error.
type Log struct {
	store  *store.Store
	signer Signer

	mu   sync.Mutex
	seen *translog.Head // the longest that the store had; nil: none yet
}

// New returns a Log.
func New(s *store.Store, signer Signer) *Log { return &Log{store: s, signer: signer} }

// Append adds a receipt when tx commits, and returns which leaf it is. A receipt that is there already is not added again. The first
// one begins the log, of which the audit log gets an entry.
func (l *Log) Append(ctx context.Context, tx *store.Tx, digest translog.Digest, now time.Time) (int64, error) {
	seen := l.last()
	t, err := current(ctx, tx)
	if err != nil {
		return 0, err
	}
	if t == nil {
		if t, err = begin(ctx, tx, now); err != nil {
			return 0, err
		}
	}
	if _, err := t.root(ctx, tx); err != nil {
		return 0, damaged(err)
	}
	if err := l.compare(ctx, tx, t, seen); err != nil {
		return 0, err
	}
	there, err := places().Get(ctx, tx, digest.String())
	if err == nil {
		return there.Value.Index, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	index := t.Size
	if err := t.grow(ctx, tx, digest.Leaf()); err != nil {
		return 0, damaged(err)
	}
	return index, errors.Join(places().Put(tx, digest.String(), place{index}), trees().Put(tx, treeKey, *t))
}

// begin makes an empty tree with a name that no other one has.
func begin(ctx context.Context, tx *store.Tx, now time.Time) (*tree, error) {
	var id [16]byte
	rand.Read(id[:]) // it cannot fail
	t := &tree{Origin: "portcullis/receipts/" + hex.EncodeToString(id[:]), Begun: now.UTC().Round(0)}
	root, err := tlog.TreeHash(0, nil)
	if err != nil {
		return nil, err
	}
	t.Root = root[:]
	return t, audit.Append(ctx, tx, audit.Entry{
		Time: now, Actor: "service", Action: "receipt-log.begin", Object: "receipt-log/" + hex.EncodeToString(id[:]), Code: "ok",
		Detail: "receipts are logged under the name " + t.Origin,
	})
}

// current returns the state of the log, nil if none was begun. While a state that was rolled back is being cleared there is no telling.
func current(ctx context.Context, r store.Reader) (*tree, error) {
	mark, err := review.Current(ctx, r)
	if err != nil {
		return nil, err
	}
	if mark != nil && (mark.Clearing || mark.Incomplete) {
		return nil, refusal.New(refusal.Unavailable, "receipt_log_cleared", "try again in a minute", "the state was rolled back or restored, and its receipt log is being removed")
	}
	rec, err := trees().Get(ctx, r, treeKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return &rec.Value, err
}

// last returns the longest head that was seen; it must be called before the store is read that it is compared with.
func (l *Log) last() *translog.Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// note keeps a head that the store had.
func (l *Log) note(h *translog.Head) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil || l.seen.Origin != h.Origin || l.seen.Size < h.Size {
		l.seen = h
	}
}

// compare refuses a tree that does not continue what was seen before.
func (l *Log) compare(ctx context.Context, r store.Reader, t *tree, seen *translog.Head) error {
	if seen == nil || seen.Origin != t.Origin {
		return nil
	}
	if t.Size < seen.Size {
		return forked("the receipt log had %d receipts, and the store has %d", seen.Size, t.Size)
	}
	root, err := tlog.TreeHash(seen.Size, hashes(ctx, r))
	switch {
	case err != nil:
		return damaged(err)
	case root != seen.Root:
		return forked("the first %d receipts of the log are not those that they were", seen.Size)
	}
	return nil
}

func forked(format string, args ...any) error {
	return refusal.New(refusal.Conflict, "receipt_log_forked", "the state was rolled back: restore it, and see docs/understand/restore.md", format, args...)
}

func damaged(err error) error {
	if !errors.Is(err, errDamaged) {
		return err
	}
	return &refusal.Error{Code: "receipt_log_damaged", Status: refusal.Internal, Detail: err.Error(), Hint: "restore the state from a backup", Err: err}
}

// view is the log at one revision of the store.
type view struct {
	translog.Head
	snap store.Snapshot
}

func (v *view) hashes(ctx context.Context) tlog.HashReader { return hashes(ctx, v.snap) }

// view reads the log, and compares it with itself and with what was seen before.
func (l *Log) view(ctx context.Context) (*view, error) {
	seen := l.last()
	snap, err := l.store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	t, err := current(ctx, snap)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	if t == nil {
		return nil, refusal.New(refusal.NotFound, "receipt_log_empty", "portcullis receipt issue issues one", "no receipt was issued yet, so there is no receipt log")
	}
	v := &view{translog.Head{Origin: t.Origin, Size: t.Size}, snap}
	if v.Root, err = t.root(ctx, snap); err == nil {
		err = l.compare(ctx, snap, t, seen)
	}
	if err != nil {
		return nil, refusal.Explain(damaged(err))
	}
	head := v.Head
	l.note(&head)
	return v, nil
}

func (l *Log) sign(ctx context.Context, v *view) ([]byte, error) {
	key, err := l.signer(ctx)
	if err != nil {
		return nil, err
	}
	return v.Sign(key)
}

// Checkpoint returns the signed head of the log as it is.
func (l *Log) Checkpoint(ctx context.Context) ([]byte, error) {
	v, err := l.view(ctx)
	if err != nil {
		return nil, err
	}
	return l.sign(ctx, v)
}

// Proof returns the proof that the receipt with a digest, in hexadecimal, is in the log as it is.
func (l *Log) Proof(ctx context.Context, digest string) ([]byte, error) {
	sum, err := hex.DecodeString(digest)
	if err != nil || len(sum) != len(translog.Digest{}) || hex.EncodeToString(sum) != digest {
		return nil, refusal.New(refusal.Invalid, "receipt_digest", "sha256sum FILE prints it", "digest %.80q: want SHA-256 in lower-case hexadecimal", digest)
	}
	v, err := l.view(ctx)
	if err != nil {
		return nil, err
	}
	at, err := places().Get(ctx, v.snap, digest)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, refusal.New(refusal.NotFound, "receipt_unlogged", "a receipt that was issued before there was a log, or before a restore, is not in it",
			"no receipt with the digest %s is in the log", digest)
	case err != nil:
		return nil, refusal.Explain(err)
	}
	p := translog.Proof{Index: at.Value.Index}
	if p.Hashes, err = tlog.ProveRecord(v.Size, p.Index, v.hashes(ctx)); err == nil {
		err = tlog.CheckRecord(p.Hashes, v.Size, v.Root, p.Index, translog.Digest(sum).Leaf())
	}
	if err != nil {
		return nil, damaged(fmt.Errorf("%w: leaf %d of %d: %w", errDamaged, p.Index, v.Size, err))
	}
	if p.Head, err = l.sign(ctx, v); err != nil {
		return nil, err
	}
	return p.Marshal(), nil
}

// Consistency returns what proves that the log of one size continues that of a smaller size.
func (l *Log) Consistency(ctx context.Context, from, to int64) (tlog.TreeProof, error) {
	v, err := l.view(ctx)
	if err != nil {
		return nil, err
	}
	if from < 1 || to < from || to > v.Size {
		return nil, refusal.New(refusal.Invalid, "receipt_log_sizes", "take them from heads of this log", "from %d to %d: want 1 to %d, the lesser one first", from, to, v.Size)
	}
	out, err := tlog.ProveTree(to, from, v.hashes(ctx))
	if err != nil {
		return nil, refusal.Explain(damaged(err))
	}
	return out, nil
}

// Tile returns hashes of the tree: up to 256 of leaves at level 0, and of full tiles of the level below at others.
func (l *Log) Tile(ctx context.Context, level int, number int64) ([]byte, error) {
	v, err := l.view(ctx)
	if err != nil {
		return nil, err
	}
	if level < 0 || level >= levels || number < 0 || number > v.Size>>(height*level)>>height {
		return nil, noTile(level, number)
	}
	want := min(v.Size>>(height*level)-number<<height, width)
	if want == 0 {
		return nil, noTile(level, number)
	}
	data, err := readTile(ctx, v.snap, level, number, int(want))
	if err != nil {
		return nil, refusal.Explain(damaged(err))
	}
	return data[:want*tlog.HashSize], nil
}

func noTile(level int, number int64) error {
	return refusal.New(refusal.NotFound, "receipt_tile_unknown", "the tree head says how many receipts the log has", "the receipt log has no tile %d of level %d", number, level)
}
