package blocks

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSet compares a set with a map.
func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s, other Set
		is := make(map[int]bool)
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			b := rapid.IntRange(0, 200).Draw(t, "block")
			if is[b] = rapid.Bool().Draw(t, "add"); is[b] {
				s.Add(b)
			} else {
				s.Remove(b)
				other.Add(b)
			}
		}
		first, last, n := -1, -1, 0
		for b := range 201 {
			if s.Has(b) != is[b] {
				t.Fatalf("has %d: %v, want %v", b, s.Has(b), is[b])
			}
			if is[b] {
				if n++; first < 0 && !other.Has(b) {
					first = b
				}
				last = b
			}
		}
		if s.First(other) != first || s.Last() != last || s.Len() != n || s.IsEmpty() != (n == 0) {
			t.Fatalf("first %d, last %d, %d members; want %d, %d, %d", s.First(other), s.Last(), s.Len(), first, last, n)
		}
	})
}

// TestExcuses checks that a block which is not kept is excused once in a row.
func TestExcuses(t *testing.T) {
	var s Set
	for i, want := range []struct{ kept, excused bool }{{false, true}, {false, false}, {false, true}, {true, true}, {false, true}, {false, false}} {
		if got := s.Excuses(3, want.kept); got != want.excused {
			t.Errorf("%d: kept %v, excused %v, want %v", i, want.kept, got, want.excused)
		}
	}
}
