//go:build vm

package umad_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// TestInterface is step 1: our own test of the interface, on a port that no Subnet Manager has seen and again on one that has
// a LID. The kernel shows the packets as it saw them.
func TestInterface(t *testing.T) {
	newFabric(t, ourNode)
	const tracing = "/sys/kernel/tracing/"
	// With the names of programs, the kernel would also rewrite code of its scheduler while both CPUs run it; and it would rewrite
	// code a second time to leave the events out again. An emulated machine does not always come back from that.
	write(t, tracing+"options/record-cmd", "0")
	write(t, tracing+"events/ib_umad/enable", "1")
	t.Run("before the first Subnet Manager", func(t *testing.T) {
		if out := hardware(t); !strings.Contains(out, "the port has no LID: nothing was asked") {
			t.Error("the port has a LID")
		}
	})
	write(t, tracing+"tracing_on", "0")
	trace := guest.Read(t, tracing+"trace")
	for _, event := range []string{"ib_umad_write", "ib_umad_read_recv", "ib_umad_read_send"} {
		if !strings.Contains(trace, event+": ") {
			t.Errorf("the kernel saw no packet by %s:\n%s", event, last(trace, 2000))
		}
	}
	t.Run("on a port with a LID", func(t *testing.T) {
		once(t, ours)
		if out := hardware(t); strings.Contains(out, "nothing was asked") {
			t.Error("the lane of subnet administration asked nothing")
		}
	})
	if log := guest.Do(t, "dmesg"); strings.Contains(log, "did not enable P_Key index support") {
		t.Error("the kernel says that we did not enable P_Key index support")
	}
}

// hardware runs TestHardware, of which all parts must pass.
func hardware(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("/suite/hardware", "-test.v", "-test.run", "^TestHardware$")
	cmd.Env = append(os.Environ(), "PORTCULLIS_UMAD_PORT=umad:"+ours+":1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("%s", out)
	if n := strings.Count(string(out), "    --- PASS:"); n != 8 {
		t.Errorf("%d of its tests passed, want 8", n)
	}
	return string(out)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
