package agent_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"portcullis/agent"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/tpm"
	"portcullis/attest/tpm/tpmtest"
)

// killCapped kills an agent right after its register was capped: the TPM has done the last extension, and the agent did not
// get the answer.
func (s *realSite) killCapped() {
	s.t.Helper()
	s.boot()
	const pcrExtend, wanted = 0x182, 3 // start, statement, hand-over
	extended := 0
	v := s.victim()
	s.spy.observe(func(_ int, command uint32) bool {
		if command == pcrExtend {
			extended++
		}
		if extended == wanted {
			v.kill()
		}
		return extended < wanted
	})
	must(s.t, v.start())
	_ = v.cmd.Wait() // it was killed
	s.spy.observe(nil)
	if extended != wanted || s.sealed() {
		s.t.Fatalf("%d extensions, sealed %t: want an agent killed at the cap", extended, s.sealed())
	}
}

func (s *realSite) record() string { return filepath.Join(s.config.StateDir, "handover.json") }

// change edits the record of a hand-over.
func (s *realSite) change(f func(map[string]any)) {
	s.t.Helper()
	b, err := os.ReadFile(s.record())
	must(s.t, err)
	var m map[string]any
	must(s.t, json.Unmarshal(b, &m))
	f(m)
	b, err = json.Marshal(m)
	must(s.t, err)
	must(s.t, os.WriteFile(s.record(), b, 0o600))
}

// TestGoesOn checks that the host is sealed, whatever happens between the cap and the next run.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	for _, c := range []struct {
		name string
		do   func(t *testing.T)
		then func(t *testing.T)
	}{
		{"nothing", func(*testing.T) {}, nil},
		{"the service was restarted", func(*testing.T) { s.service.Restart() }, nil},
		{"the network was down for longer than the nonce is good", func(*testing.T) { s.later(20 * time.Minute) }, nil},
		{"and the host's clock is behind", func(*testing.T) {
			s.change(func(m map[string]any) { m["expires"] = time.Now().Add(24 * time.Hour) })
			s.later(11 * time.Minute)
		}, nil},
		{"the host's clock is ahead", func(*testing.T) {
			s.change(func(m map[string]any) { m["expires"] = time.Now().Add(-24 * time.Hour) })
		}, nil},
		{"the service ended with the seal in its hands", func(t *testing.T) {
			s.cutAt(t, "seal", func() { s.service.Restart() })
		}, nil},
		{"somebody could read the record", func(t *testing.T) { must(t, os.Chmod(s.record(), 0o644)) }, func(t *testing.T) {
			info, err := os.Stat(s.record())
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the record has mode %v, %v", info.Mode(), err)
			}
		}},
		{"no adapter can be read any more", func(t *testing.T) {
			must(t, os.Rename(filepath.Join(s.config.Sysfs, "class"), filepath.Join(s.config.Sysfs, "hidden")))
		}, func(t *testing.T) {
			must(t, os.Rename(filepath.Join(s.config.Sysfs, "hidden"), filepath.Join(s.config.Sysfs, "class")))
		}},
		{"the disk is full", func(*testing.T) {}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.killCapped()
			c.do(t)
			o := agent.Options{Config: s.config, Version: "v1-test", Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Goal: agent.HandedOver}
			if c.name == "the disk is full" {
				agent.SetWrite(&o, func(string, []byte) error { return syscall.ENOSPC })
			}
			if err := agent.Provision(t.Context(), o); err != nil || !s.sealed() {
				t.Errorf("sealed %t, %v", s.sealed(), err)
			}
			if c.then != nil {
				c.then(t)
			}
		})
	}
}

// cutAt has the service do the next call of a name, and never answer it.
func (s *realSite) cutAt(t *testing.T, name string, then func()) {
	t.Helper()
	done := false
	s.observe(func(_ int, called string) bool {
		if done || called != name {
			return true
		}
		done = true
		then()
		return false
	})
}

