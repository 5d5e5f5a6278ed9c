package lifecycle

import "testing"

// TestEveryOrder checks what must hold of each command, in all facts that any order of commands leads to.
func TestEveryOrder(t *testing.T) {
	n := reachable(func(before Facts, a Asked, after Facts, refused Guard) {
		s := Of(after)
		for what, wrong := range map[string]bool{
			"a command that is refused changed something":                  refused != "" && after != before,
			"a command for another assignment was carried out":             a.Late && rules[a.Command].Epoch && refused != Changed,
			"a host that is in no cluster has a grant":                     after.Given && !after.Assigned,
			"a host has a grant without evidence and seal":                 after.Given && !(after.Evidence && after.Sealed),
			"a host that is fenced, released or quarantined has a grant":   after.Given && (s == Fenced || s == Released || s == Quarantined),
			"a P_Key is forgotten although nothing proved it absent":       before.Left && !after.Left && !after.Given && a.Command != ReadBack,
			"a host was assigned while a P_Key is left in a switch port":   a.Command == Assign && refused == "" && !before.Assigned && before.Left,
			"a host was removed with a P_Key that is not proven absent":    a.Command == Remove && refused == "" && before.Traces,
			"only a grant that was read back makes a host admitted":        s == Admitted && !(after.Given && after.Applied),
			"a command of another host gave a grant":                       a.Command == Claim && after.Given && !before.Given,
			"a host got a new grant that inventory, fabric or review bars": after.Given && !before.Given && !after.Ready,
			"a host that is held got a new grant":                          after.Given && !before.Given && after.suspended(),
		} {
			if wrong {
				t.Errorf("%v (%+v) in %+v: %s; after it %+v, refused by %q", a.Command, a, before, what, after, refused)
			}
		}
	})
	if n < 100 {
		t.Errorf("%d facts were reached, want hundreds: the search finds nothing", n)
	}
}

// TestEachState checks that each state is reached, and left again.
func TestEachState(t *testing.T) {
	in, out := map[State]bool{}, map[State]bool{}
	for _, s := range steps() {
		if s.from != s.to {
			out[s.from], in[s.to] = true, true
		}
	}
	for s := range states {
		if !in[s] || !out[s] {
			t.Errorf("state %v: reached %v, left %v", s, in[s], out[s])
		}
	}
}

// TestRules checks that each rule is in its place, and that each of its guards refuses something.
func TestRules(t *testing.T) {
	refuses := map[Command]map[Guard]bool{}
	reachable(func(_ Facts, a Asked, _ Facts, refused Guard) {
		if refuses[a.Command] == nil {
			refuses[a.Command] = map[Guard]bool{}
		}
		refuses[a.Command][refused] = true
	})
	for i, r := range Rules() {
		if int(r.Command) != i || r.By == "" || len(r.Effects) == 0 {
			t.Errorf("rule %d is of %v by %q with %v", i, r.Command, r.By, r.Effects)
		}
		for _, g := range r.Guards {
			if !refuses[r.Command][g] {
				t.Errorf("%v: the guard %q refuses nothing: an earlier one does", r.Command, g)
			}
		}
	}
}
