package ibsimserver_test

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

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

// accepted are lines in which the simulators may differ, by how they begin, and
// why.
var accepted = []struct{ begins, because string }{
	{"# Topology file", "the time of the run"},
	{"LinearFdbTop", "ibsim starts with 4, we with 0: no table has been written yet"},
	{"McastFdbTop", "not set on either; only devices that support it have it"},
	{"StateChange", "set by the links coming up, and cleared by whoever read it"},
	{"InboundPartEnf", "ibsim cannot enforce P_Keys, our switches can"},
	{"OutboundPartEnf", "ibsim cannot enforce P_Keys, our switches can"},
	{"PartEnforce", "ibsim forgets that it was told to enforce P_Keys"},
	{"CapMask", "our devices can do more: system image GUIDs, client reregistration, other local changes"},
	{"Is", "the bits of CapMask by name"},
	{"MtuCap", "ibsim's ports take 2048 bytes, of a switch itself 1024; ours 4096, as devices do"},
	{"NeighborMTU", "follows MtuCap; ibsim starts with it, we with 256 bytes"},
	{"GidPrefix", "ibsim starts without one, we with fe80::, as the standard has it"},
	{"GuidCap", "ibsim's switches have one entry"},
	{"SubnetTimeout", "ibsim starts with 31, which is hours"},
	{"RespTimeVal", "ibsim starts with 0 or 31"},
	{"VLStallCount", "ibsim starts with 7, the standard has no initial value"},
	{"LocalPhysErr", "thresholds, 8 on ours, which ibsim forgets"},
	{"OverrunErr", "thresholds, 8 on ours, which ibsim forgets"},
	{"MkeyLeasePeriod", "ibsim reads 4089, which nobody set"},
	{"LinkWidthEnabled", "OpenSM asks for all that is supported, which ibsim's ports do not do"},
	{"LinkSpeedExtSupported", "our ports can do NDR, those of ibsim HDR"},
	{"LinkSpeedExtEnabled", "OpenSM asks for all that is supported, which ibsim's ports do not do"},
	{"ports: in", "ibsim maps SL 8 to 14 to lanes that its own ports have not"},
	{"WEIGHT", "ibsim gives lane 0 to the high table alone, we all lanes to the low one"},
	{"LinkDownedCounter", "ibsim does not count links that a subnet manager takes down"},
	{"PortXmit", "ibsim counts packets, not words of data, and OpenSM sends fewer Sets to who keeps them"},
	{"PortRcvData", "as PortXmit"},
	{"PortRcvPkts", "as PortXmit"},
	{"PortUnicast", "as PortXmit"},
	{"# Port counters", "the capabilities in its end: all-port select, 64-bit counters"},
	{"# Port extended", "the capabilities in its end: all-port select, 64-bit counters"},
}

var spaces = regexp.MustCompile(`[ \t]+`)

// couldBe is the text that iblinkinfo adds where ports can do more than the link: it follows LinkSpeedExtSupported.
var couldBe = regexp.MustCompile(`\(\s*Could be [^)]*\)`)

// compared drops the accepted lines.
func compared(out []byte) (lines []string) {
	for line := range strings.Lines(string(out)) {
		skip := false
		for _, a := range accepted {
			skip = skip || strings.HasPrefix(strings.TrimSpace(line), a.begins)
		}
		if !skip {
			lines = append(lines, spaces.ReplaceAllString(strings.TrimSpace(couldBe.ReplaceAllString(line, "")), " "))
		}
	}
	return lines
}

// question is one call of a tool.
type question struct {
	name string
	tool string
	args []string
}

// same runs the tool on both simulators, from node sm, and compares its output.
func (q *question) same(t *testing.T, ours ibsimlab.Client, lab *ibsimlab.Lab) {
	t.Helper()
	want, wantErr := lab.Diag(t.Context(), "sm", q.tool, q.args...)
	got, err := ours.Diag(t.Context(), "sm", q.tool, q.args...)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("on ours %v, on ibsim %v\n%s", err, wantErr, got)
	}
	a, b := compared(got), compared(want)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("line %d: ours %q\n     ibsim %q", i, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		t.Errorf("ours has %d lines, ibsim %d:\nours:\n%s\nibsim:\n%s", len(a), len(b), got, want)
	}
}