// TestNeedsAReboot lists where a hand-over that was cut off can not be brought to an
// end: the error says so, and nothing is sealed.
func TestNeedsAReboot(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	bootID := filepath.Join(s.config.Procfs, "sys/kernel/random/boot_id")
	spent := func(t *testing.T, err error) {
		t.Helper()
		wantClass(t, err, agent.ClassReboot, "")
		wantHint(t, err, "reboot the host")
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T)
		text string
	}{
		{"the record is gone", func(t *testing.T) { must(t, os.Remove(s.record())) }, "its record is lost"},
		{"the record is cut off", func(t *testing.T) { must(t, os.Truncate(s.record(), 100)) }, "its contents are damaged"},
		{"the record is empty", func(t *testing.T) { must(t, os.Truncate(s.record(), 0)) }, "its contents are damaged"},
		{"the record is garbage", func(t *testing.T) { must(t, os.WriteFile(s.record(), []byte("\x00\xff{{{"), 0o600)) }, "its contents are damaged"},
		{"the record is a folder", func(t *testing.T) {
			must(t, os.Remove(s.record()))
			must(t, os.Mkdir(s.record(), 0o700))
		}, "its contents are damaged"},
		{"the record has another host's key", func(t *testing.T) {
			s.change(func(m map[string]any) { m["ak2"] = secondKey(t, m["open"].(string)) })
		}, "the stored attestation key"},
		{"the record is of another TPM", func(*testing.T) {
			s.change(func(m map[string]any) { m["ek_sha256"] = strings.Repeat("ab", 32) })
		}, "EK " + strings.Repeat("ab", 32)},
		{"the state folder is gone", func(t *testing.T) { must(t, os.RemoveAll(s.config.StateDir)) }, "no record of"},
		{"another kernel was started without a reset", func(t *testing.T) {
			was, err := os.ReadFile(bootID)
			must(t, err)
			t.Cleanup(func() { must(t, os.WriteFile(bootID, was, 0o644)) })
			must(t, os.WriteFile(bootID, []byte("00000000-0000-4000-8000-000000000000\n"), 0o644))
		}, "kexec"},
		{"the TPM was restarted, and its registers kept", func(*testing.T) {
			s.change(func(m map[string]any) { m["restart_count"] = 7 })
		}, "suspend"},
		{"the window is over", func(*testing.T) { s.later(2 * time.Hour) }, "no longer accepts its hand-over"},
		{"the host was released", func(*testing.T) { s.service.Release("compute-01") }, "no longer accepts its hand-over"},
		{"the host was assigned again", func(*testing.T) { s.assign() }, "no longer accepts its hand-over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.killCapped()
			c.do(t)
			for range 2 { // a second attempt gets the same answer
				err := s.provision(agent.HandedOver)
				spent(t, err)
				wantClass(t, err, agent.ClassReboot, c.text)
			}
			if s.sealed() {
				t.Error("sealed")
			}
		})
	}
}

// secondKey makes the key of a hand-over in another TPM.
func secondKey(t *testing.T, open string) tpm.StoredAK {
	t.Helper()
	value, err := base64.StdEncoding.DecodeString(open)
	must(t, err)
	dev, err := tpm.Open(t.Context(), tpmtest.New(t, tpmtest.Options{}).Device())
	must(t, err)
	defer dev.Close()
	keys, err := dev.NewKeys(t.Context())
	must(t, err)
	ak, err := keys.NewAK(t.Context(), attest.DefaultAgentPCR, attest.CappedPCRValue(value))
	must(t, err)
	return ak.Stored()
}

