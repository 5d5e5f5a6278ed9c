package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent"
	"portcullis/agent/checklist"
	"portcullis/api/apitest"
)

// results returns the result of each check.
func results(d *agent.Diagnosis) map[string]checklist.Result {
	out := map[string]checklist.Result{}
	for _, c := range d.Checks {
		out[c.Name] = c.Result
	}
	return out
}

func detail(d *agent.Diagnosis, name string) string {
	for _, c := range d.Checks {
		if c.Name == name {
			return c.Detail + "; " + c.Hint
		}
	}
	return ""
}

// healthy returns the results of the checks of a lab end that has everything a run needs. Only sysfs reports its adapter.
func healthy() map[string]checklist.Result {
	return map[string]checklist.Result{
		"configuration": "ok", "image": "ok", "state": "ok", "other-agent": "ok", "tpm": "ok", "agent-pcr": "ok", "event-log": "ok",
		"firmware": "warning", "adapters": "ok", "registers": "warning", "lockdown": "ok", "umad": "warning",
		"fwctl": "skipped", "vendor-tools": "skipped", "selinux": "ok",
		"service": "ok", "service-certificate": "ok", "service-ready": "ok", "clock": "ok",
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.config.Image = "image-1"
	look := func(change map[string]checklist.Result, says map[string]string) {
		t.Helper()
		d := agent.Doctor(t.Context(), &l.config, "v1-test")
		want := healthy()
		ready := true
		for name, r := range change {
			want[name] = r
			ready = ready && r != checklist.Failed
		}
		if diff := cmp.Diff(want, results(d)); diff != "" || d.Ready != ready {
			t.Errorf("ready %v, want %v (-want +got):\n%s\n%+v", d.Ready, ready, diff, d.Checks)
		}
		for name, part := range says {
			if got := detail(d, name); !strings.Contains(got, part) {
				t.Errorf("%s: %q, want it to say %q", name, got, part)
			}
		}
	}

	look(nil, map[string]string{"agent-pcr": "PCR 15 is not extended yet", "event-log": "they match the TPM", "tpm": l.expect.EKDigest})
	if _, err := os.Stat(l.config.StateDir); !os.IsNotExist(err) {
		t.Errorf("the doctor made the state folder: %v", err)
	}
	if len(l.begun) > 0 {
		t.Error("the doctor opened a session")
	}

	must(t, l.provision())
	look(nil, map[string]string{"agent-pcr": "handed over in this boot"})

	lock, err := os.OpenFile(filepath.Join(l.config.StateDir, "lock"), os.O_RDWR, 0)
	must(t, err)
	must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	look(map[string]checklist.Result{"other-agent": "failed", "tpm": "skipped", "agent-pcr": "skipped", "event-log": "skipped"},
		map[string]string{"other-agent": "another portcullis-agent"})
	must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)) // a child that another test is just starting has the file open, too
	must(t, lock.Close())
	look(nil, nil)

	good := l.config
	l.config.StateDir = filepath.Join(t.TempDir(), "elsewhere")
	look(map[string]checklist.Result{"agent-pcr": "failed"}, map[string]string{"agent-pcr": "no record of"})
	l.config = good

	l.config.CA = apitest.Start(t, apitest.NewSite(t)).CAFile
	look(map[string]checklist.Result{"service-certificate": "failed", "service-ready": "skipped", "clock": "skipped"},
		map[string]string{"service-certificate": "does not prove that it is the service"})
	l.config.CA = filepath.Join(t.TempDir(), "none.pem")
	look(map[string]checklist.Result{"service": "failed", "service-certificate": "skipped", "service-ready": "skipped", "clock": "skipped"},
		map[string]string{"service": "copy the service's CA"})
	l.config = good

	l.wire.set(false)
	look(map[string]checklist.Result{"service": "failed", "service-certificate": "skipped", "service-ready": "skipped", "clock": "skipped"},
		map[string]string{"service": "check the network"})
	l.wire.set(true)

	file := filepath.Join(l.config.Sysfs, "kernel/security/tpm0/binary_bios_measurements")
	must(t, os.WriteFile(file, l.tpm.EventLog()[:len(l.tpm.EventLog())-1], 0o644))
	look(map[string]checklist.Result{"event-log": "failed"}, nil)
	must(t, os.Remove(file))
	look(map[string]checklist.Result{"event-log": "warning"}, nil)
}
