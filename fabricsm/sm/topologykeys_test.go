package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/topospec"
)

// hostEnd returns the end of the link of a revision that is a host's.
func hostEnd(r *topospec.Revision, g ib.GUID) *topospec.End {
	l := linkOf(r, g)
	if l.A.GUID == g {
		return &l.A
	}
	return &l.B
}

// renamed replaces the GUID of a device in all its mentions.
func renamed(r *topospec.Revision, old, now ib.GUID) {
	for i := range r.Devices {
		if r.Devices[i].GUID == old {
			r.Devices[i].GUID = now
		}
	}
	for i := range r.Links {
		for _, e := range [2]*topospec.End{&r.Links[i].A, &r.Links[i].B} {
			if e.GUID == old {
				e.GUID = now
			}
		}
	}
}

// TestKeysFollowTheRevision: a revision has hosts at other switch ports, or at those of a switch with another GUID. Their
// keys go with them, so that they answer there at once, and no device is shown the key of another.
func TestKeysFollowTheRevision(t *testing.T) {
	const fresh ib.GUID = 0x00ab000000000001
	for _, tt := range []struct {
		name   string
		change func(e *env, r *topospec.Revision)
		do     func(e *env)
	}{
		{
			"two hosts are exchanged", func(e *env, r *topospec.Revision) {
				hs := hosts(e.list)
				a, b := hostEnd(r, hs[0].node.GUID), hostEnd(r, hs[5].node.GUID)
				*a, *b = *b, *a
			},
			func(e *env) {
				hs := hosts(e.list)
				e.try(e.fab.Swap(sim.Endpoint{Node: hs[0].node.Name, Port: 1}, sim.Endpoint{Node: hs[5].node.Name, Port: 1}))
			},
		},
		{
			"a switch is replaced", func(e *env, r *topospec.Revision) { renamed(r, e.list.Find("leaf2").GUID, fresh) },
			func(e *env) {
				e.try(e.fab.SetGUIDs("leaf2", fresh, fresh))
				e.try(e.fab.Reboot("leaf2"))
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tree(t, 7, 8)
			cfg := keyed(t)
			cfg.MKey.Places = keyplace.Declared
			cfg.Topology = sm.TopologyConfig{Spec: law(t, l), Mode: topospec.Warn}
			e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
			e.start()
			e.want(sm.Intent{Revision: 1})
			e.mustSettle(time.Minute)
			e.run(10 * time.Second) // otherwise another device may have seen the keys, see mkeyshown.go
			before := e.mkeysNow()
			next := law(t, l, func(r *topospec.Revision) { tt.change(e, r) })
			e.step(&sm.TopologySet{Spec: next, Mode: topospec.Warn, By: "ada"})
			tt.do(e)
			e.run(2 * time.Minute)
			e.mustSettle(time.Minute)
			tv := e.view.Topology
			if tv.Verified != tv.Expected || len(e.verdicts())+len(e.problems()) > 0 {
				t.Errorf("%d of %d verified, %q, problems %q", tv.Verified, tv.Expected, e.verdicts(), e.problems())
			}
			after := e.mkeysNow()
			for _, h := range hosts(l) {
				g := h.node.PortGUID(1)
				if after[g] != before[g] {
					t.Errorf("%s got another key", h.node.Name)
				}
				if at := next.Belongs(topospec.End{GUID: h.node.GUID, Port: 1}); e.keys[g].Place != at.Place() {
					t.Errorf("the key of %s is bound to %v, want %v", h.node.Name, e.keys[g].Place, at)
				}
			}
		})
	}
}

// TestObservedTopologyMovesNoKeys: devices have their keys where they are seen, and a revision that is only observed has
// two of them elsewhere: it locks out no device.
func TestObservedTopologyMovesNoKeys(t *testing.T) {
	l := tree(t, 7, 8)
	cfg := keyed(t)
	cfg.MKey.Places = keyplace.Seen
	cfg.Topology = sm.TopologyConfig{Spec: law(t, l), Mode: topospec.Observe}
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(time.Minute)
	wrong := law(t, l, func(r *topospec.Revision) {
		hs := hosts(e.list)
		a, b := hostEnd(r, hs[0].node.GUID), hostEnd(r, hs[5].node.GUID)
		*a, *b = *b, *a
	})
	e.step(&sm.TopologySet{Spec: wrong, Mode: topospec.Observe, By: "ada"})
	e.run(time.Minute)
	for _, h := range hosts(l) {
		if at := e.keys[h.node.PortGUID(1)].Place; at != h.place {
			t.Errorf("the key of %s is bound to %v, want %v", h.node.Name, at, h.place)
		}
	}
	e.checkKeys()
}
