package driver_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestDiagnosticsSeeTrees has unchanged infiniband-diags read the multicast
// tables of a fabric, and judges what they print: packets of every member must
// come to all others and to nobody else.
func TestDiagnosticsSeeTrees(t *testing.T) {
	ibsimtest.Need(t, "dump_mfts", "ibroute")
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 54, Radix: 6})
	lab := ibsimtest.Start(t, text(t, l, err))
	store := &memory{}
	m := manage(t, lab, store, false)
	m.until("a settled fabric", settled)

	in := &sm.GroupsSet{}
	for g := range 40 {
		mlid := ib.MinMulticastLID + ib.LID(g)
		in.MLIDs = append(in.MLIDs, mlid)
		for h := 1 + g%5; h < 54; h += 3 + g%7 {
			in.Joins = append(in.Joins, sm.Join{MLID: mlid, GUID: l.Find(fmt.Sprintf("h%d", h)).PortGUID(1), State: mcast.FullMember})
		}
	}
	trees := func(v *sm.View) bool { return v.Settled && v.Multicast != nil && len(v.Multicast.Trees) == 40 }
	m.inputs <- in
	v := m.until("the trees", trees)
	if len(v.Problems) > 0 {
		t.Errorf("problems: %q", v.Problems)
	}
	var groups []mcast.Members
	for _, mlid := range in.MLIDs {
		one := mcast.Members{MLID: mlid}
		for _, j := range in.Joins {
			if j.MLID == mlid {
				one.Receives = append(one.Receives, v.Fabric.PortByGUID(j.GUID))
			}
		}
		groups = append(groups, one)
	}
	tables := mftsOf(t, ibsimtest.Diag(t, lab, "sm", "dump_mfts"))
	mask := func(sw topo.NodeID, mlid ib.LID) mcast.Ports { return tables[v.Fabric.Node(sw).GUID][mlid] }
	if err := mcast.Check(v.Fabric, mask, groups); err != nil {
		t.Error(err)
	}
	byLID(t, lab, v, tables)

	m.stop()
	m = manage(t, lab, store, false)
	m.inputs <- in
	v = m.until("the trees after a restart", trees)
	if s := sets(v); len(s) > 0 {
		t.Errorf("a restart on settled trees wrote: %v", s)
	}
}

// byLID compares what ibroute shows of some switches with what dump_mfts did.
func byLID(t *testing.T, lab *ibsimlab.Lab, v *sm.View, tables map[ib.GUID]map[ib.LID]mcast.Ports) {
	t.Helper()
	for _, id := range v.Fabric.Switches()[:3] {
		n := v.Fabric.Node(id)
		one := mftsOf(t, ibsimtest.Diag(t, lab, "sm", "ibroute", "-M", v.Fabric.Port(n.FirstPort).LID.String()))
		if d := cmp.Diff(tables[n.GUID], one[n.GUID]); d != "" {
			t.Errorf("switch %v, dump_mfts and ibroute differ:\n%s", n.GUID, d)
		}
	}
}

var (
	mftHead = regexp.MustCompile(`of switch .*guid (0x[0-9a-f]{16})`)
	mftLine = regexp.MustCompile(`^(0x[cC][0-9a-fA-F]{3}) (.*)$`)
)

// firstColumn is where port 0 is, after the multicast LID and a space.
const firstColumn = 5

// mftsOf reads multicast tables as dump_mfts and ibroute print them: a column of
// two characters for each port, an x where the bit is set.
func mftsOf(t *testing.T, out string) map[ib.GUID]map[ib.LID]mcast.Ports {
	t.Helper()
	tables := make(map[ib.GUID]map[ib.LID]mcast.Ports)
	var at ib.GUID
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if h := mftHead.FindStringSubmatch(line); h != nil {
			n, err := strconv.ParseUint(h[1], 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			at = ib.GUID(n)
			tables[at] = make(map[ib.LID]mcast.Ports)
			continue
		}
		h := mftLine.FindStringSubmatch(line)
		if h == nil {
			continue
		}
		n, err := strconv.ParseUint(h[1], 0, 16)
		if err != nil {
			t.Fatal(err)
		}
		ports := tables[at][ib.LID(n)]
		for i, c := range h[2] {
			if c == 'x' {
				ports.Add(ib.PortNum((i - firstColumn) / 2))
			}
		}
		tables[at][ib.LID(n)] = ports
	}
	if len(tables) == 0 {
		t.Fatalf("no multicast tables in\n%.2000s", out)
	}
	return tables
}
