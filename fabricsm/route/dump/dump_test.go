package dump_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dump"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// pair is two switches with a host each; the first host has a description that
// tries to end its field.
func pair(t *testing.T) (*topo.Fabric, *route.Tables) {
	t.Helper()
	k := topotest.Chain(2, 1)
	n := k.Node(k.Hosts[0])
	n.Description = "a} LID:0099\n'\"x"
	k.SetNode(k.Hosts[0], n)
	id := k.PortOf(k.Hosts[1], 1)
	p := k.Port(id)
	p.Width, p.Speed, p.State = ib.Width4x, ib.EDR, ib.PortInit
	k.SetPort(id, p)
	f := k.Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f, tables
}

func text(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSubnet(t *testing.T) {
	f, _ := pair(t)
	const (
		sw1 = "SW Ports:03 SystemGUID:0010000100000001 NodeGUID:0010000100000001 PortGUID:0010000100000001 VenID:000000 DevID:0000 Rev:00000000 {switch1_1} LID:0001"
		sw2 = "SW Ports:03 SystemGUID:0010000100000002 NodeGUID:0010000100000002 PortGUID:0010000100000002 VenID:000000 DevID:0000 Rev:00000000 {switch1_2} LID:0002"
		h0  = "CA Ports:01 SystemGUID:0020000000000000 NodeGUID:0020000000000000 PortGUID:0020000000000001 VenID:000000 DevID:0000 Rev:00000000 {a_ LID:0099___x} LID:0003"
		h1  = "CA Ports:01 SystemGUID:0020000000000100 NodeGUID:0020000000000100 PortGUID:0020000000000101 VenID:000000 DevID:0000 Rev:00000000 {h1} LID:0004"
	)
	far := func(end string) string { return strings.Replace(end, "VenID:", "VenID:00", 1) }
	want := "{ " + sw1 + " PN:01 } { " + far(h0) + " PN:01 } PHY=?? LOG=ACT SPD=??\n" +
		"{ " + sw1 + " PN:03 } { " + far(sw2) + " PN:02 } PHY=?? LOG=ACT SPD=??\n" +
		"{ " + sw2 + " PN:01 } { " + far(h1) + " PN:01 } PHY=?? LOG=ACT SPD=??\n" +
		"{ " + sw2 + " PN:02 } { " + far(sw1) + " PN:03 } PHY=?? LOG=ACT SPD=??\n" +
		"{ " + h0 + " PN:01 } { " + far(sw1) + " PN:01 } PHY=?? LOG=ACT SPD=??\n" +
		"{ " + h1 + " PN:01 } { " + far(sw2) + " PN:01 } PHY=4x LOG=INI SPD=25\n"
	if d := cmp.Diff(text(t, func(w io.Writer) error { return dump.Subnet(w, f) }), want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

func TestFDBs(t *testing.T) {
	f, tables := pair(t)
	tables.Writable(nil, 1)[1] = ib.NoPort
	want := `dump_ucast_routes: Switch 0x0010000100000001
LID    : Port : Hops : Optimal
0x0001 : 000  : 00   : yes
0x0002 : 003  : 01   : yes
0x0003 : 001  : 01   : yes
0x0004 : 003  : 02   : yes
dump_ucast_routes: Switch 0x0010000100000002
LID    : Port : Hops : Optimal
0x0001 : UNREACHABLE
0x0002 : 000  : 00   : yes
0x0003 : 002  : 02   : yes
0x0004 : 001  : 01   : yes
`
	if d := cmp.Diff(text(t, func(w io.Writer) error { return dump.FDBs(w, f, tables) }), want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

// TestFDBsSayWhatIsNotShortest sends a packet round a ring the long way.
func TestFDBsSayWhatIsNotShortest(t *testing.T) {
	k := topotest.Torus(3, 1, 0)
	f := k.Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	tables.Writable(nil, 0)[2] = 2
	got := text(t, func(w io.Writer) error { return dump.FDBs(w, f, tables) })
	if want := []byte("0x0002 : 002  : 02   : No 1 hop path possible\n"); !bytes.Contains([]byte(got), want) {
		t.Errorf("got\n%s want in it\n%s", got, want)
	}
}

func TestLFTs(t *testing.T) {
	f, tables := pair(t)
	want := `Unicast lids [0-4] of switch Lid 1 guid 0x0010000100000001 ('switch1_1'):
0x0001 000 # Switch portguid 0x0010000100000001: 'switch1_1'
0x0002 003 # Switch portguid 0x0010000100000002: 'switch1_2'
0x0003 001 # Channel Adapter portguid 0x0020000000000001: 'a_ LID:0099___x'
0x0004 003 # Channel Adapter portguid 0x0020000000000101: 'h1'
4 lids dumped
Unicast lids [0-4] of switch Lid 2 guid 0x0010000100000002 ('switch1_2'):
0x0001 002 # Switch portguid 0x0010000100000001: 'switch1_1'
0x0002 000 # Switch portguid 0x0010000100000002: 'switch1_2'
0x0003 002 # Channel Adapter portguid 0x0020000000000001: 'a_ LID:0099___x'
0x0004 001 # Channel Adapter portguid 0x0020000000000101: 'h1'
4 lids dumped
`
	if d := cmp.Diff(text(t, func(w io.Writer) error { return dump.LFTs(w, f, tables) }), want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

// full takes nothing more.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestDumpsTellOfAFullDisk(t *testing.T) {
	f, tables := pair(t)
	for name, err := range map[string]error{
		"subnet": dump.Subnet(full{}, f),
		"fdbs":   dump.FDBs(full{}, f, tables),
		"lfts":   dump.LFTs(full{}, f, tables),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestLanes tests the lanes of a ring as ibdmchk reads them: hosts have LIDs 4 to 6, opposite directions of a pair have one
// SL.
func TestLanes(t *testing.T) {
	f := topotest.Torus(3, 1, 1).Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := route.NewGraph(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	tables.SetLayers(g, 2, func(a, b int32) uint8 { return uint8((a + b) % 2) })
	want := `0x0020000000000000 4 0
0x0020000000000000 5 1
0x0020000000000000 6 0
0x0020000000000100 4 1
0x0020000000000100 5 0
0x0020000000000100 6 1
0x0020000000000200 4 0
0x0020000000000200 5 1
0x0020000000000200 6 0
`
	if d := cmp.Diff(text(t, func(w io.Writer) error { return dump.PathSLs(w, f, tables) }), want); d != "" {
		t.Errorf("path SLs (-got +want):\n%s", d)
	}
	got := text(t, func(w io.Writer) error { return dump.SL2VL(w, f, tables) })
	const first = "0x0010000100000001 0 1 0x01 0xff 0xff 0xff 0xff 0xff 0xff 0xff\n"
	if !bytes.HasPrefix([]byte(got), []byte(first)) || bytes.Count([]byte(got), []byte("\n")) != 3*5*5 {
		t.Errorf("SL2VL: got\n%s want first\n%s", got, first)
	}
}
