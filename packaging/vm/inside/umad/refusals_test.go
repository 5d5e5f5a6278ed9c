//go:build vm

package umad_test

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// TestRefusals is the table of step 2: what goes wrong ends with a sentence that names the cause and what to do.
func TestRefusals(t *testing.T) {
	f := newFabric(t, ourNode)
	t.Run("device that is not there", func(t *testing.T) {
		refused(t, refusal(t, "umad:mlx5_9"), "mlx5_9 has no user MAD device; there is mlx5_0 port 1")
	})
	t.Run("port that is not there", func(t *testing.T) {
		refused(t, refusal(t, "umad:mlx5_0:2"), "mlx5_0 port 2 has no user MAD device; there is mlx5_0 port 1")
	})
	t.Run("user without the files", func(t *testing.T) {
		cmd := exec.Command("portcullisd", "sm", "--once", "--port", "umad:"+ours)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		refused(t, ending(t, cmd), "open "+deviceFile("umad", ours)+": permission denied", "udev rule, or run as root")
	})
	t.Run("OpenSM first", func(t *testing.T) {
		release := guest.Read(t, "/proc/sys/kernel/osrelease")
		log := t.TempDir() + "/opensm.log"
		opensm := program(t, "opensm", "--guid", "0x0020000000000001", "--log_file", log)
		guest.Eventually(t, patience, "OpenSM is not master: "+opensm.output(), func() bool { return sm(t, ours) })
		refused(t, refusal(t, "umad:"+ours), "register for class", "with Linux "+release, "invalid argument", "another subnet manager has the class on this port, for example OpenSM")
	})
	t.Run("module unloaded", func(t *testing.T) {
		guest.Do(t, "rmmod", "ib_umad")
		refused(t, refusal(t, "umad:"+ours), `1 InfiniBand devices but no user MAD interface: load the kernel module with "modprobe ib_umad"`)
		guest.Do(t, "modprobe", "ib_umad")
		guest.Eventually(t, patience, ours+" has no umad device again", func() bool { return deviceFile("umad", ours) != "" })
	})
	t.Run("no adapter", func(t *testing.T) {
		f.pull(ourNode)
		refused(t, refusal(t, "umad:"), "this machine has no InfiniBand port: check that the adapter is seen by lspci and that its driver")
	})
}

// sm reports whether the kernel's capability mask of a port says that a Subnet Manager runs there.
func sm(t testing.TB, device string) bool {
	t.Helper()
	mask, err := strconv.ParseUint(port(t, device, "cap_mask"), 0, 32)
	if err != nil {
		t.Fatal(err)
	}
	return mask&2 != 0
}

// refusal runs "portcullisd sm" on a port, which must be refused, and returns what it says.
func refusal(t *testing.T, port string) string {
	t.Helper()
	return ending(t, exec.Command("portcullisd", "sm", "--once", "--port", port))
}

func ending(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	d := start(t, cmd)
	d.wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit status %d, want 1", code)
	}
	return d.output()
}

// refused tests that each part of a sentence was said.
func refused(t *testing.T, said string, parts ...string) {
	t.Helper()
	t.Logf("%s", said)
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q", part)
		}
	}
}
