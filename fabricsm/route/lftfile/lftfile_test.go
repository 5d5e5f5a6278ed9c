package lftfile_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dump"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/lftfile"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// dumped returns the tables of ftree for a fabric, and their text.
func dumped(t *testing.T, f *topo.Fabric) (*route.Tables, string) {
	t.Helper()
	tables, err := ftree.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := dump.LFTs(&b, f, tables); err != nil {
		t.Fatal(err)
	}
	return tables, b.String()
}

func engine(t *testing.T, text string) lftfile.Engine {
	t.Helper()
	parsed, err := lftfile.Parse("lfts", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return lftfile.Engine{Tables: parsed}
}

// TestRoundTrip: dumped tables are read back, on the same fabric.
func TestRoundTrip(t *testing.T) {
	k := topotest.FatTree2(36, 36)
	for _, h := range k.Hosts {
		k.SetLMC(h, 1, 1)
	}
	f := k.Fabric()
	want, text := dumped(t, f)
	got, err := engine(t, text).Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range f.Switches() {
		if !slices.Equal(got.LFT(id), want.LFT(id)) {
			t.Errorf("switch %v has another table", f.Node(id).GUID)
		}
	}
	if err := route.Check(f, got).Err(); err != nil {
		t.Error(err)
	}
	again, err := engine(t, text).Route(f, got)
	if err != nil {
		t.Fatal(err)
	}
	if id := f.Switches()[0]; &again.LFT(id)[0] != &got.LFT(id)[0] {
		t.Error("a table that did not change was made anew")
	}
}

// TestRoutesFollowTheirPorts: two hosts that swapped LIDs are reached where
// they are.
func TestRoutesFollowTheirPorts(t *testing.T) {
	k := topotest.FatTree2(36, 36)
	f := k.Fabric()
	_, text := dumped(t, f)
	a, b := k.PortOf(k.Hosts[0], 1), k.PortOf(k.Hosts[35], 1)
	pa, pb := k.Port(a), k.Port(b)
	pa.LID, pb.LID = pb.LID, pa.LID
	k.SetPort(a, pa)
	k.SetPort(b, pb)
	f = k.Freeze()
	tables, err := engine(t, text).Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := route.Check(f, tables).Err(); err != nil {
		t.Error(err)
	}
}

// TestFilesThatDoNotFit: the checker rejects tables that are not true any more.
func TestFilesThatDoNotFit(t *testing.T) {
	k := topotest.FatTree2(36, 36)
	f := k.Fabric()
	_, text := dumped(t, f)
	e := engine(t, text)
	k.Cut(f.NodeByGUID(topotest.SwitchGUID(1, 1)), 20)
	cut := k.Fabric()
	tables, err := e.Route(cut, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := route.Check(cut, tables).Err(); err == nil || !strings.Contains(err.Error(), "egress port leads nowhere") {
		t.Errorf("a lost cable: %v", err)
	}
	k.Link(k.Switch(1, 9, 4), f.NodeByGUID(topotest.SwitchGUID(2, 1)))
	if _, err := e.Route(k.Fabric(), nil); err == nil || err.Error() != "the file has no table of switch 0x0010000100000009 (switch1_9)" {
		t.Errorf("a new switch: %v", err)
	}
	if _, err := (lftfile.Engine{}).Route(f, nil); err == nil {
		t.Error("no file gave tables")
	}
}

func TestParse(t *testing.T) {
	const head = "Unicast lids [0-4] of switch Lid 1 guid 0x10 ('a guid b'):\n"
	tests := []struct{ name, data, want string }{
		{"nothing", "\n", "lfts: holds no forwarding tables"},
		{"as written", head + "0x0001 000 # Switch portguid 0x0000000000000010: 'a'\n1 lids dumped\n", ""},
		{"no comment", head + "0x0001 000\n0x0002 255 : # (unreachable)\n", ""},
		{"no head", "0x0001 001\n", `lfts:1: an entry before the first "Unicast lids" line`},
		{"no GUID", "Unicast lids [0-4] of switch\n", `lfts:1: want "Unicast lids [0-N] of switch Lid L guid GUID ('DESCRIPTION'):"`},
		{"twice", head + head, "lfts:2: switch 0x0000000000000010 has a table already, or is none"},
		{"LID twice", head + "0x0001 001\n0x1 002\n", "lfts:3: LID 1 is in this table already"},
		{"LID 0", head + "0x0000 001\n", `lfts:2: "0x0000": want a unicast LID`},
		{"multicast", head + "0xc000 001\n", `lfts:2: "0xc000": want a unicast LID`},
		{"port", head + "0x1 256\n", `lfts:2: "256": want a port number from 0 to 255`},
		{"half", head + "0x1\n", "lfts:2: want a LID and a port, as in 0x0001 003"},
		{
			"two owners", head + "0x1 1 # x portguid 0x5: 'a'\n" + strings.Replace(head, "0x10", "0x11", 1) + "0x1 1 # x portguid 0x6: 'a'\n",
			"lfts:4: LID 1 belongs to port 0x0000000000000006 here, and to 0x0000000000000005 above",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := lftfile.Parse("lfts", []byte(tt.data))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if _, err := lftfile.Parse("lfts", []byte(strings.Repeat("x\n", 1000))); err == nil || strings.Count(err.Error(), "\n") != 20 {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("Unicast lids [0-4] of switch Lid 1 guid 0x0010000100000001 ('a'):\n0x0001 000 # Switch portguid 0x0010000100000001: 'a'\n0x4 3\n4 lids dumped\n"))
	fabric := topotest.Chain(2, 1).Fabric()
	f.Fuzz(func(t *testing.T, data []byte) {
		tables, err := lftfile.Parse("f", data)
		if (err == nil) != (tables != nil) {
			t.Fatalf("%v and error %v", tables, err)
		}
		if tables == nil {
			return
		}
		for _, g := range fabric.Switches() {
			if guid := fabric.Node(g).GUID; tables.Switches[guid] == nil {
				tables.Switches[guid] = []lftfile.Entry{{LID: ib.LID(len(data)), Port: 3}}
			}
		}
		if routed, err := (lftfile.Engine{Tables: tables}).Route(fabric, nil); err == nil {
			_ = route.Check(fabric, routed).Err()
		}
	})
}
