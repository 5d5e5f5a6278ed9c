package driver_test

import (
	"fmt"
	"strings"
	"testing"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestSeveralLIDs assigns four LIDs to every host. infiniband-diags reach it over each, and ibtracert sees each path over
// another spine. A restart changes nothing.
func TestSeveralLIDs(t *testing.T) {
	ibsimtest.Need(t, "ibtracert", "smpquery")
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 16, Radix: 8, Spines: 4})
	lab := ibsimtest.Start(t, text(t, l, err))
	store := &driver.Memory{}
	cfg := sm.Config{Enforcement: sm.Accepted, LMC: 2}
	m := manageAs(t, lab, store, cfg)
	v := m.until("a settled fabric", settled)
	from, far := lidOf(t, v, l, "sm"), []string{"h5", "h10", "h15"}
	for _, name := range far {
		base := lidOf(t, v, l, name)
		if base%4 != 0 {
			t.Errorf("%s has base LID %v, want a multiple of 4", name, base)
		}
		spines := make(map[string]bool)
		for i := range ib.LID(4) {
			lid := (base + i).String()
			out := ibsimtest.Diag(t, lab, "sm", "smpquery", "portinfo", lid, "1")
			for _, want := range []string{fmt.Sprintf("Lid:.............................%v\n", base), "LMC:.............................2\n"} {
				if !strings.Contains(out, want) {
					t.Errorf("%s by LID %s: no %q in\n%s", name, lid, want, out)
				}
			}
			way := ibsimtest.Diag(t, lab, "sm", "ibtracert", from.String(), lid)
			lines := strings.Split(strings.TrimSpace(way), "\n")
			if len(lines) != 6 || !strings.Contains(lines[len(lines)-1], name) {
				t.Fatalf("ibtracert to LID %s of %s:\n%s", lid, name, way)
			}
			_, spine, _ := strings.Cut(lines[2], "switch port {")
			spines[spine[:18]] = true
		}
		if len(spines) != 4 {
			t.Errorf("%s is reached over spines %v, want four", name, spines)
		}
	}
	m.stop()

	m = manageAs(t, lab, store, cfg)
	v = m.until("a settled fabric after a restart", settled)
	for _, c := range v.SMPs {
		if c.Method == mad.MethodSet {
			t.Errorf("a restart sent %d Sets of %v", c.Sent, c.Attr)
		}
	}
	for _, name := range far {
		if lid := lidOf(t, v, l, name); lid == 0 || v.Fabric.Port(v.Fabric.PortByGUID(v.GUID)).LMC != 2 {
			t.Errorf("%s has LID %v after a restart", name, lid)
		}
	}
}
