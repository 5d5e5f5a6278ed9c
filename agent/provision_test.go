package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portcullis/agent"
	"portcullis/api"
	"portcullis/api/apitest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/tpm"
	"portcullis/packaging/testenv"
)

func wantClass(t *testing.T, err error, want agent.Class, text string) {
	t.Helper()
	if err == nil || agent.ClassOf(err) != want || !strings.Contains(err.Error(), text) {
		t.Errorf("got class %d, %v; want class %d and %q", agent.ClassOf(err), err, want, text)
	}
}

func TestAdmitted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.after = func() { l.setPhase(v1.PhaseVerified, v1.Guard{Name: "seen", Detail: "port 1 is not seen"}) }
	l.onLog = func(msg string) {
		if strings.Contains(msg, "waiting: seen: port 1 is not seen") {
			l.setPhase(v1.PhaseAdmitted)
		}
	}
	must(t, l.provision())
	if len(l.sealed) != 1 || l.sealed[0] != nil {
		t.Errorf("got seals %v, want one that was accepted", l.sealed)
	}
	facts := l.verdicts[0].Facts
	if facts.Host != "compute-01" || facts.EKDigest != l.tpm.EKDigest() || facts.Statement.HCAs[0].Ports[0].GUID != base+1 {
		t.Errorf("got facts %+v", facts)
	}
	o, err := agent.LastOutcome(l.config.StateDir)
	if err != nil || o.Class != 0 || o.Phase != v1.PhaseAdmitted {
		t.Errorf("got outcome %+v, %v", o, err)
	}
	ready := slices.Index(l.notified, "READY=1")
	if ready < 0 || !slices.Contains(l.notified[ready:], "STATUS=admitted to train") {
		t.Errorf("the service manager was told %q", l.notified)
	}
}

// TestSlowHost: the service closes connections that no request came over within
// seconds, so one was sent before adapters are read and keys are made, which may
// take longer.
func TestSlowHost(t *testing.T) {
	t.Parallel()
	var greeted atomic.Int32
	l := newLab(t, func(o *api.Options) {
		o.Ready = func(context.Context) []v1.Condition {
			greeted.Add(1)
			return nil
		}
	})
	var measured, before int32 = 0, -1
	l.onLog = func(msg string) {
		if msg == "statement measured" {
			measured++
			before = greeted.Load()
		}
	}
	must(t, l.provision())
	if measured != 1 || before != 1 {
		t.Errorf("a statement was measured %d times, after %d requests, want once, after one", measured, before)
	}
	if n := greeted.Load(); n != 2 {
		t.Errorf("%d connections began with a question, want 2: evidence and seal", n)
	}
}

// TestRunsInOneBoot checks the runs of one boot before the hand-over. An unchanged host sends its measured statement again,
// and a changed one measures another. A run after a crash between saving and measuring also measures another. A new boot
// begins again.
func TestRunsInOneBoot(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.expect.HCAs[0].Ports[0].GUID++ // refused, so not handed over
	counts := func() int {
		var m struct {
			Digests [][]byte `json:"digests"`
		}
		b, err := os.ReadFile(filepath.Join(l.config.StateDir, "measured.json"))
		must(t, err)
		must(t, json.Unmarshal(b, &m))
		return len(m.Digests)
	}
	for _, step := range []struct {
		name   string
		before func()
		want   int
	}{
		{"first", func() {}, 1},
		{"again", func() {}, 1},
		{"other firmware", func() { l.plant("28.44.1000") }, 2},
		{"crash before the TPM was told", func() {
			l.plant("28.45.1000")
			addRecord(t, l.config.StateDir)
		}, 3},
		{"power cycle", func() { must(t, l.tpm.PowerCycle(t.Context())) }, 1},
	} {
		step.before()
		wantClass(t, l.provision(), agent.ClassRefused, "refused host")
		if v := l.verdicts[len(l.verdicts)-1]; v.Code != attest.ReasonGUIDMismatch {
			t.Errorf("%s: got verdict %+v", step.name, v)
		}
		if got := counts(); got != step.want {
			t.Errorf("%s: got %d statements, want %d", step.name, got, step.want)
		}
	}
}

