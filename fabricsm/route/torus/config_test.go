package torus_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route/routetest"
	"portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// manual is the example of torus-2QoS.conf(5).
const manual = `
# Look for a 2D (since x radix is one) 4x5 torus.
torus 1 4 5

yp_link 0x200000 0x200005  # sw @ y=0,z=0 -> sw @ y=1,z=0
ym_link 0x200000 0x20000f  # sw @ y=0,z=0 -> sw @ y=3,z=0
zp_link 0x200000 0x200001  # sw @ y=0,z=0 -> sw @ y=0,z=1

next_seed

yp_link 0x20000b 0x200010  # sw @ y=2,z=1 -> sw @ y=3,z=1
ym_link 0x20000b 0x200006  # sw @ y=2,z=1 -> sw @ y=1,z=1
zp_link 0x20000b 0x20000c  # sw @ y=2,z=1 -> sw @ y=2,z=2

y_dateline -2  # Move the dateline for this seed
z_dateline -1  # back to its original position.

portgroup_max_ports 20
max_changes 5
port_order 7 10 8 11 9 12 25 28 26 29 27 30 # as cabled
`

func TestParseExample(t *testing.T) {
	want := &torus.Config{
		Radix: [3]int{1, 4, 5}, Wrap: [3]bool{false, true, true},
		Seeds: []torus.Seed{
			{From: 0x200000, To: [6]ib.GUID{0, 0, 0x200005, 0x20000f, 0x200001}},
			{From: 0x20000b, To: [6]ib.GUID{0, 0, 0x200010, 0x200006, 0x20000c}, Dateline: [3]int{0, -2, -1}},
		},
	}
	got, err := torus.Parse("t", []byte(manual))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

func TestParse(t *testing.T) {
	const link = "xp_link 0x1 0x2\nyp_link 0x1 0x3\n"
	tests := []struct{ name, data, err string }{
		{"size alone", "mesh 3T 4 5", ""},
		{"nothing", "# later\n", `t: it has no size: begin with "torus" or "mesh" and three numbers`},
		{"two numbers", "torus 3 4", "t:1: want three numbers, 1 for a dimension that is not there"},
		{"no number", "torus 3 t 4", `t:1: "": want a number from 1 to 1024`},
		{"too large", "torus 3 4 5000", `t:1: "5000": want a number from 1 to 1024`},
		{"far too large", "torus 1024 1024 2", "t: 2097152 switches are more than a fabric can have"},
		{"twice", "torus 3 4 5\nmesh 1 1 1", "t:2: the size is given twice"},
		{"links first", link + "torus 5 5 1", "t:1: \"xp_link\" stands before the size: begin with \"torus\" or \"mesh\" and three numbers\n" +
			"t:2: \"yp_link\" stands before the size: begin with \"torus\" or \"mesh\" and three numbers"},
		{"unknown", "torus 5 5 1\nxq_link 0x1 0x2", `t:2: "xq_link" is no keyword of torus-2QoS.conf`},
		{"one GUID", "torus 5 5 1\nxp_link 0x1", "t:2: want two node GUIDs"},
		{"GUID 0", "torus 5 5 1\nxp_link 0x1 0x0", "t:2: 0x0000000000000000 is no GUID that a switch can have"},
		{"to itself", "torus 5 5 1\nxp_link 0x1 0x1", "t:2: 0x0000000000000001 is cabled to itself"},
		{"two origins", "torus 5 5 1\nxp_link 0x1 0x2\nyp_link 0x3 0x4", "t:3: the links of a seed begin at one switch, here at 0x0000000000000001 and at 0x0000000000000003; put \"next_seed\" between them"},
		{"a link twice", "torus 5 5 1\nxp_link 0x1 0x2\nxp_link 0x1 0x3", "t:3: this direction is given twice for one seed"},
		{"no link for y", "torus 5 5 1\nxp_link 0x1 0x2", "t: seed 1 has no link along dimension y"},
		{"a link too many", "torus 5 5 1\n" + link + "zp_link 0x1 0x4", "t: seed 1 has a link along dimension z, which has one switch"},
		{"ring of four", "torus 4 5 1\n" + link, "t: seed 1 has one link along dimension x, a ring of 4: write both directions"},
		{"row of four", "torus 4m 5 1\n" + link, ""},
		{"dateline of a row", "mesh 4 5t 1\n" + link + "x_dateline 1", "t: seed 1 moves the dateline of dimension x, which is no ring"},
		{"empty seed", "torus 5 5 1\n" + link + "next_seed", "t: seed 2 has no links"},
		{"bad order", "torus 5 5 1\nport_order 1 x", `t:2: "x": want a number from 0 to 254`},
		{"bad limit", "torus 5 5 1\nmax_changes", `t:2: a number is missing`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := torus.Parse("t", []byte(tt.data))
			msg := ""
			if err != nil {
				msg = err.Error()
			}
			if d := cmp.Diff(msg, tt.err); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
}

func TestParseIsBounded(t *testing.T) {
	if _, err := torus.Parse("t", make([]byte, torus.MaxSize+1)); err == nil {
		t.Error("a huge file was read")
	}
	_, err := torus.Parse("t", []byte("torus 5 5 1\n"+strings.Repeat("x\n", 1000)))
	if err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "and 980 more lines are wrong") {
		t.Errorf("got %v", err)
	}
}

// TestSeeds: the second seed is used when a switch of the first is gone, and
// puts the datelines where the first does. Switch (x,y) of the kit has index
// 1+x+5y.
func TestSeeds(t *testing.T) {
	c, err := torus.Parse("t", []byte(`torus 5 4 1
xp_link 0x0010000100000001 0x0010000100000002
yp_link 0x0010000100000001 0x0010000100000006
ym_link 0x0010000100000001 0x0010000100000010
next_seed
xp_link 0x0010000100000008 0x0010000100000009
yp_link 0x0010000100000008 0x001000010000000d
ym_link 0x0010000100000008 0x0010000100000003
x_dateline -2
y_dateline -1
`))
	if err != nil {
		t.Fatal(err)
	}
	e := torus.Engine{Config: c, Lanes: 4}
	k := topotest.Grid([3]int{5, 4, 1}, ring3, 1)
	whole, _ := routetest.Must(t, e, k.Fabric(), nil)
	k.Remove(topo.NodeID(0))
	f := k.Freeze()
	after, _ := routetest.Must(t, e, f, nil)
	sameLevels(t, f, whole, after)
}

func TestWrongSeeds(t *testing.T) {
	const a, b = "0x0010000100000001", "0x0010000100000006"
	tests := []struct{ name, conf, err string }{
		{"no such switch", "torus 5 4 1\nxp_link 0x7 0x8\nyp_link 0x7 0x9\nym_link 0x7 0xa", "seed 1: switch 0x0000000000000007 is not in the fabric"},
		{"not cabled", "torus 5 1 1\nxp_link " + a + " 0x0010000100000003", "seed 1: switches " + a + " and 0x0010000100000003 are not cabled to each other"},
		{"one place", "torus 5 4 1\nxp_link " + a + " " + b + "\nyp_link " + a + " " + b + "\nym_link " + a + " 0x0010000100000010", "seed 1: switch " + b + " is given two places"},
		{"far too large", "torus 100 100 1\nxp_link " + a + " 0x0010000100000002\nyp_link " + a + " " + b, "the file wants 10000 switches, and the fabric has 20"},
		{"other size", "torus 6 4 1\nxp_link " + a + " 0x0010000100000002\nyp_link " + a + " " + b + "\nym_link " + a + " 0x0010000100000010", "is not next to it in a torus of 6t 4t 1m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := torus.Parse("t", []byte(tt.conf))
			if err != nil {
				t.Fatal(err)
			}
			_, err = torus.Engine{Config: c, Lanes: 4}.Route(topotest.Grid([3]int{5, 4, 1}, ring3, 1).Fabric(), nil)
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %s", err, tt.err)
			}
		})
	}
}

