package enginelist_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/enginelist"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// uplinks counts, by uplink of a switch, the LIDs of some hosts that it is used for.
func uplinks(f *topo.Fabric, t *route.Tables, sw topo.NodeID, hosts []topo.NodeID) map[ib.PortNum]int {
	n := make(map[ib.PortNum]int)
	for _, h := range hosts {
		if lid := f.Port(f.PortOf(h, 1)).LID; t.Home(lid) != sw {
			n[t.LFT(sw)[lid]]++
		}
	}
	return n
}

// TestRoutedFirst: ports that are listed get ways of their own, however the others
// lie between them.
func TestRoutedFirst(t *testing.T) {
	k := topotest.FatTree2(36, 12) // 6 leaves of 6 hosts, 6 spines
	f := k.Fabric()
	leaf := f.Port(f.LinkUp(f.PortOf(k.Hosts[0], 1))).Node
	var chosen []topo.NodeID // one host of each other leaf, the same place on each
	var s enginelist.Settings
	for i := len(k.Hosts) - 1; i >= 0; i -= 6 {
		if f.Port(f.LinkUp(f.PortOf(k.Hosts[i], 1))).Node != leaf {
			chosen = append(chosen, k.Hosts[i])
			s.Share.First = append(s.Share.First, f.Port(f.PortOf(k.Hosts[i], 1)).GUID)
		}
	}
	s.Lanes = 4
	engines, err := s.Engines("minhop,updn,ftree,dnup,dfsssp")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		t.Run(e.Name(), func(t *testing.T) {
			c, err := route.First(f, nil, e)
			if err != nil {
				t.Fatal(err)
			}
			for up, n := range uplinks(f, c.Tables, leaf, chosen) {
				if n > 1 && e.Name() != "dnup" {
					t.Errorf("of the %d listed, %d share uplink %d", len(chosen), n, up)
				}
			}
			again, err := route.First(f, nil, e)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range f.Switches() {
				if d := cmp.Diff(c.Tables.LFT(id), again.Tables.LFT(id)); d != "" {
					t.Fatalf("switch %v: another time (-first +second):\n%s", f.Node(id).GUID, d)
				}
			}
			back := make([]ib.GUID, 0, len(s.Share.First))
			for i := len(s.Share.First) - 1; i >= 0; i-- {
				back = append(back, s.Share.First[i])
			}
			other := enginelist.Settings{Lanes: 4, Share: nexthop.Share{First: back}}
			turned, err := other.Engines(e.Name())
			if err != nil {
				t.Fatal(err)
			}
			if c, err = route.First(f, nil, turned[0]); err != nil {
				t.Fatal(err)
			}
			if c.Report.WorstLoad > 2*again.Report.WorstLoad {
				t.Errorf("in another order the worst link carries %d, before %d", c.Report.WorstLoad, again.Report.WorstLoad)
			}
		})
	}
}

// TestIgnoredPorts: with some ports left out of the load, the others lie as evenly
// as if those were not there.
func TestIgnoredPorts(t *testing.T) {
	k := topotest.FatTree2(36, 12)
	f := k.Fabric()
	leaf := f.Port(f.LinkUp(f.PortOf(k.Hosts[0], 1))).Node
	var s enginelist.Settings
	var counted []topo.NodeID
	for i, h := range k.Hosts {
		switch i % 3 {
		case 0:
			s.Share.Ignored = append(s.Share.Ignored, nexthop.Port{Node: f.Node(h).GUID, Num: 1})
		case 1:
			at := f.Port(f.LinkUp(f.PortOf(h, 1)))
			s.Share.Ignored = append(s.Share.Ignored, nexthop.Port{Node: f.Node(at.Node).GUID, Num: at.Num})
		default:
			counted = append(counted, h)
		}
	}
	engines, err := s.Engines("minhop,updn,ftree")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		t.Run(e.Name(), func(t *testing.T) {
			c, err := route.First(f, nil, e)
			if err != nil {
				t.Fatal(err)
			}
			// 10 hosts that count are on other leaves, and there are 6 uplinks.
			for up, n := range uplinks(f, c.Tables, leaf, counted) {
				if n > 2 {
					t.Errorf("uplink %d is used for %d of the counted ports", up, n)
				}
			}
		})
	}
}

