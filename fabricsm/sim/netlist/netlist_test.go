package netlist_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
)

func write(t testing.TB, l *netlist.Netlist) string {
	t.Helper()
	var b bytes.Buffer
	n, err := l.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("WriteTo: %d of %d bytes, %v", n, b.Len(), err)
	}
	return b.String()
}

func TestFatTreeIsTheKnownFile(t *testing.T) {
	want, err := os.ReadFile("testdata/ft2-4.net")
	if err != nil {
		t.Fatal(err)
	}
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(write(t, l), string(want)); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}
}

func TestGenerators(t *testing.T) {
	type counts struct{ CAs, Switches, Cables int }
	for _, tt := range []struct {
		name     string
		generate func(netlist.Shape) (*netlist.Netlist, error)
		shape    netlist.Shape
		want     counts
	}{
		{"single", netlist.Single, netlist.Shape{Hosts: 40}, counts{40, 1, 40}},
		{"two levels", netlist.FatTree2, netlist.Shape{Hosts: 324}, counts{324, 27, 648}},
		{"two levels, dense", netlist.FatTree2, netlist.Shape{Hosts: 648}, counts{648, 54, 1296}},
		{"demonstration", netlist.FatTree2, netlist.Shape{Hosts: 9, HCAs: 2, Leaves: 2, Spines: 2}, counts{17, 4, 17 + 36}},
		{"three levels", netlist.FatTree3, netlist.Shape{Hosts: 1944}, counts{1944, 270, 5832}},
		{"three levels, small", netlist.FatTree3, netlist.Shape{Hosts: 16, Radix: 4}, counts{16, 20, 48}},
		{"chain", netlist.Chain, netlist.Shape{Hosts: 40, Switches: 20, Radix: 8}, counts{40, 20, 59}},
		{"torus", netlist.Torus, netlist.Shape{Hosts: 60, Size: "5x4x3"}, counts{60, 60, 60 + 180}},
		{"ring", netlist.Torus, netlist.Shape{Hosts: 5, Size: "5"}, counts{5, 5, 10}},
		{"torus by default", netlist.Torus, netlist.Shape{}, counts{8, 16, 8 + 32}},
		{"mesh", netlist.Mesh, netlist.Shape{Hosts: 6, Size: "3x2"}, counts{6, 6, 6 + 7}},
		{"hypercube", netlist.Hypercube, netlist.Shape{Hosts: 8, Switches: 16}, counts{8, 16, 8 + 32}},
		{"dragonfly+", netlist.DragonflyPlus, netlist.Shape{Hosts: 24, Groups: 4, Leaves: 3, Spines: 3, Links: 2}, counts{24, 24, 24 + 36 + 12}},
		{"one rail unit", netlist.RailPods, netlist.Shape{}, counts{1 + 31*8, 8 + 4, 1 + 31*8 + 256}},
		{"four rail units", netlist.RailPods, netlist.Shape{Hosts: 128}, counts{1 + 127*8, 32 + 16, 1 + 127*8 + 1024}},
		{"16 rail units", netlist.RailPods, netlist.Shape{Hosts: 512}, counts{1 + 511*8, 128 + 128 + 64, 1 + 511*8 + 2*4096}},
		{"64 rail units", netlist.RailPods, netlist.Shape{Hosts: 2048}, counts{1 + 2047*8, 512 + 512 + 256, 1 + 2047*8 + 2*16384}},
		{"five small rail units", netlist.RailPods, netlist.Shape{Hosts: 20, HCAs: 2, Radix: 8}, counts{1 + 19*2, 10 + 2*8 + 8, 1 + 19*2 + 40 + 64}},
		{"routers", netlist.Chain, netlist.Shape{Hosts: 4, Routers: 2}, counts{4 + 2, 2, 4 + 1 + 2}},
		{"islands", netlist.Islands, netlist.Shape{Hosts: 6, Switches: 2}, counts{6, 2, 6}},
		{"two ports", netlist.DualPort, netlist.Shape{Hosts: 4}, counts{4, 2, 9}},
		{"two cards", netlist.Single, netlist.Shape{Hosts: 4, HCAs: 2}, counts{7, 1, 7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := tt.generate(tt.shape)
			if err != nil {
				t.Fatal(err)
			}
			var got counts
			for i := range l.Nodes {
				n := &l.Nodes[i]
				if n.Type == ib.NodeSwitch {
					got.Switches++
				} else {
					got.CAs++
				}
				for _, p := range n.Ports {
					if p.Peer != "" {
						got.Cables++
					}
				}
			}
			got.Cables /= 2
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("got-, want+\n%s", diff)
			}
			if l.Nodes[0].Name != "sm" {
				t.Errorf("the first node is %q, want sm", l.Nodes[0].Name)
			}
			roundTrip(t, l)
		})
	}
}

