package route_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// chain3 is three switches in a row with one host each. LIDs: switches 1 to 3,
// hosts 4 to 6. Port 1 is the host's, 2 leads back, 3 leads on.
func chain3(t *testing.T) (*topo.Fabric, *route.Tables) {
	t.Helper()
	f := topotest.Chain(3, 1).Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f, tables
}

func TestCheckFindsFaults(t *testing.T) {
	const first = "switch 0x0010000100000001 LID "
	tests := []struct {
		name string
		lid  ib.LID
		port ib.PortNum
		want string
	}{
		{"right", 5, 3, ""},
		{"no route to a CA", 5, ib.NoPort, first + "5 egress port 255: no route"},
		{"no route to a switch", 2, ib.NoPort, first + "2 egress port 255: no route"},
		{"port without cable", 5, 2, first + "5 egress port 2: egress port leads nowhere"},
		{"port that does not exist", 5, 77, first + "5 egress port 77: egress port leads nowhere"},
		{"management port", 5, 0, first + "5 egress port 0: egress port leads nowhere"},
		{"another's host", 5, 1, first + "5 egress port 1: egress port leads nowhere"},
		{"own LID sent out", 1, 3, first + "1 egress port 3: delivered to the wrong port"},
		{"own host sent out", 4, 3, first + "4 egress port 3: delivered to the wrong port"},
		{"LID of nobody", 60, 3, first + "60 egress port 3: route to a LID that is not there"},
		{"LID 0", 0, 3, first + "0 egress port 3: route to a LID that is not there"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, tables := chain3(t)
			tables.Writable(nil, 0)[tt.lid] = tt.port
			got := ""
			if err := route.Check(f, tables).Err(); err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(got, tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
}

// TestCheckFindsRoutesToOtherIslands: a switch that nothing connects with the
// other two need not be reached, and must not be tried.
func TestCheckFindsRoutesToOtherIslands(t *testing.T) {
	k := topotest.Chain(2, 1)
	third := k.Switch(1, 3, 4)
	k.Link(k.Host(1), third)
	f := k.Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := route.Check(f, tables).Err(); err != nil {
		t.Fatalf("two islands: %v", err)
	}
	lid := f.Port(f.PortOf(third, 0)).LID
	tables.Writable(nil, 0)[lid] = 3
	want := []route.Finding{{Fault: route.Stray, Switch: topotest.SwitchGUID(1, 1), LID: lid, Port: 3}}
	if d := cmp.Diff(route.Check(f, tables).Findings, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

func TestCheckFindsForwardingLoop(t *testing.T) {
	f, tables := chain3(t)
	tables.Writable(nil, 1)[6] = 2 // the middle switch sends host 6 back
	r := route.Check(f, tables)
	want := []route.Finding{{Fault: route.ForwardingLoop, Switch: topotest.SwitchGUID(1, 1), LID: 6, Port: 3}}
	if d := cmp.Diff(r.Findings, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

func TestCheckRefusesMissingTables(t *testing.T) {
	k := topotest.Chain(3, 1)
	tables, err := minhop.Engine{}.Route(k.Fabric(), nil)
	if err != nil {
		t.Fatal(err)
	}
	late := k.Switch(1, 9, 4)
	k.LinkPorts(late, 1, 2, 3)
	f := k.Fabric()
	if got := route.Check(f, tables); got.Counts[route.NoTable] != 1 || got.Findings[0].Switch != topotest.SwitchGUID(1, 9) {
		t.Errorf("new switch without a table: %v", got.Err())
	}
	if got := route.Check(f, nil); got.Counts[route.NoTable] != 4 || got.Err() == nil {
		t.Errorf("no tables at all: %v", got.Err())
	}
}

// TestCheckFindsCreditLoop: shortest paths on a ring go round both ways, and
// the two middle links of each wait for each other.
func TestCheckFindsCreditLoop(t *testing.T) {
	f := topotest.Torus(5, 1, 1).Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := route.Check(f, tables)
	var circle []string
	for i, c := range r.CreditLoop {
		if next := r.CreditLoop[(i+1)%len(r.CreditLoop)]; next.Switch != c.Peer {
			t.Errorf("channel %v leads to %v, the next of the loop is %v", c, c.Peer, next)
		}
		circle = append(circle, c.String())
	}
	if len(circle) != 5 {
		t.Errorf("want a circle of 5, got %v", circle)
	}
	if got := r.Err(); got == nil || !strings.HasPrefix(got.Error(), "credit loop over 5 links: 0x0010000100000001/") {
		t.Errorf("got %v", got)
	}
}

func TestFirst(t *testing.T) {
	f := topotest.Torus(5, 5, 1).Fabric()
	c, err := route.First(f, nil, minhop.Engine{}, updn.Engine{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Tables.Engine != "updn" || len(c.Refused) != 1 || !strings.HasPrefix(c.Refused[0].Error(), "routing engine minhop: credit loop over ") {
		t.Errorf("engine %s, refused %v", c.Tables.Engine, c.Refused)
	}
	if _, err := route.First(f, nil, minhop.Engine{}); err == nil || !strings.HasPrefix(err.Error(), "routing engine minhop: credit loop over ") {
		t.Errorf("no engine passes: got %v", err)
	}
	if _, err := route.First(f, nil); err == nil {
		t.Error("an empty list gave tables")
	}
}

func TestFabricsThatCannotBeRouted(t *testing.T) {
	setLID := func(k *topotest.Kit, host int, lid ib.LID, lmc ib.LMC) {
		id := k.PortOf(k.Hosts[host], 1)
		p := k.Port(id)
		p.LID, p.LMC = lid, lmc
		k.SetPort(id, p)
	}
	tests := []struct {
		name   string
		change func(*topotest.Kit)
		want   []string
	}{
		{"same LID", func(k *topotest.Kit) { setLID(k, 0, 9, 0); setLID(k, 1, 9, 0) }, []string{
			"route to LID 9: claimed by port 0x0020000000000001 and by port 0x0020000000000101; assign another LID to one of them",
		}},
		{"LID inside another's range", func(k *topotest.Kit) { setLID(k, 0, 8, 2); setLID(k, 1, 10, 0) }, []string{
			"route to LID 10: claimed by port 0x0020000000000001 and by port 0x0020000000000101; assign another LID to one of them",
		}},
		{"not aligned, and multicast", func(k *topotest.Kit) { setLID(k, 0, 9, 1); setLID(k, 1, 0xc001, 0) }, []string{
			"route to port 0x0020000000000001: LID 9 with LMC 1 is no aligned range of unicast LIDs",
			"route to port 0x0020000000000101: LID 49153 with LMC 0 is no aligned range of unicast LIDs",
		}},
		{"range ends in multicast", func(k *topotest.Kit) { setLID(k, 0, 0xbf80, 7); setLID(k, 1, 0xc000-1, 1) }, []string{
			"route to port 0x0020000000000101: LID 49151 with LMC 1 is no aligned range of unicast LIDs",
			"route on switch 0x0010000100000001 (switch1_1): its forwarding table holds 30720 entries, LID 49151 does not fit; use lower LIDs or a smaller LMC",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := topotest.Single(3, 4)
			tt.change(k)
			f := k.Fabric()
			_, err := minhop.Engine{}.Route(f, nil)
			if err == nil {
				t.Fatal("it was routed")
			}
			if d := cmp.Diff(strings.Split(err.Error(), "\n"), tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
			if route.Check(f, nil).Err() == nil {
				t.Error("the checker accepts it")
			}
		})
	}
}

func TestLIDSpaceIsFull(t *testing.T) {
	k := topotest.Single(3, 4)
	n := k.Node(0)
	n.LinearFDBCap = uint16(ib.MaxUnicastLID) + 1
	k.SetNode(0, n)
	id := k.PortOf(k.Hosts[0], 1)
	p := k.Port(id)
	p.LID, p.LMC = 0xbf80, 7
	k.SetPort(id, p)
	f := k.Fabric()
	tables, err := minhop.Engine{}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tables.LFT(0); tables.MaxLID != ib.MaxUnicastLID || got[ib.MaxUnicastLID] != 1 || len(got) != int(ib.MaxUnicastLID)+1 {
		t.Errorf("highest LID %v, %d entries, last one port %d", tables.MaxLID, len(got), got[len(got)-1])
	}
	if err := route.Check(f, tables).Err(); err != nil {
		t.Error(err)
	}
}

func TestChangedBlocks(t *testing.T) {
	table := func(n int, ports map[int]ib.PortNum) []ib.PortNum {
		row := make([]ib.PortNum, n)
		for i := range row {
			row[i] = ib.NoPort
		}
		for i, p := range ports {
			row[i] = p
		}
		return row
	}
	want := table(192, map[int]ib.PortNum{1: 1, 130: 2})
	tests := []struct {
		name string
		have []ib.PortNum
		want []uint16
	}{
		{"same", want, nil},
		{"one block", table(192, map[int]ib.PortNum{1: 1, 130: 3}), []uint16{2}},
		{"shorter by nothing", table(131, map[int]ib.PortNum{1: 1, 130: 2}), nil},
		{"shorter by a route", table(64, map[int]ib.PortNum{1: 1}), []uint16{2}},
		{"never written", nil, []uint16{0, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(route.ChangedBlocks(want, tt.have), tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
}

// TestCheckAgainstSlowJudge damages good tables at random entries.
func TestCheckAgainstSlowJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := topotest.Random(7, draw(t))
		f := k.Fabric()
		tables := mustRoute(t, updn.Engine{}, f, nil)
		for range draw(t)(3) {
			sw := f.Switches()[draw(t)(len(f.Switches())-1)]
			lid := ib.LID(1 + draw(t)(int(tables.MaxLID)-1))
			port := ib.PortNum(draw(t)(int(f.Node(sw).NumPorts)/8 + 1))
			if draw(t)(5) == 0 {
				port = ib.NoPort
			}
			tables.Writable(nil, sw)[lid] = port
		}
		s := judgeSlowly(f, tables)
		want := len(s.faults) == 0 && !s.creditLoop()
		if err := route.Check(f, tables).Err(); (err == nil) != want {
			t.Fatalf("the slow judge: %v, credit loop %v; the checker: %v", s.faults, s.creditLoop(), err)
		}
	})
}

// TestCheckNeedNotWalkEveryLID compares the quick way with the long one, on
// tables that are right and on damaged ones.
func TestCheckNeedNotWalkEveryLID(t *testing.T) {
	engines := []route.Engine{minhop.Engine{}, updn.Engine{}}
	rapid.Check(t, func(t *rapid.T) {
		k := topotest.Random(9, draw(t))
		k.Disconnect(topo.PortID(draw(t)(k.NumPorts() - 1)))
		f := k.Fabric()
		tables := mustRoute(t, engines[draw(t)(1)], f, nil)
		for range draw(t)(5) {
			sw := f.Switches()[draw(t)(len(f.Switches())-1)]
			lid := ib.LID(1 + draw(t)(int(tables.MaxLID)-1))
			tables.Writable(nil, sw)[lid] = ib.PortNum(draw(t)(int(f.Node(sw).NumPorts)/8 + 1))
		}
		if d := cmp.Diff(route.Check(f, tables), route.CheckEveryLID(f, tables), cmpopts.EquateErrors()); d != "" {
			t.Fatalf("(-quick +long):\n%s", d)
		}
	})
}
