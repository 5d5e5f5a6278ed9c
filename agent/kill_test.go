package agent_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"portcullis/agent"
	v1 "portcullis/api/v1"
)

// point is where an agent is killed.
type point struct {
	write   string // before, torn, after: the n-th write
	command bool   // the TPM has done the n-th command
	call    bool   // the service has done the n-th call
	n       int
}

func (p point) String() string {
	switch {
	case p.command:
		return fmt.Sprintf("TPM command %d", p.n)
	case p.call:
		return fmt.Sprintf("call %d", p.n)
	default:
		return fmt.Sprintf("%s write %d", p.write, p.n)
	}
}

// killAt runs an agent as a process of its own, kills it at a point, and reports
// whether it came there, and how it ended.
func (s *realSite) killAt(p point) (killed bool, output string) {
	s.t.Helper()
	var more []string
	if p.write != "" {
		more = append(more, fmt.Sprintf("%s=%s %d", childWrite, p.write, p.n))
	}
	v := s.victim(more...)
	s.observe(func(n int, _ string) bool {
		if !p.call || n < p.n {
			return true
		}
		v.kill()
		return false
	})
	s.spy.observe(func(n int, _ uint32) bool {
		if !p.command || n < p.n {
			return true
		}
		v.kill()
		return false
	})
	must(s.t, v.start())
	err := v.cmd.Wait()
	s.observe(nil)
	s.spy.observe(nil)
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true, v.said.String()
	}
	if err != nil {
		s.t.Fatalf("killed %v: the agent ended by itself: %v\n%s", p, err, &v.said)
	}
	return false, v.said.String()
}

// TestKilledAnywhere kills agents at each write, TPM command and call of the service,
// and runs them again in the same boot: each ends handed over, without a reboot and
// with one seal, and is admitted.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	// A run that is not killed shows how many points there are.
	if killed, out := s.killAt(point{}); killed || !s.sealed() {
		t.Fatalf("nobody killed it, and it was not handed over:\n%s", out)
	}
	s.spy.mu.Lock()
	commands := s.spy.commands
	s.spy.mu.Unlock()
	calls := s.calls
	const writes = 3 // measured.json, handover.json, outcome.json
	if commands < 40 || calls != 3 {
		t.Fatalf("%d TPM commands and %d calls, want more than 40, and 3", commands, calls)
	}
	var points []point
	for n := range writes {
		for _, when := range []string{"before", "torn", "after"} {
			points = append(points, point{write: when, n: n + 1})
		}
	}
	for n := range calls {
		points = append(points, point{call: true, n: n + 1})
	}
	for n := range commands {
		// All of them after the hand-over, also in a short run.
		if !testing.Short() || n%9 == 0 || n > commands-16 {
			points = append(points, point{command: true, n: n + 1})
		}
	}
	capped := 0
	for _, p := range points {
		s.boot()
		killed, out := s.killAt(p)
		if !killed {
			t.Errorf("%v: the agent never came there:\n%s", p, out)
			continue
		}
		if _, err := os.Stat(filepath.Join(s.config.StateDir, "handover.json")); err == nil && !s.sealed() {
			capped++
		}
		if err := s.provision(agent.HandedOver); err != nil || !s.sealed() {
			t.Errorf("%v: run again: sealed %t, %v\nthe first run:\n%s", p, s.sealed(), err, out)
			continue
		}
		left, err := filepath.Glob(filepath.Join(s.config.StateDir, ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%v: left in the state folder: %v, %v", p, left, err)
		}
		if err := s.provision(agent.HandedOver); err != nil { // and it can be run once more
			t.Errorf("%v: run a third time: %v", p, err)
		}
	}
	t.Logf("killed at %d points, %d of them between the record of the hand-over and the seal", len(points), capped)
	if capped < 6 {
		t.Errorf("only %d agents were killed between the record of the hand-over and the seal", capped)
	}
	s.admit()
	must(t, s.provision(agent.Admitted))
	if p := s.host().Status.Phase; p != v1.PhaseAdmitted {
		t.Errorf("the host is %s", p)
	}
}
