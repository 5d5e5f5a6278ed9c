package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/fabricsm/sim/netlist"
)

func TestRoutingOptions(t *testing.T) {
	dir := t.TempDir()
	roots, bad := filepath.Join(dir, "roots"), filepath.Join(dir, "bad")
	write(t, roots, "0x0010000200000001 # spine1\n")
	write(t, bad, "0x1\nspine\n")
	for _, tt := range []struct{ args, engines, complaint, problem string }{
		{args: "", engines: "minhop updn"},
		{args: "--engine TORUS-2qos,dfsssp,no_fallback", engines: "torus-2QoS dfsssp"},
		{args: "--engine ftree --root-guid-file " + roots, engines: "ftree"},
		{args: "--engine ftree,lash", complaint: "--engine \"ftree,lash\": there is no routing engine \"lash\": want some of dfp, dfsssp, dnup, dor, file, "},
		{args: "--max-lanes 9", complaint: "--max-lanes 9: want 1 to 8"},
		{args: "--root-guid-file " + bad, problem: bad + `:2: GUID "spine": want 0x`},
		{args: "--torus-config " + dir + "/none", problem: "none: no such file"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			o, complaint := smArgs(append(strings.Fields(tt.args), "--port", "sim:x")...)
			if !strings.Contains(complaint, tt.complaint) || (o == nil) != (tt.complaint != "") {
				t.Fatalf("said %q, want %q", complaint, tt.complaint)
			}
			if o == nil {
				return
			}
			core, err := o.config.Fabric.core(o.config.path)
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("got %v, want %s", err, tt.problem)
				}
				return
			}
			var names []string
			for _, e := range core.Engines {
				names = append(names, e.Name())
			}
			if got := strings.Join(names, " "); err != nil || got != tt.engines {
				t.Errorf("engines %s, error %v; want %s", got, err, tt.engines)
			}
		})
	}
}

// TestSMTellsOfLanes: on a ring of five, minhop is passed over. The output reports that dfsssp needs lanes, and that a root
// does not exist.
func TestSMTellsOfLanes(t *testing.T) {
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
	if code := run(ctx, args, nil, &out, &log); code != exitOK {
		t.Fatalf("exit code %d: %s", code, log.String())
	}
	var r smReport
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
