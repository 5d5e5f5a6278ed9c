package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/lonesm"
	"portcullis/fabricsm/sim/netlist"
)

// TestSMOnFabricsWithCircles: where shortest paths have circles, an engine that has none takes over, and the reason is
// reported. An engine that needs more lanes than there are makes no tables, and that is reported, too.
func TestSMOnFabricsWithCircles(t *testing.T) {
	t.Parallel()
	dragonfly := func() (*netlist.Netlist, error) { return netlist.DragonflyPlus(netlist.Shape{}) }
	// In a ring of five, each shortest path is the only one. In one of four it depends on the LIDs whether they have a circle, and LIDs on the order
	// in which answers come.
	torus := func() (*netlist.Netlist, error) { return netlist.Torus(netlist.Shape{Size: "5x5", Hosts: 25}) }
	tests := []struct {
		name   string
		fabric func() (*netlist.Netlist, error)
		args   []string
		engine string
		said   string
	}{
		{"dragonfly+", dragonfly, []string{"--engine", "dfp"}, "dfp", ""},
		{
			"dragonfly+, one lane", dragonfly,
			[]string{"--engine", "dfp,updn", "--max-lanes", "1"},
			"updn",
			"routing engine dfp: routes between groups: these routes need more than 1 virtual lanes; allow more, or use updn",
		},
		{
			"dragonfly+, links of one lane", dragonfly,
			[]string{"--engine", "dfp,updn", "--max-vls", "1"},
			"updn",
			"routing engine dfp: routes between groups: these routes need more than 1 virtual lanes",
		},
		{"dragonfly+, default", dragonfly, nil, "updn", "routing engine minhop: credit loop"},
		{"torus, default", torus, nil, "updn", "routing engine minhop: credit loop"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := tt.fabric()
			if err != nil {
				t.Fatal(err)
			}
			var text, out, log bytes.Buffer
			if _, err := l.WriteTo(&text); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "fabric.net")
			write(t, file, text.String())
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			args := append([]string{"sm", "--port", "sim:" + file, "--once", "--json"}, tt.args...)
			if code := run(ctx, args, time.Now, nil, &out, &log); code != command.ExitOK {
				t.Fatalf("exit code %d: %s", code, log.String())
			}
			var r struct {
				Ports    lonesm.PortCount
				Engine   string `json:"routing_engine"`
				Problems []string
			}
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Ports.Active != r.Ports.Cabled || r.Ports.Cabled == 0 {
				t.Errorf("%d of %d ports are Active", r.Ports.Active, r.Ports.Cabled)
			}
			if r.Engine != tt.engine {
				t.Errorf("engine %s made the tables, want %s", r.Engine, tt.engine)
			}
			if said := strings.Join(r.Problems, "\n"); !strings.Contains(said, tt.said) || tt.said == "" && strings.Contains(said, "routing engine "+tt.engine+": ") {
				t.Errorf("it says %q, want %q", said, tt.said)
			}
		})
	}
}

// TestSMTellsWhyNothingIsRouted: with no engine that fits, the links stay as they
// are, and the reason is in the log, for as long as it takes.
func TestSMTellsWhyNothingIsRouted(t *testing.T) {
	t.Parallel()
	l, err := netlist.DragonflyPlus(netlist.Shape{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fabric.net")
	write(t, file, text.String())
	d := launch(t, exec.Command("portcullisd", "sm", "--port", "sim:"+file, "--engine", "dfp", "--max-lanes", "1"))
	eventually(t, "the reason", func() (bool, string) {
		said := d.lines.String()
		return strings.Contains(said, "routing engine dfp: routes between groups: these routes need more than 1 virtual lanes; allow more, or use updn"), said
	})
	if said := d.lines.String(); strings.Contains(said, "Settled") || strings.Contains(said, "fabric settled") {
		t.Errorf("a fabric without tables counts as settled:\n%s", said)
	}
}
