package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/lonesm"
	"portcullis/fabricsm/sim/netlist"
)

// TestSMTellsOfLanes: on a ring of five, minhop is passed over. The output reports that dfsssp needs lanes, and that a root
// does not exist.
func TestSMTellsOfLanes(t *testing.T) {
	t.Parallel()
	l, err := netlist.Torus(netlist.Shape{Size: "5", Hosts: 5})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, roots := filepath.Join(dir, "ring.net"), filepath.Join(dir, "roots")
	write(t, file, text.String())
	write(t, roots, "0x99\n")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, log bytes.Buffer
	args := []string{"sm", "--port", "sim:" + file, "--once", "--json", "--engine", "minhop,dfsssp,updn", "--root-guid-file", roots}
	if code := run(ctx, args, time.Now, nil, &out, &log); code != command.ExitOK {
		t.Fatalf("exit code %d: %s", code, log.String())
	}
	var r lonesm.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	problems := strings.Join(r.Problems, "\n")
	for _, want := range []string{"routing engine minhop: credit loop over 5 links", "routing engine dfsssp uses ", "root switch 0x0000000000000099 is not in the fabric"} {
		if !strings.Contains(problems, want) {
			t.Errorf("the report does not say %q:\n%s", want, problems)
		}
	}
	if r.Engine != "dfsssp" || !strings.Contains(log.String(), "safe from deadlock") {
		t.Errorf("engine %s; logged:\n%s", r.Engine, log.String())
	}
}
