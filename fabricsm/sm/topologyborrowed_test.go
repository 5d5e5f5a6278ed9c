package sm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// TestBorrowedPortGUID: a host at its place, under its own node GUID, shows the port
// GUID of another one that is switched off, to have its LID. The specification names no
// port GUIDs. The host is cut off; the other one comes back as it was.
func TestBorrowedPortGUID(t *testing.T) {
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprintf("before a restart %v", first), func(t *testing.T) {
			e := enforced(t)
			hs := hosts(e.list)
			thief, victim := hs[0], hs[5]
			lid := e.fab.PortInfo(victim.node.Name, 1).LID
			e.try(e.fab.Unlink(victim.node.Name, 1))
			e.run(5 * time.Second)
			e.try(e.fab.SetPortGUID(thief.node.Name, 1, victim.node.PortGUID(1)))
			e.try(e.fab.Bounce(thief.node.Name, 1))
			if first { // it is found as the fabric comes up
				e.start()
				e.want(sm.Intent{Revision: 1})
			}
			e.run(20 * time.Second)
			off := []string{fmt.Sprintf("%s/%d", thief.peer, thief.pnum)}
			if got := e.disabled(); !slices.Equal(got, off) {
				t.Fatalf("off are %q, want %q; %q", got, off, e.verdicts())
			}
			e.try(e.fab.Restore(victim.node.Name, 1))
			e.run(20 * time.Second)
			pi := e.fab.PortInfo(victim.node.Name, 1)
			if pi.PortState != ib.PortActive || pi.LID != lid {
				t.Errorf("the victim is %v with LID %v, want Active with %v; %q", pi.PortState, pi.LID, lid, e.verdicts())
			}
			if got := e.disabled(); !slices.Equal(got, off) {
				t.Errorf("off are %q, want %q", got, off)
			}
		})
	}
}
