package driver_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/route/dump"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestDiagnosticsSeeTrees has unchanged infiniband-diags read the multicast tables of a fabric, and judges their output:
// packets of every member must reach all other members and no other port.
func TestDiagnosticsSeeTrees(t *testing.T) {
	ibsimtest.Need(t, "dump_mfts", "ibroute")
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 54, Radix: 6})
	lab := ibsimtest.Start(t, text(t, l, err))
	store := &driver.Memory{}
	m := manage(t, lab, store, false)
	m.until("a settled fabric", settled)

	in := &sm.GroupsSet{}
	for g := range 40 {
		mlid := ib.MinMulticastLID + ib.LID(g)
		in.MLIDs = append(in.MLIDs, mlid)
		for h := 1 + g%5; h < 54; h += 3 + g%7 {
			in.Joins = append(in.Joins, multicast.Join{MLID: mlid, GUID: l.Find(fmt.Sprintf("h%d", h)).PortGUID(1), State: mcast.FullMember})
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
	t.Run("ibdmchk", func(t *testing.T) { byIBDMChk(t, v, groups) })

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

// byIBDMChk lets ibdmchk of ibutils judge the trees as we dump them.
func byIBDMChk(t *testing.T, v *sm.View, groups []mcast.Members) {
	t.Helper()
	ibsimtest.Need(t, "ibdmchk")
	program, err := exec.LookPath("ibdmchk")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, write func(io.Writer) error) string {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cmd := exec.CommandContext(t.Context(), program,
		"-s", file("opensm-subnet.lst", func(w io.Writer) error { return dump.Subnet(w, v.Fabric) }),
		"-f", file("opensm.fdbs", func(w io.Writer) error { return dump.FDBs(w, v.Fabric, v.Tables) }),
		"-m", file("opensm.mcfdbs", func(w io.Writer) error { return mcast.WriteFDBs(w, v.Fabric, v.Multicast.Trees) }))
	cmd.Dir = dir
	raw, _ := cmd.CombinedOutput() // it crashes after its verdict
	out := string(raw)
	for _, g := range groups {
		want := fmt.Sprintf("Multicast Group:0x%04X has:", uint16(g.MLID))
		_, found, ok := strings.Cut(out, want)
		if line, _, _ := strings.Cut(found, "\n"); !ok || !strings.HasSuffix(line, fmt.Sprintf(" and:%d HCAs", len(g.Receives))) {
			t.Errorf("ibdmchk on multicast LID 0x%04x with %d members: %s", uint16(g.MLID), len(g.Receives), line)
		}
	}
	if strings.Contains(out, "-E-") || !strings.Contains(out, "no credit loops found") {
		t.Errorf("ibdmchk complains:\n%s", out)
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
