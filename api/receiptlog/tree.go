package receiptlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"portcullis/api/store"
)

const (
	// height is the height of a tile, as C2SP tlog-tiles has it.
	height = 8
	// width is how many hashes a full tile has.
	width = 1 << height
	// levels bounds the levels of tiles: 2^40 receipts.
	levels = 5
)

// tree is the state of the log.
type tree struct {
	Origin string    `json:"origin"`
	Begun  time.Time `json:"begun"`
	Size   int64     `json:"size"`
	Root   []byte    `json:"root"` // follows from the tiles, and is compared with them
}

// tile has up to 256 hashes that stand side by side: of leaves at level 0, and of whole tiles below it at others.
type tile struct {
	Hashes []byte `json:"hashes"`
}

// place says where the leaf of a receipt is.
type place struct {
	Index int64 `json:"index"`
}

// treeKey is the key of the only record of trees.
const treeKey = "tree"

func trees() store.Collection[tree]   { return store.NewCollection[tree]("receipt-log/tree", 1) }
func tiles() store.Collection[tile]   { return store.NewCollection[tile]("receipt-log/tiles", 1) }
func places() store.Collection[place] { return store.NewCollection[place]("receipt-log/places", 1) }

func tileKey(level int, number int64) string { return fmt.Sprintf("%d/%015d", level, number) }

// errDamaged says that the records of the log contradict each other.
var errDamaged = errors.New("the records of the receipt log contradict each other")

// readTile returns a tile; the error is errDamaged if there is none, or not as many hashes as it must have.
func readTile(ctx context.Context, r store.Reader, level int, number int64, want int) ([]byte, error) {
	rec, err := tiles().Get(ctx, r, tileKey(level, number))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("%w: tile %s is missing", errDamaged, tileKey(level, number))
	case err != nil:
		return nil, err
	case len(rec.Value.Hashes) < want*tlog.HashSize || len(rec.Value.Hashes) > width*tlog.HashSize:
		return nil, fmt.Errorf("%w: tile %s has %d bytes, want %d hashes", errDamaged, tileKey(level, number), len(rec.Value.Hashes), want)
	}
	return rec.Value.Hashes, nil
}

// hashes reads the hashes of a tree out of its tiles.
func hashes(ctx context.Context, r store.Reader) tlog.HashReader {
	known := map[string][]byte{}
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			t := tlog.TileForIndex(height, index)
			key := tileKey(t.L, t.N)
			data := known[key]
			if len(data) < t.W*tlog.HashSize {
				var err error
				if data, err = readTile(ctx, r, t.L, t.N, t.W); err != nil {
					return nil, err
				}
				known[key] = data
			}
			var err error
			if out[i], err = tlog.HashFromTile(t, data, index); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

// root returns the hash of the tree; the error is errDamaged if it is not the one that is recorded.
func (t *tree) root(ctx context.Context, r store.Reader) (tlog.Hash, error) {
	h, err := tlog.TreeHash(t.Size, hashes(ctx, r))
	if err == nil && !bytes.Equal(h[:], t.Root) {
		err = fmt.Errorf("%w: the hashes of %d receipts are not those that the log ends with", errDamaged, t.Size)
	}
	return h, err
}

// grow adds a leaf to the tree when tx commits.
func (t *tree) grow(ctx context.Context, tx *store.Tx, leaf tlog.Hash) error {
	h, n := leaf, t.Size
	for level := range levels {
		number, at := n>>height, int(n&(width-1))
		var data []byte
		if at > 0 {
			var err error
			if data, err = readTile(ctx, tx, level, number, at); err != nil {
				return err
			}
			if len(data) != at*tlog.HashSize {
				return fmt.Errorf("%w: tile %s has more than %d hashes", errDamaged, tileKey(level, number), at)
			}
		}
		data = append(data, h[:]...)
		if err := tiles().Put(tx, tileKey(level, number), tile{data}); err != nil {
			return err
		}
		if at < width-1 {
			break
		}
		if level == levels-1 {
			return errors.New("the receipt log is full")
		}
		h, n = rootOf(data), number
	}
	t.Size++
	root, err := tlog.TreeHash(t.Size, hashes(ctx, tx))
	t.Root = root[:]
	return err
}

// rootOf returns the hash of a full tile.
func rootOf(data []byte) tlog.Hash {
	if len(data) == tlog.HashSize {
		return tlog.Hash(data)
	}
	half := len(data) / 2
	return tlog.NodeHash(rootOf(data[:half]), rootOf(data[half:]))
}
