package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/chain"
	"portcullis/fabricsm/sm/record"
)

// TestRecordOption: the record of a run can be replayed, and does not replace a
// file.
func TestRecordOption(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sm.record")
	if code, _, complaint := once(t, "--record", file); code != exitOK {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := record.Replay(f, func(name string, options []byte) (route.Engine, error) {
		engines, err := (&chain.Settings{}).Engines(name)
		if err != nil {
			return nil, err
		}
		return record.Engine(engines[0], options)
	})
	if err != nil || r.Differs != nil || r.Ends != "" || r.Steps < 20 {
		t.Errorf("replay: %v, %+v", err, r)
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	code, _, complaint := once(t, "--record", file)
	if code != exitError || !strings.Contains(complaint, "name a file that is not there yet") {
		t.Errorf("onto a file that is there: exit code %d, %q", code, complaint)
	}
}