func TestDiagnosticsAnswerAsOnIbsim(t *testing.T) {
	f, text := fabric(t)
	ibsimtest.Need(t, "ibnetdiscover", "smpquery")
	lab := ibsimtest.Start(t, text)
	ours := simtest.Serve(t, f)
	for _, q := range []question{
		{"topology", "ibnetdiscover", nil},
		{"links", "iblinkinfo", nil},
		{"own NodeInfo", "smpquery", []string{"-D", "nodeinfo", "0"}},
		{"NodeInfo of a switch", "smpquery", []string{"-D", "nodeinfo", "0,1"}},
		{"NodeInfo through the spine", "smpquery", []string{"-D", "nodeinfo", "0,1,3,3,1"}},
		{"nobody there", "smpquery", []string{"-D", "nodeinfo", "0,1,3,9"}},
		{"NodeDescription", "smpquery", []string{"-D", "nodedesc", "0,1,2"}},
		{"PortInfo of an HCA", "smpquery", []string{"-D", "portinfo", "0,1,2", "1"}},
		{"PortInfo of a switch's port 0", "smpquery", []string{"-D", "portinfo", "0,1", "0"}},
		{"PortInfo of a switch port", "smpquery", []string{"-D", "portinfo", "0,1", "3"}},
		{"SwitchInfo", "smpquery", []string{"-D", "switchinfo", "0,1"}},
		{"P_Keys of an HCA", "smpquery", []string{"-D", "pkeys", "0,1,2", "1"}},
		{"P_Keys of a switch port", "smpquery", []string{"-D", "pkeys", "0,1", "2"}},
		{"GUIDInfo", "smpquery", []string{"-D", "guidinfo", "0,1,2"}},
		{"SL to VL of an HCA", "smpquery", []string{"-D", "sl2vl", "0,1,2", "1"}},
		{"SL to VL of a switch port", "smpquery", []string{"-D", "sl2vl", "0,1", "2"}},
		{"VL arbitration of an HCA", "smpquery", []string{"-D", "vlarb", "0,1,2", "1"}},
		{"VL arbitration of a switch port", "smpquery", []string{"-D", "vlarb", "0,1", "2"}},
	} {
		t.Run(q.name, func(t *testing.T) { q.same(t, ours, lab) })
	}
}

// Once OpenSM has brought both fabrics up, diagnostics that need LIDs answer
// alike, on fabrics of every kind.
func TestDiagnosticsAfterOpenSM(t *testing.T) {
	ibsimtest.Need(t, "opensm", "ibnetdiscover", "iblinkinfo", "smpquery", "ibtracert", "perfquery", "sminfo", "ibqueryerrors")
	for _, tt := range []struct {
		name string
		make func() (*netlist.Netlist, error)
		far  string // LID of some far node
	}{
		{"fat tree", func() (*netlist.Netlist, error) { return netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4}) }, "4"},
		{"rail pods", func() (*netlist.Netlist, error) {
			return netlist.RailPods(netlist.Shape{Hosts: 10, HCAs: 2, Radix: 8, Link: "4xHDR"})
		}, "9"},
		{"dragonfly+", func() (*netlist.Netlist, error) { return netlist.DragonflyPlus(netlist.Shape{Hosts: 12}) }, "11"},
		{"torus with routers", func() (*netlist.Netlist, error) {
			return netlist.Torus(netlist.Shape{Hosts: 9, Size: "3x3", Routers: 2, Link: "4xQDR"}) // ibsim's routers know nothing above
		}, "12"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, err := tt.make()
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if _, err := l.WriteTo(&text); err != nil {
				t.Fatal(err)
			}
			lab, ours := ibsimtest.Start(t, text.Bytes()), simtest.Serve(t, sim.New(l))
			bringUp(t, lab.Client())
			bringUp(t, ours)
			for _, q := range []question{
				{"topology", "ibnetdiscover", nil},
				{"links", "iblinkinfo", nil},
				{"NodeInfo", "smpquery", []string{"nodeinfo", tt.far}},
				{"PortInfo", "smpquery", []string{"portinfo", tt.far}},
				{"PortInfo of a switch port", "smpquery", []string{"-D", "portinfo", "0,1", "1"}},
				{"SwitchInfo", "smpquery", []string{"-D", "switchinfo", "0,1"}},
				{"P_Keys", "smpquery", []string{"pkeys", tt.far}},
				{"P_Keys of a switch port", "smpquery", []string{"-D", "pkeys", "0,1", "1"}},
				{"SL to VL", "smpquery", []string{"sl2vl", tt.far}},
				{"VL arbitration", "smpquery", []string{"vlarb", tt.far}},
				{"GUIDInfo", "smpquery", []string{"guidinfo", tt.far}},
				{"path", "ibtracert", []string{"1", tt.far}},
				{"way back", "ibtracert", []string{tt.far, "1"}},
				{"counters", "perfquery", []string{"1", "1"}},
				{"64-bit counters", "perfquery", []string{"-x", tt.far, "1"}},
				{"errors", "ibqueryerrors", nil},
				{"SM that went", "sminfo", []string{tt.far}},
			} {
				t.Run(q.name, func(t *testing.T) { q.same(t, ours, lab) })
			}
		})
	}
}

// bringUp runs OpenSM once.
func bringUp(t *testing.T, c ibsimlab.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if _, err := c.OpenSM(ctx, "sm", c.Dir); err != nil {
		t.Fatal(err)
	}
}
