package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/agent"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// TestHandedOverOnce checks that a run after the hand-over goes on waiting, and that the host attests again after a power
// cycle.
func TestHandedOverOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	must(t, l.provision())
	wantReady(t, l.notified)
	l.notified = nil
	must(t, l.provision())
	wantReady(t, l.notified) // else the service manager ends it before the host is admitted
	if len(l.begun) != 1 || len(l.sealed) != 1 {
		t.Errorf("got %d sessions and %d seals in one boot, want 1 and 1", len(l.begun), len(l.sealed))
	}
	must(t, l.tpm.PowerCycle(t.Context()))
	must(t, l.provision())
	if len(l.begun) != 2 || len(l.sealed) != 2 || l.sealed[1] != nil {
		t.Errorf("got %d sessions and seals %v after a power cycle, want 2 of each", len(l.begun), l.sealed)
	}
}

// wantReady checks the notifications of a run to the service manager, whose time limit is 30 seconds: first how long the
// run may take, then exactly once that it is ready.
func wantReady(t *testing.T, told []string) {
	t.Helper()
	ready := 0
	for _, s := range told {
		if s == "READY=1" {
			ready++
		}
	}
	if len(told) == 0 || told[0] != "EXTEND_TIMEOUT_USEC=90000000" || ready != 1 {
		t.Errorf("the service manager was told %q, want first that the run may take 90 s, and once that it is ready", told)
	}
}

// TestHandOverAnswerLost: the service took the seal, its answer never came.
func TestHandOverAnswerLost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.after = func() { l.setPhase(v1.PhaseVerified, v1.Guard{Name: "sealed", Detail: "not handed over"}) }
	l.backend.OnSeal = func(id string, channel []byte, ev *attest.SealEvidence) (*v1.SealResult, error) {
		r, err := l.seal(id, channel, ev)
		if err == nil {
			l.setPhase(v1.PhaseAdmitted, v1.Guard{Name: "sealed", Met: true})
			l.wire.cut()
		}
		return r, err
	}
	must(t, l.provision())
	if len(l.sealed) != 2 || l.sealed[0] != nil || l.sealed[1] == nil {
		t.Errorf("got seals %v, want one accepted and its repetition refused", l.sealed)
	}
}

// TestHandOverRefused: there is no way back from the cap but a reboot.
func TestHandOverRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.after = func() { l.setPhase(v1.PhaseVerified, v1.Guard{Name: "sealed", Detail: "not handed over"}) }
	l.backend.OnSeal = func(string, []byte, *attest.SealEvidence) (*v1.SealResult, error) {
		return nil, &attest.Refusal{Code: attest.ReasonSeal, Detail: "test"}
	}
	for range 2 { // and in the same boot nothing can be attested any more
		err := l.provision()
		wantClass(t, err, agent.ClassReboot, "no longer accepts its hand-over")
		wantHint(t, err, "reboot the host")
	}
	must(t, os.Remove(filepath.Join(l.config.StateDir, "handover.json")))
	wantClass(t, l.provision(), agent.ClassReboot, "its record is lost")
}

func wantHint(t *testing.T, err error, text string) {
	t.Helper()
	e, ok := err.(*agent.Error) //nolint:errorlint // what Provision promises
	if !ok || !strings.Contains(e.Hint, text) {
		t.Errorf("got %#v, want a hint with %q", err, text)
	}
}

// TestServiceWithoutSeal: an older service must not leave a host open unseen.
func TestServiceWithoutSeal(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.backend.OnEvidence = func(id string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error) {
		r, err := l.verify(id, channel, ev)
		if r != nil {
			r.Seal = nil
		}
		return r, err
	}
	wantClass(t, l.provision(), agent.ClassRefused, "did not ask for a hand-over")
}