// TestNoTorus: other fabrics are rejected with a reason.
func TestNoTorus(t *testing.T) {
	cut := func(k *topotest.Kit, cuts ...[2]int) *topotest.Kit {
		for _, c := range cuts {
			k.Cut(topo.NodeID(c[0]), c[1])
		}
		return k
	}
	tests := []struct {
		name string
		kit  *topotest.Kit
		want string
	}{
		{"tree", topotest.FatTree2(324, 36), "is cabled to 18 others, 6 are the most in three dimensions"},
		{"two islands", topotest.Islands(3), "1 of 2 switches have no place"},
		{"a row is cut", cut(topotest.Grid([3]int{5, 1, 1}, open3, 1), [2]int{2, 1}), "switches have no place"},
		{"dragonfly", topotest.DragonflyPlus(3, 2, 2, 2, 1), "switches have no place"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := torus.Engine{Lanes: 8}.Route(tt.kit.Fabric(), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(manual))
	f.Add([]byte("mesh 3T 4 5\nxp_link 0x1 0x2\nyp_link 0x1 0x3\nzm_link 0x1 0x4\nx_dateline 2\nnext_seed"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := torus.Parse("t", data)
		if (err == nil) != (c != nil) {
			t.Fatalf("%v and error %v", c, err)
		}
		// With any file, the engine returns tables that pass, or an error.
		if fabric := topotest.Grid([3]int{3, 3, 1}, ring3, 1).Fabric(); c != nil {
			_, _ = torus.Engine{Config: c, Lanes: 4}.Route(fabric, nil)
		}
	})
}
