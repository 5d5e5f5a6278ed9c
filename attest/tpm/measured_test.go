package tpm_test

import (
	"os"
	"path/filepath"
	"testing"

	"portcullis/attest/eventlog"
	"portcullis/attest/tpm"
	"portcullis/attest/tpm/tpmtest"
)

// TestMeasuredBoot: the log of a real TPM's boot leads to its registers, after a
// power cycle with new firmware too, and then the old log does not.
func TestMeasuredBoot(t *testing.T) {
	dev := tpmtest.New(t, tpmtest.Options{})
	first := dev.EventLog()
	matches(t, dev, first, true)
	dev.Machine().Firmware = "2.20.0"
	if err := dev.PowerCycle(t.Context()); err != nil {
		t.Fatal(err)
	}
	matches(t, dev, dev.EventLog(), true)
	matches(t, dev, first, false)
	sysfs := t.TempDir()
	if err := dev.PlantEventLog(sysfs); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(sysfs, tpmtest.EventLogFile)); err != nil || string(b) != string(dev.EventLog()) {
		t.Errorf("planted %d bytes, %v", len(b), err)
	}
}

func matches(t *testing.T, dev *tpmtest.TPM, log []byte, want bool) {
	t.Helper()
	d, err := tpm.Open(t.Context(), dev.Device())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	pcrs := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12}
	values, err := d.ReadPCRs(t.Context(), pcrs)
	if err != nil {
		t.Fatal(err)
	}
	var quoted []eventlog.Quoted
	for i, n := range pcrs {
		quoted = append(quoted, eventlog.Quoted{PCR: n, Value: eventlog.Digest(values[i])})
	}
	l, err := eventlog.Parse(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Match(quoted); (err == nil) != want {
		t.Errorf("matches: %v, want %v", err, want)
	}
}
