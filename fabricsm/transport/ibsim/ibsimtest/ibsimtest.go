// Package ibsimtest provides a real ibsim and infiniband-diags for tests. It starts and stops them with the test. If they
// are not installed, it skips the test, or fails it where they are required.
package ibsimtest

import (
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/packaging/testenv"
)

// Need skips the test when ibsim, its preload library or one of the named
// programs is not installed, and fails it instead when real parts are
// required.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	testenv.Need(t, ibsimlab.Missing(programs...))
}

// Start runs ibsim on a netlist until the end of the test.
func Start(t testing.TB, netlist []byte) *ibsimlab.Lab {
	t.Helper()
	Need(t)
	lab, err := ibsimlab.Start(t.Context(), ibsimlab.Options{Netlist: netlist, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Stop(); err != nil {
			t.Error(err)
		}
	})
	return lab
}

// Console runs a console command and returns its output.
func Console(t testing.TB, lab *ibsimlab.Lab, command string) string {
	t.Helper()
	out, err := lab.Console(command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Diag runs an infiniband-diags tool at the named node and returns its output.
// A tool that ends with a status other than 0 fails the test.
func Diag(t testing.TB, lab *ibsimlab.Lab, node, tool string, args ...string) string {
	t.Helper()
	Need(t, tool)
	out, err := lab.Diag(t.Context(), node, tool, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
