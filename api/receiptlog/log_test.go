package receiptlog

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"portcullis/api/receipt"
	"portcullis/api/receipt/translog"
	"portcullis/api/refusal"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
)

// site is one store, with as many logs over it as a test wants.
type site struct {
	t     *testing.T
	store *store.Store
	key   ed25519.PrivateKey
	keys  []receipt.PublicKey
}

func newSite(t *testing.T, backend store.Backend) *site {
	t.Helper()
	s := &site{t: t, store: store.New(backend, ""), key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))}
	k, err := receipt.NewPublicKey(s.key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	s.keys = []receipt.PublicKey{k}
	return s
}

func (s *site) log() *Log {
	return New(s.store.Twin(), func(context.Context) (crypto.Signer, error) { return s.key, nil })
}

func text(i int) []byte { return fmt.Appendf(nil, "receipt %d\n", i) }

func appendTo(ctx context.Context, l *Log, data []byte) (index int64, err error) {
	_, err = l.store.Update(ctx, func(tx *store.Tx) error {
		index, err = l.Append(ctx, tx, translog.DigestOf(data), time.Unix(1e9, 0))
		return err
	})
	return index, err
}

func (s *site) add(l *Log, data []byte) int64 {
	s.t.Helper()
	index, err := appendTo(s.t.Context(), l, data)
	if err != nil {
		s.t.Fatal(err)
	}
	return index
}

