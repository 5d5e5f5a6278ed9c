package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"portcullis/cmd/portcullisd/command"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestTorusLanesAreProgrammed brings up a torus on a real ibsim, and has smpquery
// read the lanes: by dateline of the dimension that a packet leaves along, and of
// their own after a turn back from y to x.
func TestTorusLanesAreProgrammed(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "smpquery")
	l, err := netlist.Torus(netlist.Shape{Size: "5x4", Hosts: 4, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	lab := ibsimtest.Start(t, text.Bytes())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, log bytes.Buffer
	args := []string{"sm", "--port", "ibsim:" + lab.Socket() + "/sm", "--once", "--engine", "torus-2QoS,no_fallback"}
	if code := run(ctx, args, time.Now, nil, &out, &log); code != command.ExitOK {
		t.Fatalf("exit code %d: %s", code, log.String())
	}
	// Ports 1 and 2 lead along x, 3 and 4 along y, the host is at 7.
	for _, tt := range []struct{ args, line, want string }{
		{"-D sl2vl 0,1 1", "in  7, out  1:", "| 0| 1| 0| 1| 0| 1| 0| 1|"},
		{"-D sl2vl 0,1 1", "in  2, out  1:", "| 0| 1| 0| 1| 0| 1| 0| 1|"},
		{"-D sl2vl 0,1 1", "in  3, out  1:", "| 2| 3| 2| 3| 2| 3| 2| 3|"},
		{"-D sl2vl 0,1 3", "in  2, out  3:", "| 0| 0| 1| 1| 0| 0| 1| 1|"},
		{"-D sl2vl 0,1 7", "in  3, out  7:", "| 0| 0| 0| 0| 0| 0| 0| 0|"},
	} {
		said := ibsimtest.Diag(t, lab, "sm", "smpquery", strings.Fields(tt.args)...)
		_, rest, _ := strings.Cut(said, tt.line)
		if line, _, _ := strings.Cut(rest, "\n"); !strings.HasPrefix(strings.TrimSpace(line), tt.want) {
			t.Errorf("smpquery %s: %s%s; want %s", tt.args, tt.line, line, tt.want)
		}
	}
}
