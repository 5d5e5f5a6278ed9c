package registry_test

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"portcullis/fabricsm/sa/registry"
)

// TestMapIsAMap does the same operations with a Map and with a Go map, and checks that older snapshots do not change.
func TestMapIsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m, want := registry.NewMap[int, int](cmp.Compare[int]), map[int]int{}
	old, oldWant := m, map[int]int{}
	for step := range 20000 {
		k := rng.IntN(500)
		if rng.IntN(2) == 0 {
			m, want[k] = m.With(k, step), step
		} else {
			m = m.Without(k)
			delete(want, k)
		}
		if step%1000 == 0 {
			same(t, old, oldWant)
			old, oldWant = m, maps.Clone(want)
		}
	}
	same(t, m, want)
}

func same(t *testing.T, m registry.Map[int, int], want map[int]int) {
	t.Helper()
	if m.Len() != len(want) {
		t.Fatalf("%d keys, want %d", m.Len(), len(want))
	}
	keys := slices.Sorted(maps.Keys(want))
	k, v, ok := m.First()
	for _, key := range keys {
		if got, has := m.Get(key); !ok || !has || k != key || v != want[key] || got != v {
			t.Fatalf("key %d has %d, %v; in order %d has %d; want %d", key, got, has, k, v, want[key])
		}
		k, v, ok = m.After(k)
	}
	if ok {
		t.Fatalf("%d after the last", k)
	}
	for _, k := range append(keys, -1) {
		n := 0
		for above := range m.Above(k) {
			if above <= k {
				t.Fatalf("%d is visited as one above %d", above, k)
			}
			n++
		}
		if i, found := slices.BinarySearch(keys, k); found && n != len(keys)-i-1 || !found && n != len(keys) {
			t.Fatalf("%d of %d keys are above %d", n, len(keys), k)
		}
	}
	for above := range m.Above(250) {
		if i, _ := slices.BinarySearch(keys, 251); above != keys[i] {
			t.Fatalf("%d comes first above 250", above)
		}
		break
	}
	i := 0
	m.All(func(k, _ int) bool { i++; return k == keys[i-1] })
	if i != len(keys) {
		t.Fatalf("%d of %d visited in order", i, len(keys))
	}
}

// TestMapStaysFlat: ascending keys, which turn a plain tree into a list, cost as little as any others. The allocations for
// one more key show the depth.
func TestMapStaysFlat(t *testing.T) {
	m := registry.NewMap[int, int](cmp.Compare[int])
	for i := range 1 << 16 {
		m = m.With(i, i)
	}
	if n := testing.AllocsPerRun(100, func() { m.With(1<<17, 0) }); n > 40 {
		t.Errorf("one more key among 65536 allocates %v branches", n)
	}
	if n := testing.AllocsPerRun(100, func() { m.Get(77); m.After(77) }); n != 0 {
		t.Errorf("looking allocates %v times", n)
	}
}

// TestGetTakesAsLong: finding a key takes as many looks as not finding one, at every position.
func TestGetTakesAsLong(t *testing.T) {
	looks := 0
	m := registry.NewMap[int, bool](func(a, b int) int {
		looks++
		return cmp.Compare(a, b)
	})
	for k := range 1000 {
		m = m.With(2*k, true)
	}
	least := [2]int{1 << 30, 1 << 30} // of keys that are not there, and of those that are
	for k := range 2000 {
		looks = 0
		_, ok := m.Get(k)
		if ok != (k%2 == 0) {
			t.Fatalf("key %d is there: %v", k, ok)
		}
		of := 0
		if ok {
			of = 1
		}
		least[of] = min(least[of], looks)
	}
	if least[0] != least[1] || least[0] < 8 {
		t.Errorf("at least %d looks for keys that are not there, %d for those that are", least[0], least[1])
	}
}