func (s *site) head(l *Log) *translog.Head {
	s.t.Helper()
	data, err := l.Checkpoint(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := translog.OpenHead(data, s.keys)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func code(err error) string {
	if e, ok := errors.AsType[*refusal.Error](err); ok && e.Hint != "" {
		return e.Code
	}
	return ""
}

// TestGrows: over two levels of tiles, every receipt is proven to be in the log, every head continues those before, and the tiles
// are those of the tree.
func TestGrows(t *testing.T) {
	t.Parallel()
	s := newSite(t, memory.New(time.Now))
	l := s.log()
	if _, err := l.Checkpoint(t.Context()); code(err) != "receipt_log_empty" {
		t.Errorf("before the first receipt: %v", err)
	}
	const n = 2*width + 3
	var heads []*translog.Head
	for i := range n {
		if at := s.add(l, text(i)); at != int64(i) {
			t.Fatalf("receipt %d is leaf %d", i, at)
		}
		if i < 4 || i > width-3 && i < width+3 || i == n-1 {
			heads = append(heads, s.head(l))
		}
	}
	if at := s.add(l, text(5)); at != 5 || s.head(l).Size != n {
		t.Errorf("once more it is leaf %d of %d", at, s.head(l).Size)
	}
	for i := 0; i < n; i += 17 {
		proof, err := l.Proof(t.Context(), translog.DigestOf(text(i)).String())
		if err != nil {
			t.Fatal(err)
		}
		if at, err := translog.Verify(text(i), proof, s.keys); err != nil || at.Index != int64(i) || at.Head != *heads[len(heads)-1] {
			t.Errorf("receipt %d: %+v, %v", i, at, err)
		}
	}
	for i, later := range heads {
		for _, earlier := range heads[:i] {
			hashes, err := l.Consistency(t.Context(), earlier.Size, later.Size)
			if err != nil {
				t.Fatal(err)
			}
			if err := translog.Continues(later, earlier, hashes); err != nil {
				t.Error(err)
			}
		}
	}
	var leaves []byte
	for i := range n {
		h := translog.DigestOf(text(i)).Leaf()
		leaves = append(leaves, h[:]...)
	}
	for number, want := range [][]byte{leaves[:width*tlog.HashSize], leaves[width*tlog.HashSize : 2*width*tlog.HashSize], leaves[2*width*tlog.HashSize:]} {
		if got, err := l.Tile(t.Context(), 0, int64(number)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("tile %d: %d bytes, %v", number, len(got), err)
		}
	}
	if got, err := l.Tile(t.Context(), 1, 0); err != nil || len(got) != 2*tlog.HashSize {
		t.Errorf("of level 1: %d bytes, %v", len(got), err)
	}
	for _, no := range [][2]int64{{0, 3}, {0, -1}, {1, 1}, {2, 0}, {-1, 0}, {5, 0}, {0, 1 << 62}} {
		if _, err := l.Tile(t.Context(), int(no[0]), no[1]); code(err) != "receipt_tile_unknown" {
			t.Errorf("tile %v: %v", no, err)
		}
	}
	for _, no := range [][2]int64{{0, 3}, {3, 2}, {1, n + 1}, {-1, 1}} {
		if _, err := l.Consistency(t.Context(), no[0], no[1]); code(err) != "receipt_log_sizes" {
			t.Errorf("sizes %v: %v", no, err)
		}
	}
	for digest, want := range map[string]string{translog.DigestOf([]byte("no receipt\n")).String(): "receipt_unlogged", "": "receipt_digest", "zz": "receipt_digest"} {
		if _, err := l.Proof(t.Context(), digest); code(err) != want {
			t.Errorf("digest %q: %v", digest, err)
		}
	}
}

// TestInstances: instances that share a store and append at once have one log, in which each receipt is once.
func TestInstances(t *testing.T) {
	t.Parallel()
	s := newSite(t, memory.New(time.Now))
	const instances, each = 3, 12
	var wg sync.WaitGroup
	for i := range instances {
		l := s.log()
		wg.Go(func() {
			for j := range each {
				if _, err := appendTo(t.Context(), l, text(i*each+j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	l := s.log()
	taken := map[int64]bool{}
	for i := range instances * each {
		proof, err := l.Proof(t.Context(), translog.DigestOf(text(i)).String())
		if err != nil {
			t.Fatal(err)
		}
		at, err := translog.Verify(text(i), proof, s.keys)
		if err != nil || taken[at.Index] || at.Head.Size != instances*each {
			t.Fatalf("receipt %d: %+v, %v", i, at, err)
		}
		taken[at.Index] = true
	}
}

// TestCrash: whether or not the commit landed that was not confirmed, what is signed next is stored, and continues what was signed.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, moment := range []storetest.Moment{storetest.Before, storetest.After} {
		b := &storetest.Failing{Backend: memory.New(time.Now)}
		s := newSite(t, b)
		l := s.log()
		for i := range 3 {
			s.add(l, text(i))
		}
		before := s.head(l)
		b.FailAt(1, moment)
		if _, err := appendTo(t.Context(), l, text(3)); err == nil {
			t.Error("the store failed, and the receipt was given out")
		}
		b.Heal()
		for _, l := range []*Log{l, s.log()} {
			h := s.head(l)
			hashes, err := l.Consistency(t.Context(), before.Size, h.Size)
			if err != nil {
				t.Fatal(err)
			}
			if err := translog.Continues(h, before, hashes); err != nil {
				t.Error(err)
			}
		}
		if at := s.add(l, text(3)); at != 3 {
			t.Errorf("asked for again it is leaf %d", at)
		}
	}
}

// put replaces the records of the log by those that it had.
func (s *site) put(items []store.Item) {
	s.t.Helper()
	now := s.items()
	keys := make([]string, len(now))
	for i := range now {
		keys[i] = now[i].Key
	}
	if err := errors.Join(s.store.Remove(s.t.Context(), keys), s.store.Load(s.t.Context(), items)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) items() []store.Item {
	s.t.Helper()
	snap, err := s.store.Snapshot(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	items, err := snap.Items(s.t.Context(), "", 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	return items
}

// TestRolledBack: an instance that saw a longer log, or another one, neither signs nor appends.
func TestRolledBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, memory.New(time.Now))
	l := s.log()
	for i := range 3 {
		s.add(l, text(i))
	}
	old := s.items()
	s.add(l, text(3))
	s.head(l)
	s.put(old)
	refused := func(what string) {
		t.Helper()
		_, err := l.Checkpoint(t.Context())
		_, proof := l.Proof(t.Context(), translog.DigestOf(text(0)).String())
		_, more := appendTo(t.Context(), l, text(9))
		if code(err) != "receipt_log_forked" || code(proof) != "receipt_log_forked" || code(more) != "receipt_log_forked" {
			t.Errorf("%s: %v, %v, %v", what, err, proof, more)
		}
	}
	refused("it shrank")
	other := s.log() // that did not see it
	s.add(other, text(4))
	refused("another receipt has the place of one")
	s.add(other, text(5))
	refused("and the log is longer")

	// What is found to be rolled back is removed, and the next log has another name.
	name := s.head(other).Origin
	mark := func(clearing bool) {
		t.Helper()
		if _, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
			return review.Marks().Put(tx, review.Key, review.Mark{Clearing: clearing})
		}); err != nil {
			t.Fatal(err)
		}
	}
	mark(true)
	_, err := appendTo(t.Context(), other, text(6))
	if _, signed := other.Checkpoint(t.Context()); code(err) != "receipt_log_cleared" || code(signed) != "receipt_log_cleared" {
		t.Errorf("while it is cleared: %v, %v", err, signed)
	}
	var keys []string
	for _, i := range s.items() {
		if bytes.HasPrefix([]byte(i.Key), []byte(review.ReceiptLog)) {
			keys = append(keys, i.Key)
		}
	}
	if err := s.store.Remove(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	mark(false)
	s.add(l, text(7))
	if h := s.head(l); h.Origin == name || h.Size != 1 || len(keys) < 5 {
		t.Errorf("after a roll-back: %+v, and %d records were removed", h, len(keys))
	}
}

// TestDamaged: of records that contradict each other nothing is signed.
func TestDamaged(t *testing.T) {
	t.Parallel()
	s := newSite(t, memory.New(time.Now))
	l := s.log()
	for i := range 3 {
		s.add(l, text(i))
	}
	good := s.items()
	for name, change := range map[string]func(tx *store.Tx) error{
		"a tile is gone":   func(tx *store.Tx) error { tiles().Delete(tx, tileKey(0, 0)); return nil },
		"a tile is short":  func(tx *store.Tx) error { return tiles().Put(tx, tileKey(0, 0), tile{make([]byte, 2*tlog.HashSize)}) },
		"a tile is other":  func(tx *store.Tx) error { return tiles().Put(tx, tileKey(0, 0), tile{make([]byte, 3*tlog.HashSize)}) },
		"a tile is longer": func(tx *store.Tx) error { return tiles().Put(tx, tileKey(0, 0), tile{make([]byte, 4*tlog.HashSize)}) },
	} {
		if _, err := s.store.Update(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		fresh := s.log()
		_, err := fresh.Checkpoint(t.Context())
		_, more := appendTo(t.Context(), fresh, text(9))
		if code(err) != "receipt_log_damaged" || code(more) != "receipt_log_damaged" {
			t.Errorf("%s: %v, %v", name, err, more)
		}
		s.put(good)
	}
	s.head(s.log())
}