// TestForeignState checks that files that others could have written are not trusted, and that files of another host or boot
// are not used. Neither needs a reboot.
func TestForeignState(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	t.Run("others can write to the record", func(t *testing.T) {
		s.killCapped()
		must(t, os.Chmod(s.record(), 0o666))
		err := s.provision(agent.HandedOver)
		wantClass(t, err, agent.ClassOther, "others can write to it")
		wantHint(t, err, "mode 600")
		must(t, os.Chmod(s.record(), 0o600))
		must(t, s.provision(agent.HandedOver))
	})
	t.Run("others can write to the folder", func(t *testing.T) {
		s.killCapped()
		must(t, os.Chmod(s.config.StateDir, 0o777))
		err := s.provision(agent.HandedOver)
		wantClass(t, err, agent.ClassOther, "others can write to it")
		wantHint(t, err, "chmod 700")
		must(t, os.Chmod(s.config.StateDir, 0o700))
		must(t, s.provision(agent.HandedOver))
	})
	t.Run("the configuration is of another host", func(t *testing.T) {
		s.killCapped()
		s.config.Host = "compute-02"
		err := s.provision(agent.HandedOver)
		s.config.Host = "compute-01"
		wantClass(t, err, agent.ClassUsage, "handed over as that of host compute-01")
		must(t, s.provision(agent.HandedOver))
	})
	t.Run("of the last boot", func(t *testing.T) {
		s.killCapped()
		s.bootWithRecord()
		must(t, s.provision(agent.HandedOver))
		if !s.sealed() {
			t.Error("not sealed")
		}
	})
	t.Run("of another host's disk", func(t *testing.T) {
		s.killCapped()
		s.change(func(m map[string]any) { m["host"], m["open"] = "compute-09", make([]byte, 32) })
		s.bootWithRecord()
		must(t, s.provision(agent.HandedOver))
	})
	t.Run("garbage, before anything was capped", func(t *testing.T) {
		s.boot()
		must(t, os.Mkdir(s.config.StateDir, 0o700))
		for _, name := range []string{"handover.json", "measured.json", "locked.json", "outcome.json"} {
			must(t, os.WriteFile(filepath.Join(s.config.StateDir, name), []byte("{\"digests\": 7"), 0o600))
		}
		must(t, s.provision(agent.HandedOver))
	})
}

// TestFullDisk checks that each write may fail by itself. Nothing is lost, and a run with room goes on in the same boot.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	for n, name := range []string{"measured.json", "handover.json", "outcome.json"} {
		s.boot()
		writes := 0
		o := agent.Options{Config: s.config, Version: "v1-test", Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Goal: agent.HandedOver}
		agent.SetWrite(&o, func(path string, data []byte) error {
			if writes++; writes > n {
				if writes == n+1 && filepath.Base(path) != name {
					t.Errorf("write %d is of %s, want %s", writes, path, name)
				}
				return syscall.ENOSPC
			}
			return agent.WriteFile(path, data)
		})
		err := agent.Provision(t.Context(), o)
		if name == "outcome.json" {
			must(t, err) // a failure to save a mere report is no reason to fail
			continue
		}
		wantClass(t, err, agent.ClassOther, "no space left")
		wantHint(t, err, "make room")
		if s.sealed() {
			t.Errorf("%s: sealed", name)
		}
		must(t, s.provision(agent.HandedOver))
	}
}

// TestAnotherAgentRuns checks that the second of two agents is refused at once, and that the error names the process that
// has the folder. If the first was killed, no trace of it blocks the next.
func TestAnotherAgentRuns(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	var second error
	s.observe(func(n int, _ string) bool {
		if n == 1 {
			second = s.provision(agent.HandedOver)
		}
		return true
	})
	must(t, s.provision(agent.HandedOver))
	wantClass(t, second, agent.ClassOther, fmt.Sprintf("another portcullis-agent, process %d, uses", os.Getpid()))
	wantHint(t, second, "wait for it to end")
	s.killCapped()
	must(t, s.provision(agent.HandedOver))
	for _, goal := range []agent.Goal{agent.Attested, agent.Locked, agent.Opened} {
		wantClass(t, s.provision(goal), agent.ClassReboot, "nothing more can be attested")
		if o, err := agent.LastOutcome(s.config.StateDir); err != nil || o.Run != agent.HandedOver.String() || o.Class != 0 {
			t.Errorf("after a refused %v the outcome is %+v, %v: want that of the hand-over", goal, o, err)
		}
	}
	must(t, s.provision(agent.HandedOver))
	if !slices.Contains([]v1.Phase{v1.PhaseVerified, v1.PhaseGranting}, s.host().Status.Phase) {
		t.Errorf("the host is %s", s.host().Status.Phase)
	}
}
