package partition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

var leaf = topotest.SwitchGUID(1, 1)

// hosts is one switch with four hosts on ports 1 to 4.
func hosts() *topotest.Kit { return topotest.Single(4, 36) }

func guid(host int) ib.GUID { return topotest.HostGUID(host) + 1 }

func at(port ib.PortNum) ib.Place { return ib.Place{Switch: leaf, Port: port} }

func setNode(k *topotest.Kit, id topo.NodeID, change func(*topo.Node)) {
	n := k.Node(id)
	change(&n)
	k.SetNode(id, n)
}

func claim(k *topotest.Kit, host int, g ib.GUID) {
	id := k.PortOf(k.Hosts[host], 1)
	p := k.Port(id)
	p.GUID = g
	k.SetPort(id, p)
}

func TestPlanPort(t *testing.T) {
	member := Member{GUID: guid(1), PKey: 0x8001, Place: at(2)}
	second := Member{GUID: guid(1), PKey: 0x8002, Place: at(2)}
	tests := []struct {
		name    string
		change  func(*topotest.Kit)
		rules   Rules
		members []Member
		now     Current
		want    Table // of both ports, nil: the switch port has no table
		noTable bool
		refused []string
	}{
		{name: "stranger", want: Table{0x7fff}},
		{name: "member", members: []Member{member}, want: Table{0x7fff, 0x8001}},
		{name: "limited member", members: []Member{{guid(1), 0x0001, at(2)}}, want: Table{0x7fff, 0x0001}},
		{
			name: "wrong place", members: []Member{{guid(1), 0x8001, at(3)}}, want: Table{0x7fff},
			refused: []string{"0x8001 wrong place seen 0x0010000100000001/2"},
		},
		{
			name: "no place", members: []Member{{guid(1), 0x8001, ib.Place{}}}, want: Table{0x7fff},
			refused: []string{"0x8001 wrong place seen 0x0010000100000001/2"},
		},
		{name: "other's grant", members: []Member{{guid(2), 0x8001, at(2)}}, want: Table{0x7fff}},
		{
			name: "default partition is not granted", members: []Member{{guid(1), 0xffff, at(2)}, {guid(1), 0x7fff, at(2)}}, want: Table{0x7fff},
			refused: []string{"0xffff invalid P_Key", "0x7fff invalid P_Key"},
		},
		{
			name: "base zero", members: []Member{{guid(1), 0x8000, at(2)}}, want: Table{0x7fff},
			refused: []string{"0x8000 invalid P_Key"},
		},
		{
			name: "full and limited", members: []Member{{guid(1), 0x0001, at(2)}, member, second}, want: Table{0x7fff, 0x8002},
			refused: []string{"0x0001 full and limited membership wanted", "0x8001 full and limited membership wanted"},
		},
		{
			name: "switch without enforcement", members: []Member{member}, want: Table{0x7fff}, noTable: true,
			change: func(k *topotest.Kit) {
				setNode(k, 0, func(n *topo.Node) { n.PartitionEnforcementCap = 0 })
			},
			refused: []string{"0x8001 switch cannot enforce at 0x0010000100000001"},
		},
		{
			name: "switch checks one direction", members: []Member{member}, want: Table{0x7fff},
			change: func(k *topotest.Kit) {
				setNode(k, 0, func(n *topo.Node) { n.OutboundEnforcementCap = false })
			},
			refused: []string{"0x8001 switch cannot enforce at 0x0010000100000001"},
		},
		{
			name: "switch that does not tell", members: []Member{member}, want: Table{0x7fff, 0x8001},
			rules: Rules{Enforcement: EnforceCapacity},
			change: func(k *topotest.Kit) {
				setNode(k, 0, func(n *topo.Node) { n.InboundEnforcementCap, n.OutboundEnforcementCap = false, false })
			},
		},
		{
			name: "switch table full", members: []Member{member, second}, want: Table{0x7fff, 0x8001},
			change: func(k *topotest.Kit) {
				setNode(k, 0, func(n *topo.Node) { n.PartitionEnforcementCap = 2 })
			},
			refused: []string{"0x8002 P_Key table full at 0x0010000100000001"},
		},
		{
			name: "host table full, the older key stays", members: []Member{member, second}, want: Table{0x7fff, 0x8002},
			now: Current{EndPort: Table{0x7fff, 0x8002}, Switch: Table{0x7fff, 0x8002}},
			change: func(k *topotest.Kit) {
				setNode(k, k.Hosts[1], func(n *topo.Node) { n.PartitionCap = 2 })
			},
			refused: []string{"0x8001 P_Key table full at 0x0020000000000100"},
		},
		{
			name: "capacity not told", members: []Member{member}, want: Table{0x7fff},
			change: func(k *topotest.Kit) {
				setNode(k, k.Hosts[1], func(n *topo.Node) { n.PartitionCap = 0 })
			},
			refused: []string{"0x8001 P_Key table full at 0x0020000000000100"},
		},
		{
			name: "another port claims the GUID", members: []Member{member}, want: Table{0x7fff, 0x8001},
			change: func(k *topotest.Kit) { claim(k, 0, guid(1)); claim(k, 3, guid(1)) },
		},
		{
			name: "the GUID moved away", members: []Member{member}, want: Table{0x7fff},
			change: func(k *topotest.Kit) { claim(k, 1, 0x99); claim(k, 3, guid(1)) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := hosts()
			if tt.change != nil {
				tt.change(k)
			}
			f := k.Fabric()
			id := f.PortOf(k.Hosts[1], 1)
			got := PlanPort(f, tt.rules, id, tt.members, tt.now)
			if d := cmp.Diff(got.EndPort, tt.want); d != "" {
				t.Errorf("end port (-got +want):\n%s", d)
			}
			wantSwitch, wantPort := tt.want, f.PortOf(0, 2)
			if tt.noTable {
				wantSwitch, wantPort = nil, topo.None
			}
			if d := cmp.Diff(got.Switch, wantSwitch); d != "" || got.SwitchPort != wantPort {
				t.Errorf("switch port %d, want %d (-got +want):\n%s", got.SwitchPort, wantPort, d)
			}
			if d := cmp.Diff(refusals(got.Refused), tt.refused); d != "" {
				t.Errorf("refused (-got +want):\n%s", d)
			}
		})
	}
}

