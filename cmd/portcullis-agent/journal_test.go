package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestProgressForTheJournal: each record is a line of JSON behind its priority.
func TestProgressForTheJournal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := newPrioritized(&out)
	log.Debug("not shown")
	log.With("host", "compute-01").Info("connecting\nnow", "pcr", 15)
	log.Warn("again")
	log.WithGroup("end").Error("no TPM", "exit_code", 3)
	want := []struct{ prefix, msg, level string }{
		{"<6>", "connecting\nnow", "INFO"}, {"<4>", "again", "WARN"}, {"<3>", "no TPM", "ERROR"},
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %q", lines)
	}
	for i, w := range want {
		text, ok := strings.CutPrefix(lines[i], w.prefix)
		var record map[string]any
		if err := json.Unmarshal([]byte(text), &record); !ok || err != nil || record["msg"] != w.msg || record["level"] != w.level {
			t.Errorf("line %q, %v; want %v", lines[i], err, w)
		}
		if i == 0 && (record["host"] != "compute-01" || record["pcr"] != 15.0) {
			t.Errorf("fields %v", record)
		}
	}
}

// TestProgressForMachines: off a terminal and the journal progress is bare JSON.
func TestProgressForMachines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{stderr: &out}
	a.logger().Warn("again", slog.Int("pcr", 15))
	var record map[string]any
	if err := json.Unmarshal(out.Bytes(), &record); err != nil || record["msg"] != "again" || record["pcr"] != 15.0 || !a.machine {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// TestToJournal checks that a stream is recognized by the device and inode in JOURNAL_STREAM.
func TestToJournal(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "")
	if toJournal() {
		t.Error("without JOURNAL_STREAM it is taken for the journal")
	}
	name := streamName(t, os.Stderr)
	t.Setenv("JOURNAL_STREAM", name)
	if !toJournal() {
		t.Errorf("standard error is %s, and is not taken for the journal", name)
	}
	t.Setenv("JOURNAL_STREAM", "1:"+strings.Repeat("9", 9))
	if toJournal() {
		t.Error("another stream is taken for standard error")
	}
}

func streamName(t *testing.T, f *os.File) string {
	t.Helper()
	var s syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}
