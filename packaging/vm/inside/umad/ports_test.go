//go:build vm

package umad_test

import (
	"strings"
	"syscall"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// behind is a directed route from the other node to the second leaf, and its port to h4.
const (
	behind     = "0,1,5,3"
	behindPort = "2"
)

// TestPorts is items 1 and 2 of step 5.
func TestPorts(t *testing.T) {
	newFabric(t, ourNode, tester)
	t.Run("link speed", func(t *testing.T) {
		once(t, ours)
		enabled := func() int {
			return strings.Count(guest.Do(t, "iblinkinfo", "-C", theirs), "25.78125 Gbps Active/  LinkUp")
		}
		before := enabled()
		once(t, ours, "--link-speed", "supported")
		if after := enabled(); before == 0 || after != before {
			t.Errorf("%d ends of links ran at EDR, and %d after all speeds were to be enabled", before, after)
		}
		once(t, ours, "--link-speed", "FDR", "--retrain")
		guest.Eventually(t, patience, "links do not run at FDR", func() bool {
			return strings.Count(guest.Do(t, "iblinkinfo", "-C", theirs), "14.0625 Gbps Active/  LinkUp") >= 2*27
		})
		once(t, ours, "--link-speed", "supported", "--retrain")
		guest.Eventually(t, patience, "links do not run as before", func() bool {
			return !strings.Contains(guest.Do(t, "iblinkinfo", "-C", theirs), "14.0625 Gbps Active/  LinkUp")
		})
	})
	config := t.TempDir() + "/config.yaml"
	write(t, config, "fabric:\n  ports:\n    rules:\n    - {guid: 0x0010000100000002, port: 2, disabled: true}\n")
	m := manage(t, ours, "--config", config)
	t.Run("disabled", func(t *testing.T) {
		says := func(want string) {
			t.Helper()
			guest.Eventually(t, patience, "ibportstate does not say "+want, func() bool {
				return strings.Contains(guest.Do(t, "ibportstate", "-C", theirs, "-D", behind, behindPort), want)
			})
		}
		says("PhysLinkState:...................Disabled")
		write(t, config, "fabric: {}\n")
		from := m.now()
		if err := m.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		m.says(from, "the configuration was read again")
		says("PhysLinkState:...................Disabled")
		guest.Do(t, "ibportstate", "-C", theirs, "-D", behind, behindPort, "enable")
		m.tells(from, "the host that comes back", func(e event) bool { return e.Event == "port-placed" && e.Fields["guid"] == distantGUID })
	})
}
