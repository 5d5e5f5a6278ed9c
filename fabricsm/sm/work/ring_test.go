package work

import (
	"math/rand/v2"
	"testing"
)

// TestRingIsAQueue: whatever is put in comes out in the same order, over chunks
// that come and go.
func TestRingIsAQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var r Ring
	in, out := int32(0), int32(0)
	for round := range 400 {
		for range random.IntN(1 + 10*(200-min(round, 200))) {
			r.Push(Ref{Info, in})
			in++
		}
		for range random.IntN(2000) {
			x, ok := r.Pop()
			if ok != (out < in) || ok && x != (Ref{Info, out}) {
				t.Fatalf("round %d: took %v, %v; want %d of %d", round, x, ok, out, in)
			}
			if ok {
				out++
			}
		}
		if r.Len() != int(in-out) {
			t.Fatalf("round %d: length %d, want %d", round, r.Len(), in-out)
		}
	}
	if in < 10_000 || r.Len() != 0 {
		t.Errorf("%d were put in and %d are left; want many and none", in, r.Len())
	}
}

// TestRingKeepsItsMemory: one that is filled and emptied over and over allocates
// nothing.
func TestRingKeepsItsMemory(t *testing.T) {
	var r Ring
	turn := func() {
		for i := range int32(300) {
			r.Push(Ref{Set, i})
		}
		for range 299 {
			r.Pop()
		}
	}
	turn()
	turn()
	for range 200 {
		r.Pop()
	}
	if n := testing.AllocsPerRun(100, func() { r.Push(Ref{}); r.Pop() }); n != 0 {
		t.Errorf("%v allocations for one in and out, want none", n)
	}
}