// addRecord adds a record to the list that the TPM never saw.
func addRecord(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "measured.json")
	b, err := os.ReadFile(path)
	must(t, err)
	var m map[string]any
	must(t, json.Unmarshal(b, &m))
	m["digests"] = append(m["digests"].([]any), attest.StatementDigest([]byte("never measured")))
	b, err = json.Marshal(m)
	must(t, err)
	must(t, os.WriteFile(path, b, 0o600))
}

func TestRefused(t *testing.T) {
	t.Parallel()
	t.Run("other GUIDs in inventory", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.expect.HCAs[0].Ports[0].GUID++
		err := l.provision()
		wantClass(t, err, agent.ClassRefused, "refused host compute-01")
		if e, ok := errors.AsType[*agent.Error](err); !ok || !strings.Contains(e.Hint, "portcullis host show") {
			t.Errorf("got hint of %v", err)
		}
		if len(l.verdicts) != 1 || l.verdicts[0].Code != attest.ReasonGUIDMismatch {
			t.Errorf("got verdicts %+v, want one %s", l.verdicts, attest.ReasonGUIDMismatch)
		}
		if o, err := agent.LastOutcome(l.config.StateDir); err != nil || o.Class != agent.ClassRefused {
			t.Errorf("got outcome %+v, %v", o, err)
		}
	})
	t.Run("name of another host", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.config.Host = "compute-02"
		wantClass(t, l.provision(), agent.ClassRefused, "refused host compute-02")
		if r, ok := errors.AsType[*attest.Refusal](l.begun[0]); !ok || r.Code != attest.ReasonHost {
			t.Errorf("got %v, want %s", l.begun[0], attest.ReasonHost)
		}
	})
	t.Run("another TPM in inventory", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.expect.EKDigest = strings.Repeat("0", 64)
		wantClass(t, l.provision(), agent.ClassRefused, "refused host compute-01")
		if r, ok := errors.AsType[*attest.Refusal](l.begun[0]); !ok || r.Code != attest.ReasonEKPin {
			t.Errorf("got %v, want %s", l.begun[0], attest.ReasonEKPin)
		}
	})
	t.Run("withdrawn while waiting", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.after = func() { l.setPhase(v1.PhaseQuarantined, v1.Guard{Name: "assigned", Detail: "not assigned"}) }
		wantClass(t, l.provision(), agent.ClassRefused, "it is now quarantined: assigned: not assigned")
	})
	t.Run("another PCR in the policy", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.policy.AgentPCR = 14
		wantClass(t, l.provision(), agent.ClassRefused, "refused host compute-01")
		if r, ok := errors.AsType[*attest.Refusal](l.begun[0]); !ok || r.Code != attest.ReasonAK || !strings.Contains(r.Detail, "PCR 14") {
			t.Errorf("got %v, want %s about PCR 14", l.begun[0], attest.ReasonAK)
		}
	})
	t.Run("service without channel binding", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.policy.Channel = attest.ChannelNone
		wantClass(t, l.provision(), agent.ClassRefused, "does not bind evidence")
		l.config.ChannelBinding = agent.BindingOff
		must(t, l.provision())
	})
}

func TestNotInTime(t *testing.T) {
	t.Parallel()
	// On a busy machine the agent's own work can take all of the time: then it gets more.
	for timeout := 3 * time.Second; ; timeout *= 2 {
		l := newLab(t)
		l.after = func() { l.setPhase(v1.PhaseVerified, v1.Guard{Name: "cabled", Detail: "no cabling declared"}) }
		l.config.Timeout = timeout
		err := l.provision()
		if agent.ClassOf(err) == agent.ClassUnreachable && timeout < time.Minute {
			continue
		}
		wantClass(t, err, agent.ClassTimeout, "cabled: no cabling declared")
		return
	}
}

