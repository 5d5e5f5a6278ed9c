package testenv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	haltLimit = time.Minute
	haltLook  = time.Millisecond
)

// Halt sends SIGSTOP to a process and returns once none of its threads runs. The signal is delivered to one thread first, which stops the
// others: on a busy machine these go on until it has its turn. SIGCONT continues the process.
func Halt(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("stop process %d: %v", pid, err)
	}
	look := time.NewTicker(haltLook)
	defer look.Stop()
	for late := time.After(haltLimit); ; {
		running, err := runningThread(pid)
		if err != nil {
			t.Fatalf("stop process %d: %v", pid, err)
		}
		if running == "" {
			return
		}
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("process %d was sent SIGSTOP, and %s after %v", pid, running, haltLimit)
		}
	}
}

// runningThread returns a thread of a process that is not stopped, and its state (proc_pid_stat(5)), "" without one.
func runningThread(pid int) (string, error) {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		return "", fmt.Errorf("it has no threads: %w", os.ErrNotExist)
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		// The name of the program is in parentheses, and may have some itself.
		if i := bytes.LastIndex(text, []byte(") ")); i < 0 || i+2 >= len(text) || text[i+2] != 'T' {
			return fmt.Sprintf("its thread %s is in state %.1q", filepath.Base(filepath.Dir(name)), text[min(max(i+2, 0), len(text)):]), nil
		}
	}
	return "", nil
}
