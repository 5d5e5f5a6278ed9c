package sm_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

func (e *env) tenantKeys(h endPort) []ib.PKey {
	return slices.DeleteFunc(e.fab.PKeys(h.node.Name, h.num), func(k ib.PKey) bool { return k.Base() == ib.DefaultPKeyLimited })
}

// TestReview restarts a core with the intent of an older state. Memberships in both that intent and the switch ports stay,
// as do those only in the switch ports. Those only in the intent are not granted.
func TestReview(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1, IntentWait: time.Hour}, 1)
	e.start()
	all := hosts(l)
	both, later, released, limited, off := all[0], all[1], all[2], all[3], all[4]
	e.want(sm.Intent{Revision: 9, Grants: []sm.Grant{both.grant(0x8001), later.grant(0x8002), limited.grant(0x0003), off.grant(0x8005)}})
	e.mustSettle(10 * time.Second)
	check := func(when string, want map[endPort][]ib.PKey) {
		t.Helper()
		for _, h := range []endPort{both, later, released, limited, off} {
			if got := e.tenantKeys(h); !slices.Equal(got, want[h]) {
				t.Errorf("%s: %s holds %v, want %v", when, h.node.Name, got, want[h])
			}
		}
	}
	found := map[endPort][]ib.PKey{both: {0x8001}, later: {0x8002}, limited: {0x0003}, off: {0x8005}}
	check("before", found)

	restored := sm.Intent{
		Revision: 3, Keep: true,
		Held: []sm.Grant{both.grant(0x8001), released.grant(0x8001), limited.grant(0x8003), off.grant(0x8005)},
	}
	e.start()
	before := e.sets()
	e.want(restored)
	e.mustSettle(10 * time.Second)
	e.run(time.Second)
	check("in review", found)
	if n := e.sets() - before; n != 0 {
		t.Errorf("%d Sets, want none: nothing differs from what is there", n)
	}

	// The intent is said again whenever the store changes.
	restored.Revision++
	e.want(restored)
	e.mustSettle(10 * time.Second)
	check("said again", found)

	// An operator lets one host in, and has another one leave.
	restored.Revision++
	restored.Held = []sm.Grant{both.grant(0x8001), limited.grant(0x8003), off.grant(0x8005)}
	restored.Grants = []sm.Grant{released.grant(0x8001)}
	restored.Absent = []sm.Grant{later.grant(0x8002)}
	e.want(restored)
	e.mustSettle(10 * time.Second)
	delete(found, later)
	found[released] = []ib.PKey{0x8001}
	check("decided", found)

	e.want(sm.Intent{Revision: 9, Grants: []sm.Grant{both.grant(0x8001), limited.grant(0x8003)}})
	e.mustSettle(10 * time.Second)
	check("after the review", map[endPort][]ib.PKey{both: {0x8001}, limited: {0x8003}})
}