func TestServiceDown(t *testing.T) {
	t.Parallel()
	t.Run("comes up", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.wire.set(false)
		retries := 0
		l.onLog = func(msg string) {
			if strings.HasPrefix(msg, "no verdict") {
				if retries++; retries == 2 {
					l.wire.set(true)
				}
			}
		}
		must(t, l.provision())
		if retries != 2 || len(l.verdicts) != 1 {
			t.Errorf("got %d retries and %d verdicts, want 2 and 1", retries, len(l.verdicts))
		}
	})
	t.Run("stays down", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.config.Service = "https://" + testenv.Address(t)
		l.config.Timeout = 2 * time.Second
		wantClass(t, l.provision(), agent.ClassUnreachable, "connection refused")
		if _, err := os.Stat(filepath.Join(l.config.StateDir, "measured.json")); err == nil {
			t.Error("a statement was measured although no service was there")
		}
	})
}

// TestConnectionKilled cuts the connection before and after the evidence: the
// agent begins a new session each time.
func TestConnectionKilled(t *testing.T) {
	t.Parallel()
	for name, arm := range map[string]func(l *lab, once func(func())){
		"after the session": func(l *lab, once func(func())) {
			l.backend.OnSession = func(req *attest.SessionRequest) (*attest.Session, error) {
				defer once(l.wire.cut)
				return l.begin(req)
			}
		},
		"after the evidence": func(l *lab, once func(func())) {
			admit := l.after
			l.after = func() { admit(); once(l.wire.cut) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			done := false
			arm(l, func(f func()) {
				if !done {
					done = true
					f()
				}
			})
			must(t, l.provision())
			if len(l.begun) != 2 {
				t.Errorf("got %d sessions, want 2", len(l.begun))
			}
			if last := l.verdicts[len(l.verdicts)-1]; !last.OK || last.Facts.Statement == nil {
				t.Errorf("got verdict %+v", last)
			}
		})
	}
}

func TestUntrusted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.config.CA = apitest.Start(t, apitest.NewSite(t)).CAFile
	wantClass(t, l.provision(), agent.ClassUntrusted, "does not prove that it is the service")
	if len(l.begun) != 0 {
		t.Errorf("got %d sessions with a stranger", len(l.begun))
	}
}

func TestTPMFaults(t *testing.T) {
	t.Parallel()
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.config.TPM = filepath.Join(t.TempDir(), "tpmrm0")
		err := l.provision()
		wantClass(t, err, agent.ClassTPM, "no TPM there")
		if !errors.Is(err, tpm.ErrMissing) {
			t.Errorf("got %v, want %v", err, tpm.ErrMissing)
		}
	})
	t.Run("record list lost", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.expect.HCAs[0].Ports[0].GUID++
		wantClass(t, l.provision(), agent.ClassRefused, "refused host")
		must(t, os.Remove(filepath.Join(l.config.StateDir, "measured.json")))
		wantClass(t, l.provision(), agent.ClassReboot, "no record of")
	})
	t.Run("something else measured", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		dev, err := tpm.Open(t.Context(), l.config.TPM)
		must(t, err)
		keys, err := dev.NewKeys(t.Context())
		must(t, err)
		must(t, keys.Extend(t.Context(), attest.DefaultAgentPCR, make([]byte, 32)))
		must(t, keys.Close(t.Context()))
		must(t, dev.Close())
		wantClass(t, l.provision(), agent.ClassReboot, "no record of")
	})
	t.Run("nine different statements", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.expect.HCAs[0].Ports[0].GUID++
		for i := range attest.MaxStatements {
			l.plant("28.43." + string(rune('0'+i)))
			wantClass(t, l.provision(), agent.ClassRefused, "refused host")
		}
		l.plant("28.43.9")
		wantClass(t, l.provision(), agent.ClassReboot, "the limit for one boot")
	})
}

func TestHostFaults(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	must(t, os.RemoveAll(filepath.Join(l.config.Sysfs, "class/infiniband")))
	wantClass(t, l.provision(), agent.ClassHCA, "no InfiniBand adapter")
}

func TestMissingCA(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.config.CA = filepath.Join(t.TempDir(), "gone.pem")
	wantClass(t, l.provision(), agent.ClassUsage, "gone.pem")
}
