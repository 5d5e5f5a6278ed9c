package netlist_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
)

// discovered is the output of ibnetdiscover 44 for an ibsim fabric, with LIDs.
const discovered = `#
# Topology file: generated on Sat Nov 21 14:59:00 2026
#
# Initiated from node 0020000000000000 port 0020000000000001

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x10000100000001
switchguid=0x10000100000001(10000100000001)
Switch	4 "S-0010000100000001"		# "leaf one" enhanced port 0 lid 3 lmc 0
[1]	"H-0020000000000000"[1](20000000000001) 		# "sm" lid 1 4xEDR
[2]	"H-0020000000000100"[1](20000000000101) 		# "h1" lid 2 4xHDR

vendid=0x0
devid=0x0
sysimgguid=0x20000000000000
caguid=0x20000000000000
Ca	1 "H-0020000000000000"		# "sm"
[1](20000000000001) 	"S-0010000100000001"[1]		# lid 1 lmc 0 "leaf one" lid 3 4xEDR

vendid=0x0
devid=0x0
sysimgguid=0x20000000000100
caguid=0x20000000000100
Ca	1 "H-0020000000000100"		# "h1"
[1](20000000000101) 	"S-0010000100000001"[2]		# lid 2 lmc 1 "leaf one" lid 3 4xHDR
`

func TestParseDiscovered(t *testing.T) {
	l, err := netlist.Parse("d.net", []byte(strings.Replace(discovered, "enhanced port 0 lid 3", "enhanced port 0 lid 5", 1)))
	if err != nil {
		t.Fatal(err)
	}
	edr := netlist.Link{Width: 3, Speed: 7, SpeedExt: 3, FDR10: true}
	hdr := netlist.Link{Width: 3, Speed: 7, SpeedExt: 7, FDR10: true}
	none := netlist.Link{Width: 2, Speed: 1}
	want := &netlist.Netlist{Nodes: []netlist.Node{
		{
			Type: ib.NodeSwitch, Name: "S-0010000100000001", Description: "leaf one", GUID: 0x0010000100000001,
			SystemImageGUID: 0x0010000100000001, VendorID: 0x2c9, DeviceID: 0xd2f0, EnhancedPort0: true, Line: 10,
			Ports: []netlist.Port{
				{LID: 5, Link: none},
				{Peer: "H-0020000000000000", PeerPort: 1, Link: edr},
				{Peer: "H-0020000000000100", PeerPort: 1, Link: hdr},
				{Link: none},
				{Link: none},
			},
		},
		{
			Type: ib.NodeCA, Name: "H-0020000000000000", Description: "sm", GUID: 0x0020000000000000,
			SystemImageGUID: 0x0020000000000000, Line: 18,
			Ports: []netlist.Port{{Link: none}, {Peer: "S-0010000100000001", PeerPort: 1, LID: 1, Link: edr}},
		},
		{
			Type: ib.NodeCA, Name: "H-0020000000000100", Description: "h1", GUID: 0x0020000000000100,
			SystemImageGUID: 0x0020000000000100, Line: 25,
			Ports: []netlist.Port{{Link: none}, {Peer: "S-0010000100000001", PeerPort: 2, LID: 2, LMC: 1, Link: hdr}},
		},
	}}
	if diff := cmp.Diff(l, want); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}
}

func TestParseReportsEveryLIDUsedTwice(t *testing.T) {
	_, err := netlist.Parse("d.net", []byte(discovered))
	if err == nil || !strings.Contains(err.Error(), `d.net:25: LID 3 of port 1 of "H-0020000000000100" is used by "S-0010000100000001", too`) {
		t.Errorf("error %v", err)
	}
}

func TestParseDefaultsAndOptions(t *testing.T) {
	l, err := netlist.Parse("o.net", []byte(`switchguid+0x10
speed=7
Switch 2 "a"
[1] "b"[2] w=1 s=2 e=4
[2]	"b"

Switch 2 "b"
[1] "a"[2]
[2] "a"[1] w=1 s=2
`))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := l.Find("a"), l.Find("b"); a.GUID != 0x200010 || b.GUID != 0x200011 {
		t.Errorf("GUIDs %v and %v", a.GUID, b.GUID)
	}
	if diff := cmp.Diff(l.Find("a").Ports[1:], []netlist.Port{
		{Peer: "b", PeerPort: 2, Link: netlist.Link{Width: 1, Speed: 2, SpeedExt: 4}},
		{Peer: "b", PeerPort: 1, Link: netlist.Link{Width: 2, Speed: 7}},
	}); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}
}

