//go:build vm

package umad_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// Port GUIDs of the nodes that are adapters of this machine.
const (
	ourGUID    = "0x0020000000000001"
	testerGUID = "0x0020000000000101"
)

// TestTwoManagers has two of ours, on two nodes: the second stands by, takes over when the first is killed, and gives way when
// that is back.
func TestTwoManagers(t *testing.T) {
	newFabric(t, ourNode, tester)
	key := t.TempDir() + "/sm.key"
	write(t, key, "0x5bd1e995a0761d64\n")
	run := func(device, priority, other string) *manager {
		return begin(t, device, "--sm-key-file", key, "--priority", priority, "--master-priority", priority, "--allowed-sm", other)
	}
	first := run(ours, "9", testerGUID)
	first.settled(0)
	second := run(theirs, "5", ourGUID)
	second.becomes(0, "Standby")
	at := second.now()
	first.signal(os.Kill)
	second.becomes(at, "Master")
	second.settled(at)
	finds(t, "0x20000000000101", "priority 5 state 3")
	at = second.now()
	first = run(ours, "9", testerGUID)
	first.becomes(0, "Master")
	second.becomes(at, "Standby")
	finds(t, "0x20000000000001", "priority 9 state 3")
	t.Run("planned handover", func(t *testing.T) {
		at := second.now()
		first.signal(syscall.SIGTERM)
		second.becomes(at, "Master")
	})
}

// becomes waits until a Subnet Manager of ours is in a state.
func (m *manager) becomes(from mark, state string) {
	m.t.Helper()
	m.tells(from, "state "+state, func(e event) bool { return e.Event == "state-changed" && e.Fields["state"] == state })
}

// finds waits until sminfo, from the other node, finds a Subnet Manager.
func finds(t *testing.T, guid, what string) {
	t.Helper()
	var said string
	for _, part := range []string{guid, what} {
		guest.Eventually(t, patience, "sminfo does not say "+part, func() bool {
			said = guest.Try(t, "sminfo", "-C", theirs).All
			return strings.Contains(said, part)
		})
	}
}

// openSM starts OpenSM on an adapter, with times that are short, and waits until it is in a state.
func openSM(t *testing.T, guid, state string, args ...string) *daemon {
	t.Helper()
	dir := t.TempDir()
	conf := dir + "/opensm.conf"
	write(t, conf, fmt.Sprintf("guid %s\nsm_key 0x5bd1e995a0761d64\nsm_priority 3\nsminfo_polling_timeout 500\npolling_retry_number 2\nsweep_interval 1\nforce_log_flush TRUE\n", guid))
	t.Setenv("OSM_CACHE_DIR", dir)
	t.Setenv("OSM_TMP_DIR", dir)
	d := program(t, "opensm", append([]string{"-F", conf, "-f", "stdout"}, args...)...)
	d.says(0, "Entering "+state+" state")
	return d
}

// TestOpenSMBeside has OpenSM unchanged as the other Subnet Manager: it stands by while ours is master, takes over when ours is
// killed, and gives way when ours is back.
func TestOpenSMBeside(t *testing.T) {
	newFabric(t, ourNode, tester)
	key := t.TempDir() + "/sm.key"
	write(t, key, "0x5bd1e995a0761d64\n")
	run := func() *manager {
		return begin(t, ours, "--sm-key-file", key, "--priority", "9", "--master-priority", "9", "--allowed-sm", testerGUID)
	}
	m := run()
	m.settled(0)
	other := openSM(t, testerGUID, "STANDBY")
	at := other.now()
	m.signal(os.Kill)
	other.says(at, "Entering MASTER state")
	finds(t, "0x20000000000101", "priority 3 state 3")
	at = other.now()
	m = run()
	m.becomes(0, "Master")
	other.says(at, "Entering STANDBY state")
	finds(t, "0x20000000000001", "priority 9 state 3")
}

// TestOpenSM has OpenSM alone bring the fabric up: our simulator's adapters and Linux are judged by a Subnet Manager that is
// not ours.
func TestOpenSM(t *testing.T) {
	f := newFabric(t, ourNode, tester)
	other := openSM(t, ourGUID, "MASTER")
	other.says(0, "SUBNET UP")
	judge(t, netlist(t))
	judgeMore(t)
	t.Run("saquery", func(t *testing.T) {
		if n := strings.Count(guest.Do(t, "saquery", "-C", theirs, "NR"), "NodeRecord dump:"); n != 18 {
			t.Errorf("saquery got %d nodes of OpenSM, want 18", n)
		}
	})
	t.Run("trap", func(t *testing.T) {
		from := other.now()
		f.do("unlink " + distant + " 1")
		other.says(from, "num:128")
	})
}
