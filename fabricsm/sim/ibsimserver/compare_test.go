package ibsimserver_test

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/ibsimserver"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// serve runs a fabric on a socket of its own until the end of the test.
func serve(t testing.TB, f *sim.Fabric) ibsimlab.Client {
	t.Helper()
	dir := t.TempDir()
	s, err := ibsim.Listen("portcullis" + strings.ReplaceAll(dir, "/", "-"))
	if err != nil {
		t.Fatal(err)
	}
	// Not t.Context, which ends before the clients are closed.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ibsimserver.Serve(ctx, s, f) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ibsimlab.Client{Socket: s.Socket(), Dir: dir}
}

func fabric(t testing.TB) (*sim.Fabric, []byte) {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return sim.New(l), text.Bytes()
}

// accepted are lines in which the simulators may differ, and why.
var accepted = map[string]string{
	"# Topology file": "the time of the run",
	"LinearFdbTop":    "ibsim starts with 4, we with 0: no table has been written yet",
	"InboundPartEnf":  "ibsim cannot enforce P_Keys, our switches can",
	"OutboundPartEnf": "ibsim cannot enforce P_Keys, our switches can",
	"McastFdbTop":     "not set on either; only devices that support it have it",
	"StateChange":     "set by the links coming up, and cleared by whoever read it",
}

var spaces = regexp.MustCompile(`[ \t]+`)

// compared drops the accepted lines.
func compared(out []byte) (lines []string) {
	for line := range strings.Lines(string(out)) {
		skip := false
		for prefix := range accepted {
			skip = skip || strings.HasPrefix(line, prefix)
		}
		if !skip {
			lines = append(lines, spaces.ReplaceAllString(strings.TrimSpace(line), " "))
		}
	}
	return lines
}

func TestDiagnosticsAnswerAsOnIbsim(t *testing.T) {
	f, text := fabric(t)
	ibsimtest.Need(t, "ibnetdiscover", "smpquery")
	lab := ibsimtest.Start(t, text)
	ours := serve(t, f)
	for _, tt := range []struct {
		name string
		tool string
		args []string
	}{
		{"topology", "ibnetdiscover", nil},
		{"own NodeInfo", "smpquery", []string{"-D", "nodeinfo", "0"}},
		{"NodeInfo of a switch", "smpquery", []string{"-D", "nodeinfo", "0,1"}},
		{"NodeInfo through the spine", "smpquery", []string{"-D", "nodeinfo", "0,1,3,3,1"}},
		{"NodeDescription", "smpquery", []string{"-D", "nodedesc", "0,1,2"}},
		{"SwitchInfo", "smpquery", []string{"-D", "switchinfo", "0,1"}},
		{"P_Keys of an HCA", "smpquery", []string{"-D", "pkeys", "0,1,2", "1"}},
		{"P_Keys of a switch port", "smpquery", []string{"-D", "pkeys", "0,1", "2"}},
		{"GUIDInfo", "smpquery", []string{"-D", "guidinfo", "0,1,2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want, err := lab.Diag(t.Context(), "sm", tt.tool, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ours.Diag(t.Context(), "sm", tt.tool, tt.args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			if diff := cmp.Diff(compared(got), compared(want)); diff != "" {
				t.Errorf("ours-, ibsim+\n%s", diff)
			}
		})
	}
}
