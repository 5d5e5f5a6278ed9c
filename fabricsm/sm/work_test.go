package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// works lists what facts say of work, in order.
func works(facts []sm.Fact) (out []string) {
	for _, f := range facts {
		if f.Kind == sm.FactWork {
			out = append(out, f.Mark)
		}
	}
	return out
}

// TestWorkIsSaid: the step that sends the first Set saves that a master writes. Once the fabric is settled, it is saved
// that the work has ended, and nothing is saved in between. After a crash the number goes on.
func TestWorkIsSaid(t *testing.T) {
	l := tree(t, 16, 8)
	hs := hosts(l)
	e := newEnv(t, l, sim.Options{}, sm.Config{Followed: true}, 1)
	first := -1
	e.logSend = func(r *sm.Request) {
		if r.MAD.Method() == mad.MethodSet && first < 0 {
			first = len(works(e.facts))
		}
	}
	e.start()
	e.mustSettle(10 * time.Second)
	if got, want := works(e.facts), []string{"writes 1", "settled 1"}; !slices.Equal(got, want) || first != 1 {
		t.Fatalf("saved %q, %d of it with the first Set; want %q, the first one with it", got, first, want)
	}
	e.run(time.Minute)
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{hs[3].grant(0x8001)}})
	e.mustSettle(10 * time.Second)
	e.start()
	e.mustSettle(10 * time.Second)
	e.want(sm.Intent{Revision: 2})
	e.mustSettle(10 * time.Second)
	want := []string{"writes 1", "settled 1", "writes 2", "settled 2", "writes 3", "settled 3"}
	if got := works(e.facts); !slices.Equal(slices.Compact(got), want) {
		t.Errorf("saved %q, want %q", got, want)
	}

	alone := newEnv(t, l, sim.Options{}, sm.Config{}, 1)
	alone.start()
	alone.mustSettle(10 * time.Second)
	if got := works(alone.facts); got != nil {
		t.Errorf("an instance that none follows saved %q", got)
	}
}

// TestSameGround: facts are the same ground only if each fact of the core is there unchanged,
// no other is, and the last work has ended.
func TestSameGround(t *testing.T) {
	lid := sm.Fact{Kind: sm.FactLID, GUID: 1, LID: 5}
	key := sm.Fact{Kind: sm.KeyFact(0), GUID: 1, Sealed: "a"}
	group := sm.Fact{Kind: sm.FactSAGroup, Name: "g", Body: "1"}
	settled := sm.Fact{Kind: sm.FactWork, Mark: "settled 4"}
	facts := func(f ...sm.Fact) []sm.Fact { return f }
	other := lid
	other.LID = 6
	resealed := key
	resealed.Sealed = "b"
	for _, tt := range []struct {
		name           string
		started, found []sm.Fact
		want           bool
	}{
		{"the same", facts(key, lid, settled), facts(key, lid, settled), true},
		{"a host registered", facts(lid, settled), facts(lid, group, settled), true},
		{"a host left", facts(lid, group, settled), facts(lid, settled), true},
		{"another LID", facts(lid, settled), facts(other, settled), false},
		{"another key", facts(key, settled), facts(resealed, settled), false},
		{"one more", facts(settled), facts(lid, settled), false},
		{"one less", facts(lid, settled), facts(settled), false},
		{"one less at the end", facts(settled, lid), facts(settled), false},
		{"worked since", facts(settled), facts(sm.Fact{Kind: sm.FactWork, Mark: "settled 5"}), false},
		{"at work", facts(sm.Fact{Kind: sm.FactWork, Mark: "writes 4"}), facts(sm.Fact{Kind: sm.FactWork, Mark: "writes 4"}), false},
		{"not legible", facts(sm.Fact{Kind: sm.FactWork, Mark: "settled x"}), facts(sm.Fact{Kind: sm.FactWork, Mark: "settled x"}), false},
		{"nothing is said of work", facts(lid), facts(lid), false},
		{"nothing", nil, nil, false},
	} {
		if got := sm.SameGround(tt.started, tt.found); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
