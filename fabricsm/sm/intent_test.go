package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestChangedIntent sends a core its intent by changes alone.
func TestChangedIntent(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1, IntentWait: time.Hour}, 1)
	e.start()
	all := hosts(l)
	a, b := all[0], all[1]
	tests := []struct {
		name            string
		grant, withdraw []sm.Grant
		a, b            []ib.PKey // tenants' keys that the hosts then hold
		sets            int
	}{
		{"the first", []sm.Grant{a.grant(0x8001), b.grant(0x0001)}, nil, []ib.PKey{0x8001}, []ib.PKey{0x0001}, 0},
		{"nothing", nil, nil, []ib.PKey{0x8001}, []ib.PKey{0x0001}, 0},
		{"what is so", []sm.Grant{a.grant(0x8001)}, []sm.Grant{b.grant(0x8002)}, []ib.PKey{0x8001}, []ib.PKey{0x0001}, 0},
		{"a move", []sm.Grant{a.grant(0x8002)}, []sm.Grant{a.grant(0x0001)}, []ib.PKey{0x8002}, []ib.PKey{0x0001}, 2},
		{"in both lists", []sm.Grant{b.grant(0x0001)}, []sm.Grant{b.grant(0x8001)}, []ib.PKey{0x8002}, []ib.PKey{0x0001}, 0},
		{"limited becomes full", []sm.Grant{b.grant(0x8001)}, nil, []ib.PKey{0x8002}, []ib.PKey{0x8001}, 2},
		{"full becomes limited", []sm.Grant{a.grant(0x0002), b.grant(0x0001)}, nil, []ib.PKey{0x0002}, []ib.PKey{0x0001}, 4},
		{"one is withdrawn", nil, []sm.Grant{a.grant(0x8002)}, nil, []ib.PKey{0x0001}, 2},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := e.sets()
			e.step(&sm.IntentChanged{Revision: int64(i + 1), Grant: tt.grant, Withdraw: tt.withdraw})
			e.mustSettle(10 * time.Second)
			e.run(time.Second)
			if e.view.Revision != int64(i+1) {
				t.Errorf("the view is of revision %d, want %d", e.view.Revision, i+1)
			}
			for _, h := range []struct {
				endPort
				want []ib.PKey
			}{{a, tt.a}, {b, tt.b}} {
				got := slices.DeleteFunc(e.fab.PKeys(h.node.Name, h.num), func(k ib.PKey) bool { return k.Base() == ib.DefaultPKeyLimited })
				if !slices.Equal(got, h.want) {
					t.Errorf("%s holds %v, want %v", h.node.Name, got, h.want)
				}
			}
			if n := e.sets() - before; i > 0 && n != tt.sets {
				t.Errorf("%d Sets, want %d", n, tt.sets)
			}
		})
	}
}

// TestChangeThenChange puts two changes into one, which must leave the same.
func TestChangeThenChange(t *testing.T) {
	grant := func(n ib.GUID) sm.Grant { return sm.Grant{GUID: n, PKey: 0x8001} }
	for _, tt := range []struct {
		name         string
		first, next  sm.IntentChanged
		grant, leave []sm.Grant
	}{
		{
			"of different hosts",
			sm.IntentChanged{Grant: []sm.Grant{grant(1)}},
			sm.IntentChanged{Withdraw: []sm.Grant{grant(2)}},
			[]sm.Grant{grant(1)},
			[]sm.Grant{grant(2)},
		},
		{
			"granted, then withdrawn",
			sm.IntentChanged{Grant: []sm.Grant{grant(1)}},
			sm.IntentChanged{Withdraw: []sm.Grant{grant(1)}},
			nil,
			[]sm.Grant{grant(1)},
		},
		{
			"full, then withdrawn as limited",
			sm.IntentChanged{Grant: []sm.Grant{grant(1)}},
			sm.IntentChanged{Withdraw: []sm.Grant{{GUID: 1, PKey: 0x0001}}},
			nil,
			[]sm.Grant{{GUID: 1, PKey: 0x0001}},
		},
		{
			"withdrawn, then granted",
			sm.IntentChanged{Withdraw: []sm.Grant{grant(1)}},
			sm.IntentChanged{Grant: []sm.Grant{grant(1)}},
			[]sm.Grant{grant(1)},
			nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.next.Revision = 7
			got := tt.first.Then(&tt.next)
			if got.Revision != 7 || !slices.Equal(got.Grant, tt.grant) || !slices.Equal(got.Withdraw, tt.leave) {
				t.Errorf("got %+v, want %v granted and %v withdrawn at revision 7", got, tt.grant, tt.leave)
			}
		})
	}
}

// TestChangesCostTheSame counts what the core allocates for changes of one thing
// in a fabric and in one several times as large: nothing in it may grow with the
// fabric but directories of pages.
func TestChangesCostTheSame(t *testing.T) {
	sizes := []int{648, 5184}
	if testing.Short() {
		sizes = []int{128, 648}
	}
	small, large := run(t, sizes[0]), run(t, sizes[1])
	for _, c := range rounds {
		if c.routes {
			continue // tables grow with the fabric, and so do blocks that differ
		}
		t.Run(c.name, func(t *testing.T) {
			cost := func(r *running) uint64 {
				r.round(0, c.steps)
				r.meter = meter{bytes: true}
				const turns = 6
				for turn := range turns {
					r.round(1+turn, c.steps)
				}
				return r.meter.alloc / turns
			}
			few, many := cost(small), cost(large)
			t.Logf("%d bytes among %d hosts, %d among %d", few, sizes[0], many, sizes[1])
			if 2*many > 3*few {
				t.Errorf("%d bytes among %d hosts, but %d among %d", few, sizes[0], many, sizes[1])
			}
		})
	}
}