// roundTrip checks that a written netlist is read back as the same fabric.
func roundTrip(t *testing.T, l *netlist.Netlist) {
	t.Helper()
	back, err := netlist.Parse("written.net", []byte(write(t, l)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range back.Nodes {
		back.Nodes[i].Line = l.Nodes[i].Line
		if diff := cmp.Diff(back.Nodes[i], l.Nodes[i]); diff != "" {
			t.Fatalf("node %d: got-, want+\n%s", i, diff)
		}
	}
}

// Rail r of each host ends at leaf r of its unit, at the port of its slot.
func TestRailsArePure(t *testing.T) {
	l, err := netlist.RailPods(netlist.Shape{Hosts: 40, HCAs: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		node, leaf string
		port       ib.PortNum
	}{
		{"sm", "leaf1_1", 32}, {"h1", "leaf1_1", 1}, {"h1-4", "leaf1_4", 1}, {"h31-2", "leaf1_2", 31}, {"h32", "leaf2_1", 1}, {"h39-3", "leaf2_3", 8},
	} {
		if got := l.Find(tt.node).Ports[1]; got.Peer != tt.leaf || got.PeerPort != tt.port {
			t.Errorf("%s is at %s port %d, want %s port %d", tt.node, got.Peer, got.PeerPort, tt.leaf, tt.port)
		}
	}
}

func TestShapesThatDoNotFit(t *testing.T) {
	for _, tt := range []struct {
		name     string
		generate func(netlist.Shape) (*netlist.Netlist, error)
		shape    netlist.Shape
		want     string
	}{
		{"negative hosts", netlist.Single, netlist.Shape{Hosts: -1}, "-1 hosts, want 1 to"},
		{"too many for one switch", netlist.Single, netlist.Shape{Hosts: 300}, "the most is 254"},
		{"too many for two levels", netlist.FatTree2, netlist.Shape{Hosts: 649}, "too many for two levels"},
		{"too many for three levels", netlist.FatTree3, netlist.Shape{Hosts: 200, Radix: 4}, "too many for three levels"},
		{"three levels of cards", netlist.FatTree3, netlist.Shape{HCAs: 2}, "takes hosts, radix and link only"},
		{"leaves too small", netlist.FatTree2, netlist.Shape{Hosts: 40, Leaves: 2, Spines: 2}, "40 HCAs below 2 leaves"},
		{"chain too small", netlist.Chain, netlist.Shape{Hosts: 9, Switches: 2, Radix: 4}, "has no port 5"},
		{"two ports too small", netlist.DualPort, netlist.Shape{Hosts: 9, Radix: 4}, "has no port 5"},
		{"four dimensions", netlist.Torus, netlist.Shape{Size: "2x2x2x2"}, "want up to three numbers"},
		{"no size", netlist.Mesh, netlist.Shape{Size: "4xq"}, "want up to three numbers"},
		{"torus too large", netlist.Torus, netlist.Shape{Size: "100x100"}, "1000 switches at most"},
		{"no power of two", netlist.Hypercube, netlist.Shape{Switches: 6}, "a hypercube of 6 switches"},
		{"too many groups", netlist.DragonflyPlus, netlist.Shape{Groups: 500}, "500 groups of 4 switches"},
		{"too many links", netlist.DragonflyPlus, netlist.Shape{Groups: 30, Links: 9}, "use switches with more ports"},
		{"no place for a router", netlist.Single, netlist.Shape{Hosts: 36, Routers: 1}, "no switch has a port free"},
		{"odd rails", netlist.RailPods, netlist.Shape{Radix: 7}, "even number of ports"},
		{"too many rails", netlist.RailPods, netlist.Shape{Hosts: 20, Radix: 4}, "too many for cores"},
		{"unknown speed", netlist.Single, netlist.Shape{Link: "4xWARP"}, `link "4xWARP"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.generate(tt.shape)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		text string
		want netlist.Link
	}{
		{"4xSDR", netlist.Link{Width: 3, Speed: 1}},
		{"1xDDR", netlist.Link{Width: 1, Speed: 3}},
		{"4xQDR", netlist.Link{Width: 3, Speed: 7}},
		{"4xFDR10", netlist.Link{Width: 3, Speed: 7, FDR10: true}},
		{"2xFDR", netlist.Link{Width: 16, Speed: 7, SpeedExt: 1, FDR10: true}},
		{"4xEDR", netlist.Link{Width: 3, Speed: 7, SpeedExt: 3, FDR10: true}},
		{"12xHDR", netlist.Link{Width: 11, Speed: 7, SpeedExt: 7, FDR10: true}},
		{"4xXDR", netlist.Link{Width: 3, Speed: 7, SpeedExt: 15, FDR10: true, SpeedExt2: 1}},
		{"8xNDR", netlist.Link{Width: 4, Speed: 7, SpeedExt: 15, FDR10: true}},
	} {
		got, err := netlist.ParseLink(tt.text)
		if err != nil || got != tt.want || got.String() != tt.text {
			t.Errorf("ParseLink(%q) = %+v (%v), %v; want %+v", tt.text, got, got, err, tt.want)
		}
	}
	for _, bad := range []string{"", "x", "4x", "EDR", "3xEDR", "4xedr", "04xEDR", "4xEDR "} {
		if l, err := netlist.ParseLink(bad); err == nil {
			t.Errorf("ParseLink(%q) = %v, want an error", bad, l)
		}
	}
}

func TestFind(t *testing.T) {
	l, err := netlist.Parse("f.net", []byte("caguid=0x10\nCa 1 \"H-10\" # \"node one\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"H-10", "node one"} {
		if n := l.Find(name); n == nil || n.GUID != 0x10 {
			t.Errorf("Find(%q) = %+v", name, n)
		}
	}
	if n := l.Find("elsewhere"); n != nil {
		t.Errorf("Find of an unknown name = %+v", n)
	}
}
