package sm_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestNoOwnViolations checks that bringing up a fabric with M_Keys and members of partitions shows no device a wrong key,
// also after a restart. So a violation is never caused by the subnet manager.
func TestNoOwnViolations(t *testing.T) {
	l := tree(t, 12, 8)
	for name, cfg := range keyPlaces(t, l) {
		for _, device := range []sim.Device{{}, {DualMKey: true}} {
			for _, late := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, two keys %v, late intent %v", name, device.DualMKey, late), func(t *testing.T) {
					e := newEnv(t, l, sim.Options{LoseSilently: true, Device: device}, cfg, 1)
					hs := hosts(l)
					in := sm.Intent{Revision: 1, Grants: []sm.Grant{hs[0].grant(0x8001), hs[1].grant(0x8001), hs[2].grant(0x8002)}, Hosts: places(hs)}
					for range 2 {
						e.start()
						if late {
							e.run(2 * time.Second)
						}
						e.want(in)
						e.mustSettle(time.Minute)
						e.run(5 * time.Second)
					}
					e.checkKeys()
					for _, p := range managementPorts(l) {
						if n := e.fab.PortInfo(p.node, p.num).MKeyViolations; n != 0 {
							t.Errorf("%s/%d counted %d SMPs with a wrong key", p.node, p.num, n)
						}
					}
				})
			}
		}
	}
}
