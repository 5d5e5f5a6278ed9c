package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"portcullis/agent"
	"portcullis/attest"
	"portcullis/attest/tpm/tpmtest"
)

// TestMeasuredBoot checks that the agent sends the log of this boot, from where it is. The service compares the log with
// the TPM's quote and with its reference values.
func TestMeasuredBoot(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(t *testing.T, l *lab)
		want    attest.Reason // "": accepted
	}{
		{"below sysfs", func(*testing.T, *lab) {}, ""},
		{"where the configuration says", func(t *testing.T, l *lab) {
			l.config.EventLog = filepath.Join(t.TempDir(), "log")
			must(t, os.Rename(filepath.Join(l.config.Sysfs, tpmtest.EventLogFile), l.config.EventLog))
		}, ""},
		{"a credential of the unit", func(t *testing.T, l *lab) {
			dir := t.TempDir()
			t.Setenv("CREDENTIALS_DIRECTORY", dir)
			must(t, os.Rename(filepath.Join(l.config.Sysfs, tpmtest.EventLogFile), filepath.Join(dir, "eventlog")))
		}, ""},
		{"none", func(t *testing.T, l *lab) {
			must(t, os.Remove(filepath.Join(l.config.Sysfs, tpmtest.EventLogFile)))
		}, attest.ReasonEventLog},
		{"a credential that says none", func(t *testing.T, l *lab) {
			dir := t.TempDir()
			t.Setenv("CREDENTIALS_DIRECTORY", dir)
			must(t, os.WriteFile(filepath.Join(dir, "eventlog"), []byte("none"), 0o600))
		}, attest.ReasonEventLog},
		{"of the boot before", func(t *testing.T, l *lab) {
			l.tpm.Machine().Image = "tenant's"
			must(t, l.tpm.PowerCycle(t.Context()))
		}, attest.ReasonEventLog},
		{"of a boot that is not the site's", func(t *testing.T, l *lab) {
			l.tpm.Machine().Image = "tenant's"
			must(t, l.tpm.PowerCycle(t.Context()))
			must(t, l.tpm.PlantEventLog(l.config.Sysfs))
		}, attest.ReasonReference},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			tc.prepare(t, l)
			err := l.provision()
			v := l.verdicts[len(l.verdicts)-1]
			if v.Code != tc.want || (err == nil) != (tc.want == "") {
				t.Errorf("%v, reason %q (%s); want %q", err, v.Code, v.Detail, tc.want)
			}
			if tc.want == "" && v.Facts.Reference != "default/1" {
				t.Errorf("accepted by %q", v.Facts.Reference)
			}
		})
	}
}

// TestEventLogUnreadable checks that a log that exists but cannot be read completely is reported before anything is
// measured.
func TestEventLogUnreadable(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.config.EventLog = filepath.Join(t.TempDir(), "none")
	wantClass(t, l.provision(), agent.ClassOther, "event log")
	large := filepath.Join(t.TempDir(), "large")
	must(t, os.WriteFile(large, make([]byte, attest.MaxEventLog+1), 0o600))
	l.config.EventLog = large
	wantClass(t, l.provision(), agent.ClassOther, "more than 524288 bytes")
	if len(l.begun) != 0 {
		t.Errorf("%d sessions were opened", len(l.begun))
	}
}
