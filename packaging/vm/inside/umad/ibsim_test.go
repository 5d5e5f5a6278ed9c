//go:build vm

package umad_test

import (
	"os/exec"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// TestIbsim brings up a fabric of Debian's ibsim, so that not our simulator alone judges our Subnet Manager. A bridge makes its
// nodes the adapters of this machine.
func TestIbsim(t *testing.T) {
	const socket = "debian"
	file := netlist(t)
	f := &fabric{}
	cmd := exec.Command("ibsim", "-s", "-L", "49152", file)
	cmd.Env = append(cmd.Environ(), "IBSIM_SOCKNAME="+socket)
	f.run(t, cmd)
	f.says(0, "sim>")
	for _, node := range []string{ourNode, tester} {
		name := adapters[node]
		t.Cleanup(func() { // after the bridge ended
			guest.Eventually(t, patience, name+" is still there", func() bool { return !guest.Exists("/sys/class/infiniband/" + name) })
		})
		program(t, "bridge", "ibsim", "-socket", socket, "-node", node, "-name", name)
		f.there(node)
	}
	m := manage(t, ours, "--audit-period", "2s") // ibsim tells of no cable
	judge(t, file)
	for _, c := range []struct{ command, event string }{{"unlink", "port-gone"}, {"relink", "port-placed"}} {
		from := m.now()
		f.write(c.command + " \"" + distant + "\"[1]\n")
		m.tells(from, c.event, func(e event) bool { return e.Event == c.event && e.Fields["guid"] == distantGUID })
	}
}