func refusals(rs []*Refusal) (out []string) {
	for _, r := range rs {
		s := fmt.Sprintf("%v %v", r.Member.PKey, r.Reason)
		if r.Device != 0 {
			s += fmt.Sprintf(" at %v", r.Device)
		}
		if !r.Seen.IsZero() {
			s += fmt.Sprintf(" seen %v", r.Seen)
		}
		out = append(out, s)
	}
	return out
}

func TestPlan(t *testing.T) {
	k := hosts()
	claim(k, 3, guid(1)) // host 3 pretends to be host 1
	f := k.Fabric()
	sm := f.PortOf(k.Hosts[0], 1)
	roster := NewRoster([]Member{
		{guid(2), 0x8002, at(3)},
		{guid(1), 0x8001, at(2)},
		{guid(1), 0x8001, at(2)},
		{0x42, 0x8001, at(4)},
	})
	w := Plan(f, Rules{SM: []topo.PortID{sm}}, roster, func(topo.PortID) Table { return nil })
	var got []string
	for _, p := range w.Ports {
		got = append(got, fmt.Sprintf("%v at %v: %v enforced %v", f.Port(p.Port).GUID, f.PlaceOf(p.Port), p.EndPort, p.Switch))
	}
	want := strings.Split(`0x0010000100000001 at 0x0000000000000000/0: [0x7fff] enforced []
0x0020000000000001 at 0x0010000100000001/1: [0xffff] enforced [0xffff]
0x0020000000000101 at 0x0010000100000001/2: [0x7fff 0x8001] enforced [0x7fff 0x8001]
0x0020000000000201 at 0x0010000100000001/3: [0x7fff 0x8002] enforced [0x7fff 0x8002]
0x0020000000000101 at 0x0010000100000001/4: [0x7fff] enforced [0x7fff]`, "\n")
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	if d := cmp.Diff(refusals(w.Refused), []string{"0x8001 not seen"}); d != "" {
		t.Errorf("refused (-got +want):\n%s", d)
	}
	if i := slices.IndexFunc(w.Ports, func(p PortPlan) bool { return p.Misplaced }); i < 0 || f.PlaceOf(w.Ports[i].Port) != at(4) {
		t.Errorf("the pretender is not marked: index %d", i)
	}
}

// TestFullSwitches: switches are limited members of the default partition as all are,
// unless the rules make them full ones; hosts and the ports in front of them stay as
// they are.
func TestFullSwitches(t *testing.T) {
	f := hosts().Fabric()
	for _, full := range []bool{false, true} {
		w := Plan(f, Rules{FullSwitches: full}, NewRoster(nil), func(topo.PortID) Table { return nil })
		for _, p := range w.Ports {
			want := Table{ib.DefaultPKeyLimited}
			if full && f.NodeOf(p.Port).Type == ib.NodeSwitch {
				want = Table{ib.DefaultPKeyFull}
			}
			if !slices.Equal(p.EndPort, want) || p.SwitchPort != topo.None && p.Switch[0] != ib.DefaultPKeyLimited {
				t.Errorf("full switches %v: %v of %v holds %v, its switch port %v", full, p.Port, f.NodeOf(p.Port).Type, p.EndPort, p.Switch)
			}
		}
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	m := Member{guid(1), 0x8001, at(2)}
	for reason := NotSeen; reason <= TableFull; reason++ {
		r := &Refusal{Member: m, Reason: reason, Device: leaf, Limit: 8, Seen: at(3)}
		got := r.Error()
		if !strings.HasPrefix(got, "P_Key 0x8001 for port 0x0020000000000101 at 0x0010000100000001/2: ") || !strings.Contains(got, "; ") && !strings.Contains(got, ", ") {
			t.Errorf("%v: %s", reason, got)
		}
	}
}