func TestParseErrors(t *testing.T) {
	const node = "caguid=0x10\nCa 2 \"a\"\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "e.net: it describes no node"},
		{"only comments", "# nothing\n", "e.net: it describes no node"},
		{"unknown statement", "Router 3 \"r\"\n", "e.net:1: unknown statement"},
		{"include", "include \"other.net\"\n", `e.net:1: "include" is not supported`},
		{"console command", node + "\ndo unlink \"a\"\n", `e.net:4: "do" is not supported`},
		{"alias", node + "@[1] \"x\"\n", "e.net:3: port aliases are not supported"},
		{"no ports", "Ca \"a\"\n", "e.net:1: want a number of ports"},
		{"ports beyond a byte", "Switch 255 \"a\"\n", "want a number of ports, 1 to 254"},
		{"name not closed", "Ca 1 \"a\n", "e.net:1: want the name of the node in quotes"},
		{"empty name", "Ca 1 \"\"\n", "e.net:1: want the name"},
		{"long name", "Ca 1 \"" + strings.Repeat("n", 32) + "\"\n", "has 32 bytes, the most is 31"},
		{"reserved character", "Ca 1 \"a#b\"\n", "the characters # and @ are reserved"},
		{"long line", "# " + strings.Repeat("n", 300) + "\n", "e.net:1: line of 302 bytes"},
		{"node twice", node + "\nCa 1 \"a\"\n", `e.net:4: node "a" is defined in line 2 already`},
		{"GUID twice", node + "\ncaguid=0x10\nCa 1 \"b\"\n", `e.net:5: GUID 0x0000000000000010 of node "b" is used by "a", too`},
		{"port GUID twice", node + "\ncaguid=0x11\nCa 1 \"b\"\n", `GUID 0x0000000000000011 of port 1 of "a" is used by "b", too`},
		{"router without GUID", "Rt 1 \"r\"\n", "has no valid GUID"},
		{"GUID overflow", "caguid=0xfffffffffffffffe\nCa 4 \"a\"\n", "has no valid GUID"},
		{"GUID in decimal", "caguid=16\n", `e.net:1: GUID "16": want 0x`},
		{"GUID without sign", "caguid 0x10\n", "want = or +"},
		{"vendor too large", "vendid=0x1000000\n", "want = and a number from 0 to 16777215"},
		{"width zero", "width=0\n", "from 1 to 31"},
		{"port without node", "[1] \"a\"[1]\n", "e.net:1: port line outside a node"},
		{"port zero", node + "[0] \"b\"[1]\n", `e.net:3: want a port from 1 to 2 of "a"`},
		{"port beyond node", node + "[3] \"b\"[1]\n", `want a port from 1 to 2 of "a"`},
		{"port twice", node + "[1] \"b\"[1]\n[1] \"b\"[2]\n", `e.net:4: port 1 of "a" has a cable already`},
		{"no peer", node + "[1]\n", "e.net:3: want the node at the other end"},
		{"peer port zero", node + "[1] \"b\"[0]\n", "want the port at the other end"},
		{"peer unknown", node + "[1] \"b\"[1]\n", `e.net:3: port 1 of "a" is cabled to "b", which is not in the netlist`},
		{"peer port unknown", node + "[1] \"b\"[2]\n\nCa 1 \"b\"\n[1] \"a\"[1]\n", `e.net:3: port 1 of "a" is cabled to port 2 of "b", which has 1 ports`},
		{"one-sided cable", node + "[1] \"b\"[1]\n\nCa 1 \"b\"\n", "does not name it in return"},
		{"loop", node + "[1] \"a\"[1]\n", "is cabled to itself"},
		{"no common width", node + "[1] \"b\"[1] w=1\n\nCa 1 \"b\"\n[1] \"a\"[1] w=2\n", "no link width or speed in common"},
		{"option out of range", node + "[1] \"b\"[1] w=0\n", `e.net:3: port option "w=0"`},
		{"option without number", node + "[1] \"b\"[1] s=fast\n", `e.net:3: port option "s=fast"`},
		{"comment without link", node + "[1] \"b\"[1] # lid 1 lmc 0 \"b\" lid 2\n", "want the description in quotes"},
		{"comment with bad link", node + "[1] \"b\"[1] # \"b\" lid 2 4xWARP\n", `e.net:3: link "4xWARP"`},
		{"LID out of range", node + "[1] \"b\"[1] # lid 49152 lmc 0 \"b\" lid 2 4xEDR\n", `e.net:3: lid "49152"`},
		{"LMC out of range", node + "[1] \"b\"[1] # lid 1 lmc 8 \"b\" lid 2 4xEDR\n", `e.net:3: lmc "8"`},
		{"LIDs beyond the end", node + "[1] \"b\"[1] # lid 49151 lmc 1 \"b\" lid 2 4xEDR\n", "goes beyond 49151"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := netlist.Parse("e.net", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestParseBoundsItsReport(t *testing.T) {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "nonsense%d\n", i)
	}
	_, err := netlist.Parse("e.net", []byte(text.String()))
	if got := strings.Count(err.Error(), "\n") + 1; got != 50 {
		t.Errorf("%d problems reported, want 50", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(discovered))
	f.Add([]byte("Switch 2 \"a\"\n[1] \"a\"[2] w=1 s=0 e=15\n[2] \"a\"\n"))
	f.Add([]byte("caguid+0xffffffffffffffff\nHca 254 \"x\" # \"y\" lid 1 lmc 7\n[254](1) \"x\"[1](2)# lid 65535"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := netlist.Parse("fuzz.net", data)
		if err != nil {
			return
		}
		text := write(t, l)
		again, err := netlist.Parse("again.net", []byte(text))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, text)
		}
		if len(again.Nodes) != len(l.Nodes) {
			t.Fatalf("%d nodes were written, %d read", len(l.Nodes), len(again.Nodes))
		}
	})
}
