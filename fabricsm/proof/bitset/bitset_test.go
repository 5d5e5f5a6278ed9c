package bitset_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"portcullis/fabricsm/proof/bitset"
)

// random returns a set below a size, and the same as a map.
func random(r *rand.Rand, size int) (bitset.Set, map[int32]bool) {
	if r.IntN(5) == 0 {
		return nil, map[int32]bool{}
	}
	s, m := bitset.Of(size), map[int32]bool{}
	for range r.IntN(size) {
		n := int32(r.IntN(size))
		s.Add(n)
		m[n] = true
	}
	return s, m
}

func check(t *testing.T, what string, got bitset.Set, want map[int32]bool) {
	t.Helper()
	list := slices.Sorted(maps.Keys(want))
	if all := slices.Collect(got.All()); !slices.Equal(all, list) || got.Count() != len(list) {
		t.Fatalf("%s: %v, %d numbers, want %v", what, all, got.Count(), list)
	}
	for n := range int32(400) {
		if got.Has(n) != want[n] {
			t.Fatalf("%s: it has %d: %t", what, n, got.Has(n))
		}
	}
}

// TestSets compares sets with maps.
func TestSets(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		x, y := 1+r.IntN(200), 1+r.IntN(200)
		a, am := random(r, x)
		b, bm := random(r, y)
		check(t, "a set", a, am)
		check(t, "of a list", bitset.Of(200, slices.Collect(maps.Keys(bm))...), bm)
		differ := map[int32]bool{}
		for n := range int32(200) {
			if am[n] != bm[n] {
				differ[n] = true
			}
		}
		check(t, "other", a.Other(b), differ)
		check(t, "replaced", a.Replace(true, max(x, y), nil, b), bm)
		var given []int32
		want := maps.Clone(am)
		for n := range int32(max(x, y)) {
			if r.IntN(3) > 0 {
				continue
			}
			given = append(given, n)
			if delete(want, n); bm[n] {
				want[n] = true
			}
		}
		was := slices.Clone(a)
		got := a.Replace(false, max(x, y), given, b)
		check(t, "some replaced", got, want)
		if !slices.Equal(a, was) {
			t.Fatal("the set itself was changed")
		}
		if all := slices.Collect(a.All()); len(all) > 1 {
			for n := range a.All() {
				if n != all[0] {
					t.Fatalf("the first number is %d, want %d", n, all[0])
				}
				break
			}
		}
	}
	if got := bitset.Of(9, 3).Replace(false, 9, []int32{3}, nil); got != nil {
		t.Errorf("an empty set is %v", got)
	}
}
