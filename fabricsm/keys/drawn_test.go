package keys

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestDrawn: keys come in the order in which they were drawn, no two alike, and go on after a Fill; an empty source is
// reported.
func TestDrawn(t *testing.T) {
	draw := func() (*Drawn, []Key) {
		d, err := NewDrawn(rand.NewChaCha8([32]byte{1}), 4)
		if err != nil {
			t.Fatal(err)
		}
		var got []Key
		for i := range 10 {
			if i%4 == 3 {
				if err := d.Fill(); err != nil {
					t.Fatal(err)
				}
			}
			h, err := d.Make(MKey, 1, Epoch(i+1), time.Unix(1, 0))
			if err != nil || h.Origin != OriginRandom || h.Epoch != Epoch(i+1) || Check(h.Key) != nil {
				t.Fatalf("key %d: %+v, %v", i, h, err)
			}
			got = append(got, h.Key)
		}
		return d, got
	}
	d, first := draw()
	_, again := draw()
	seen := map[Key]bool{}
	for i, k := range first {
		if seen[k] || again[i] != k {
			t.Errorf("key %d came before: %v, is the same in another run: %v", i, seen[k], again[i] == k)
		}
		seen[k] = true
	}
	for range 4 {
		if _, err := d.Make(MKey, 1, 1, time.Time{}); err != nil {
			return
		}
	}
	t.Error("a reserve of 4 gave more, and nobody filled it")
}
