package members

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
)

// TestTakeoverIsOnce: a takeover that an intent has ended does not begin again, and one that no intent opened keeps nothing.
func TestTakeoverIsOnce(t *testing.T) {
	at := ib.Place{Switch: 0x10, Port: 1}
	inherits := func(r *Register) bool { return len(r.Inherit(0x21, at, []ib.PKey{0x8001})) > 0 }
	if r := New(); inherits(r) || r.TakesOver() || r.Keeps() {
		t.Error("a takeover is open without an intent")
	}
	r := New()
	r.Take(&Intent{Takeover: Takeover{Open: true}})
	if !inherits(r) || !r.Keeps() || r.Reviews() {
		t.Error("nothing is kept")
	}
	r.Take(&Intent{})
	if !r.Of(0x21)[0].Leaving {
		t.Error("the end of the takeover takes nothing away")
	}
	r.Take(&Intent{Takeover: Takeover{Open: true}})
	if r.TakesOver() || !r.Of(0x21)[0].Leaving || len(r.Inherit(0x22, ib.Place{Switch: 0x10, Port: 2}, []ib.PKey{0x8001})) > 0 {
		t.Error("it began again")
	}
}

// TestInherit: each P_Key that is no tenant's, or is excepted, is left out. Another place that shows a GUID takes nothing from it.
func TestInherit(t *testing.T) {
	r := New()
	r.Take(&Intent{Takeover: Takeover{Open: true, Except: []ib.PKey{0x8003}}})
	here, there := ib.Place{Switch: 0x10, Port: 1}, ib.Place{Switch: 0x10, Port: 2}
	if got, want := r.Inherit(0x21, there, []ib.PKey{0x8001}), []ib.PKey{0x8001}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if got, want := r.Inherit(0x21, here, []ib.PKey{0x7fff, 0x8001, 0xffff, 0x0002, 0x0003, 0x8000}), []ib.PKey{0x8001, 0x0002}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	r.Take(&Intent{Takeover: Takeover{Open: true, Except: []ib.PKey{0x0001}}})
	for _, ms := range r.Of(0x21) {
		if ms.Leaving != (ms.PKey.Base() == 1) {
			t.Errorf("%v leaves: %v", ms.PKey, ms.Leaving)
		}
	}
}
