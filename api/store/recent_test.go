package store

import (
	"fmt"
	"strings"
	"testing"
)

// What is kept is bounded, and what was used last stays.
func TestRecentIsBounded(t *testing.T) {
	t.Parallel()
	r := newRecent(10_000)
	value := []byte(strings.Repeat("x", 900))
	r.keep("always", seen{Item{Key: "always", Value: value}, true})
	for i := range 1000 {
		key := fmt.Sprint(i)
		r.keep(key, seen{Item{Key: key, Value: value}, true})
		if x, ok := r.get(key); !ok || x.item.Key != key {
			t.Fatalf("%s is %+v, %t at once", key, x, ok)
		}
		if x, ok := r.get("always"); !ok || !x.found {
			t.Fatalf("what is used all the time was forgotten after %d others", i)
		}
		sum := 0
		for _, m := range []map[string]seen{r.now, r.old} {
			for key, x := range m {
				sum += size(key, x)
			}
		}
		if sum > 2*10_000 || r.bytes > 10_000 {
			t.Fatalf("%d bytes are kept, %d counted of the newer half", sum, r.bytes)
		}
	}
	if _, ok := r.get("0"); ok {
		t.Error("the first is kept still")
	}
	for range 5 {
		r.forget("always")
		r.keep("always", seen{Item{Value: value}, true})
		r.keep("always", seen{Item{}, false})
	}
	sum := 0
	for key, x := range r.now {
		sum += size(key, x)
	}
	if sum != r.bytes {
		t.Errorf("%d bytes are counted, %d are kept", r.bytes, sum)
	}
	huge := []byte(strings.Repeat("x", 20_000))
	r.keep("huge", seen{Item{Value: huge}, true})
	r.keep("next", seen{})
	if _, ok := r.get("huge"); !ok && len(r.old) > 0 {
		t.Error("a record that is larger than the bound was not kept at all")
	}
	r.keep("after", seen{Item{Value: huge}, true})
	if _, ok := r.now["huge"]; ok {
		t.Error("two records that are larger than the bound are kept as the newer half")
	}
}
