package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/lonesm"
	"portcullis/fabricsm/driver/guid2lid"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// bringUp runs "portcullisd sm --once" on a lab and returns the Sets it sent.
func bringUp(t *testing.T, lab *ibsimlab.Lab, args ...string) (sets uint64, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, complaint strings.Builder
	args = append([]string{"sm", "--port", "ibsim:" + lab.Socket() + "/sm", "--once", "--json", "--enforcement", "accepted"}, args...)
	if code := run(ctx, args, time.Now, nil, &out, &complaint); code != command.ExitOK {
		t.Fatalf("exit code %d, said %s", code, complaint.String())
	}
	var r lonesm.Report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	for _, k := range r.SMPs.Kinds {
		if k.Method == "Set" {
			sets += k.Sent
		}
	}
	return sets, complaint.String()
}

// lidsOf reads a list of LIDs by port GUID.
func lidsOf(t *testing.T, file string) map[string]uint16 {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	entries, dropped, err := guid2lid.Parse(file, data)
	if err != nil || len(dropped) > 0 || len(entries) == 0 {
		t.Fatalf("%d entries, dropped %v, %v in\n%s", len(entries), dropped, err, data)
	}
	lids := map[string]uint16{}
	for _, e := range entries {
		lids[e.GUID.String()] = uint16(e.First)
	}
	return lids
}

// lidOn asks a third-party tool for the LID of the port behind a port of the
// switch.
func lidOn(t *testing.T, lab *ibsimlab.Lab, path string) string {
	t.Helper()
	out := ibsimtest.Diag(t, lab, "sm", "smpquery", "-D", "portinfo", path)
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "Lid:"); ok {
			return strings.Trim(rest, ". \n")
		}
	}
	t.Fatalf("no LID in\n%s", out)
	return ""
}

// A restart with a state directory writes nothing, even where devices forget;
// LIDs survive that the fabric loses all of its own.
func TestSMStateDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(t.TempDir(), "guid2lid")
	write(t, file, "0x0000000000200001 0x0033 0x0033\n\n0x0000000000300001 0x0033 0x0033\n\n0x0000000000100000 0x0044 0x0044\n\n")
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	sets, said := bringUp(t, lab, "--state-dir", dir, "--guid2lid", file)
	if sets == 0 || !strings.Contains(said, file+":3: LID 51 of 0x0000000000300001 belongs to 0x0000000000200001") {
		t.Errorf("%d Sets at first, said %s", sets, said)
	}
	lids := lidsOf(t, filepath.Join(dir, "guid2lid"))
	if len(lids) != 4 || lids["0x0000000000200001"] != 0x33 || lids["0x0000000000100000"] != 0x44 {
		t.Errorf("the list for OpenSM has %v", lids)
	}
	if got := lidOn(t, lab, "0,1,1"); got != "51" {
		t.Errorf("h1 has LID %s, want 51", got)
	}
	if sets, said := bringUp(t, lab, "--state-dir", dir); sets != 0 {
		t.Errorf("a restart wrote %d times, said %s", sets, said)
	}
	// Another fabric of the same devices, switched on again.
	fresh := ibsimtest.Start(t, []byte(oneSwitch))
	bringUp(t, fresh, "--state-dir", dir)
	if got := lidsOf(t, filepath.Join(dir, "guid2lid")); !maps.Equal(got, lids) {
		t.Errorf("LIDs after a power cycle %v, before %v", got, lids)
	}
	if got := lidOn(t, fresh, "0,1,1"); got != "51" {
		t.Errorf("h1 has LID %s after a power cycle, want 51", got)
	}
}

// LIDs go from OpenSM to us and back without a change.
func TestSMTakesLIDsOfOpenSM(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "opensm", "smpquery")
	first := ibsimtest.Start(t, []byte(oneSwitch))
	opensmOnce(t, first)
	theirs := lidsOf(t, filepath.Join(first.Dir(), "guid2lid"))

	dir := t.TempDir()
	second := ibsimtest.Start(t, []byte(oneSwitch))
	if _, said := bringUp(t, second, "--state-dir", dir, "--guid2lid", filepath.Join(first.Dir(), "guid2lid")); strings.Contains(said, "cannot have") {
		t.Errorf("said %s", said)
	}
	ours := lidsOf(t, filepath.Join(dir, "guid2lid"))
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("LIDs (-OpenSM's +ours):\n%s", d)
	}

	third := ibsimtest.Start(t, []byte(oneSwitch))
	list, err := os.ReadFile(filepath.Join(dir, "guid2lid"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(third.Dir(), "guid2lid"), string(list))
	opensmOnce(t, third)
	if d := cmp.Diff(theirs, lidsOf(t, filepath.Join(third.Dir(), "guid2lid"))); d != "" {
		t.Errorf("LIDs (-before +after going back to OpenSM):\n%s", d)
	}
}

// opensmOnce has OpenSM bring a lab up once.
func opensmOnce(t *testing.T, lab *ibsimlab.Lab) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := lab.Client().OpenSM(ctx, "sm", lab.Dir()); err != nil {
		t.Fatal(err)
	}
}
