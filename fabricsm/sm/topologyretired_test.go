package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
)

// retire takes a device out of a revision, with its links.
func retire(r *topospec.Revision, g ib.GUID) {
	for i := range r.Devices {
		if d := &r.Devices[i]; d.GUID == g {
			*d = topospec.Device{GUID: g, Kind: d.Kind, Ports: d.Ports, Stock: topospec.Retired}
		}
	}
	links := r.Links[:0]
	for _, l := range r.Links {
		if l.A.GUID != g && l.B.GUID != g {
			links = append(links, l)
		}
	}
	r.Links = links
}

// TestRetiredIsGone: a device that a revision retires, and that is not seen, cannot be read back. Under enforcement its
// memberships count as gone, since it is cut off wherever it is shown. A device that is only switched off is never believed
// to be without them.
func TestRetiredIsGone(t *testing.T) {
	for _, tt := range []struct {
		name           string
		mode           topospec.Mode
		host           bool // the host is retired, else its switch
		retired        bool
		removed, empty bool // from the switch port; from the HCA, too
	}{
		{"a host that is switched off", topospec.Enforce, true, false, true, false},
		{"a host that is retired", topospec.Enforce, true, true, true, true},
		{"a host that is retired, and nothing is enforced", topospec.Warn, true, true, true, false},
		{"a switch that is switched off", topospec.Enforce, false, false, false, false},
		{"a switch that is retired", topospec.Enforce, false, true, true, false},
		{"a switch that is retired, and nothing is enforced", topospec.Warn, false, true, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tree(t, 7, 8)
			e := newEnv(t, l, sim.Options{LoseSilently: true}, under(law(t, l), topospec.Warn), 1)
			e.start()
			h := hosts(l)[5]
			g := h.grant(0x8123)
			e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{g}})
			e.mustSettle(10 * time.Second)
			gone, name := h.node.GUID, h.node.Name
			if !tt.host {
				gone, name = l.Find(h.peer).GUID, h.peer
			}
			e.try(e.fab.PowerOff(name))
			e.run(2 * time.Minute)
			next := law(t, l, func(r *topospec.Revision) {
				r.Number = 2
				if tt.retired {
					retire(r, gone)
				}
			}, func(r *topospec.Revision) { r.Policy.MinScore = 100 })
			e.step(&sm.TopologySet{Spec: next, Mode: tt.mode, By: "ada"})
			e.run(time.Minute)
			if m := e.view.Topology.Mode; m != tt.mode {
				t.Fatalf("mode %v is in force: %q", m, e.problems())
			}
			e.takeEvents()
			e.want(sm.Intent{Revision: 2, Absent: []sm.Grant{g}})
			e.run(time.Minute)
			r, removed := find(e.takeEvents(), func(r *sm.MembershipRemoved) bool { return r.GUID == g.GUID })
			if removed != tt.removed || removed && r.HCAProven != tt.empty {
				t.Errorf("removed %v, %+v; want %v, proven of the HCA %v", removed, r, tt.removed, tt.empty)
			}
		})
	}
}