// TestWeights: ways are compared by what ports count for, each direction by its
// own, and what follows is still judged.
func TestWeights(t *testing.T) {
	k := topotest.Torus(4, 1, 1) // a ring of 4
	f := k.Fabric()
	sw := f.Switches()
	first := f.PortOf(sw[0], 1)
	next := f.Port(f.LinkUp(first)).Node
	back := f.LinkUp(first)
	heavy := enginelist.Settings{Weights: []minhop.Weight{{Switch: f.Node(sw[0]).GUID, Port: f.Port(first).Num, Hops: 5}}}
	engines, err := heavy.Engines("minhop")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := engines[0].Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	lid := func(id topo.NodeID) ib.LID { return f.Port(f.PortOf(id, 0)).LID }
	if p := tables.LFT(sw[0])[lid(next)]; p == f.Port(first).Num {
		t.Errorf("packets leave by port %d, which counts for 5 hops, where 3 others would do", p)
	}
	if p := tables.LFT(next)[lid(sw[0])]; p != f.Port(back).Num {
		t.Errorf("packets come back by port %d, want %d: only the other direction is heavy", p, f.Port(back).Num)
	}
	plain, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := plain.LFT(sw[0])[lid(next)]; p != f.Port(first).Num {
		t.Errorf("without weights packets leave by port %d, want %d", p, f.Port(first).Num)
	}
}

// TestShareFiles: the three files are read, and GUIDs that are not in the fabric are reported.
func TestShareFiles(t *testing.T) {
	files := map[string]string{
		"order": "0x77\n", "ignore": "0x0010000100000001 1\n0x0010000200000001 1\n0x66 1\n", "weights": "0x0010000100000001 2 7\n0x88 1 2\n",
		"bad": "0x1 2 3 4\n",
	}
	read := func(name string, _ int) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("no file " + name)
	}
	var s enginelist.Settings
	if err := s.Read(enginelist.Files{Order: "order", Ignored: "ignore", Weights: "weights"}, read); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]minhop.Weight{{Switch: 0x0010000100000001, Port: 2, Hops: 7}, {Switch: 0x88, Port: 1, Hops: 2}}, s.Weights); d != "" {
		t.Errorf("weights (-want +got):\n%s", d)
	}
	engines, err := s.Engines("minhop")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"port to be routed first 0x0000000000000077 is not in the fabric",
		"node 0x0010000200000001 port 1 is to be ignored, but there is no end port there: the load of links between switches is always counted",
		"node 0x0000000000000066 port 1 is to be ignored, but there is no end port there: the load of links between switches is always counted",
		"switch with a weight of a port 0x0000000000000088 is not in the fabric",
	}
	if d := cmp.Diff(want, enginelist.Missing(engines, topotest.FatTree2(36, 36).Fabric())); d != "" {
		t.Errorf("missing (-want +got):\n%s", d)
	}
	if err := s.Read(enginelist.Files{Ignored: "bad", Weights: "bad"}, read); err == nil {
		t.Error("wrong files are taken")
	}
}

// TestWeightsAsOpenSM has OpenSM route with the same file of weights: from every
// switch the way to every host counts for as much.
func TestWeightsAsOpenSM(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	k := topotest.FatTree2(18, 12)
	f := k.Fabric()
	var s enginelist.Settings
	var file bytes.Buffer
	for i, id := range f.Switches() {
		for port := 1; port <= int(f.Node(id).NumPorts); port++ {
			peer := f.LinkUp(f.PortOf(id, ib.PortNum(port)))
			if peer == topo.None || f.NodeOf(peer).Type != ib.NodeSwitch || (i+port)%3 != 0 {
				continue
			}
			w := minhop.Weight{Switch: f.Node(id).GUID, Port: ib.PortNum(port), Hops: 2 + (i+2*port)%4}
			s.Weights = append(s.Weights, w)
			fmt.Fprintf(&file, "%v %d %d\n", w.Switch, w.Port, w.Hops)
		}
	}
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	engines, err := s.Engines("minhop")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := engines[0].Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs := opensm(t, f, "minhop", "--hop_weights_file", path)
	for _, h := range k.Hosts {
		lid := f.Port(f.PortOf(h, 1)).LID
		for _, id := range f.Switches() {
			a, b := wayCost(f, ours, s.Weights, id, lid), wayCost(f, theirs, s.Weights, id, lid)
			if a != b {
				t.Errorf("switch %v to LID %d: our way counts for %d, OpenSM's for %d", f.Node(id).GUID, lid, a, b)
			}
		}
	}
}

// wayCost adds up the costs of a way.
func wayCost(f *topo.Fabric, t *route.Tables, weights []minhop.Weight, at topo.NodeID, lid ib.LID) (sum int) {
	for at != t.Home(lid) && sum < 1000 {
		port, cost := t.LFT(at)[lid], 1
		for _, w := range weights {
			if w.Switch == f.Node(at).GUID && w.Port == port {
				cost = w.Hops
			}
		}
		sum += cost
		at = f.Port(f.LinkUp(f.PortOf(at, port))).Node
	}
	return sum
}
