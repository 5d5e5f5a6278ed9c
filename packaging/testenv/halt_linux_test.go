package testenv_test

import (
	"os/exec"
	"syscall"
	"testing"

	"portcullis/packaging/testenv"
)

// TestHalt: a stopped process does not get to its end, and SIGCONT lets it.
func TestHalt(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read line; exit 7")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Halt(t, cmd.Process.Pid)
	testenv.Halt(t, cmd.Process.Pid) // it is stopped already
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WNOHANG, nil); pid != 0 || err != nil {
		t.Errorf("the stopped process ended: %d, %v, %v", pid, status, err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("it ended with %v", err)
	}
}
