package partition

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// TestTables lives through random grants, withdrawals, cable moves, GUID
// claims and foreign writes, writes every plan as the core would, and checks
// what must hold after each step.
func TestTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := hosts()
		for _, h := range k.Hosts {
			setNode(k, h, func(n *topo.Node) {
				n.PartitionCap = uint16(rapid.SampledFrom([]int{8, 8, 4, 2, 1, 0}).Draw(t, "host capacity"))
			})
		}
		setNode(k, 0, func(n *topo.Node) {
			n.PartitionEnforcementCap = uint16(rapid.SampledFrom([]int{8, 8, 8, 5, 3, 1, 0}).Draw(t, "switch capacity"))
			n.InboundEnforcementCap = rapid.IntRange(0, 5).Draw(t, "inbound") > 0
		})
		device := make(map[topo.PortID]Table)
		var members []Member
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			members = disturb(t, k, members, device)
			f := k.Fabric()
			rules := Rules{SM: []topo.PortID{f.PortOf(k.Hosts[0], 1)}}
			roster := NewRoster(members)
			w := Plan(f, rules, roster, func(id topo.PortID) Table { return device[id] })
			for _, p := range w.Ports {
				checkPort(t, f, rules, roster, p, device)
			}
			checkEveryMemberJudged(t, roster, w)
			for _, p := range w.Ports {
				write(device, p.Port, p.EndPort)
				if p.SwitchPort != topo.None {
					write(device, p.SwitchPort, p.Switch)
				}
			}
			again := Plan(f, rules, roster, func(id topo.PortID) Table { return device[id] })
			for i, p := range again.Ports {
				if len(Blocks(p.EndPort, w.Ports[i].EndPort))+len(Blocks(p.Switch, w.Ports[i].Switch)) > 0 {
					t.Fatalf("port %d: the plan is not settled once written", p.Port)
				}
			}
		}
	})
}

// disturb changes one thing about the world.
func disturb(t *rapid.T, k *topotest.Kit, members []Member, device map[topo.PortID]Table) []Member {
	host := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 0}).Draw(t, "host")
	switch rapid.IntRange(0, 9).Draw(t, "change") {
	case 0:
		claim(k, host, rapid.SampledFrom([]ib.GUID{0, 0x99, guid(1), guid(2), guid(3)}).Draw(t, "claimed GUID"))
	case 1:
		k.LinkPorts(k.Hosts[host], 1, 0, rapid.IntRange(1, 6).Draw(t, "switch port"))
	case 2:
		if len(members) > 0 {
			i := rapid.IntRange(0, len(members)-1).Draw(t, "withdrawn")
			return slices.Delete(members, i, i+1)
		}
	case 3:
		id := topo.PortID(rapid.IntRange(1, 6).Draw(t, "scribbled port"))
		table := make(Table, 8)
		for i := range table {
			table[i] = drawKey(t)
		}
		device[id] = table
	case 4:
		return append(members, Member{
			GUID: guid(host), PKey: drawKey(t), Place: at(ib.PortNum(rapid.IntRange(0, 6).Draw(t, "place"))),
		})
	default:
		return append(members, Member{GUID: guid(host), PKey: drawKey(t), Place: at(ib.PortNum(host + 1))})
	}
	return members
}

func drawKey(t *rapid.T) ib.PKey {
	return rapid.SampledFrom([]ib.PKey{0, 0x8000, 0x7fff, 0xffff, 0x0001, 0x8001, 0x8002, 0x8003, 0x8004, 0x8005, 0x8006}).Draw(t, "key")
}

func write(device map[topo.PortID]Table, id topo.PortID, want Table) {
	have := slices.Clone(device[id])
	for _, b := range Blocks(want, have) {
		for int(b.Num+1)*BlockSize > len(have) {
			have = append(have, 0)
		}
		copy(have[int(b.Num)*BlockSize:], b.PKeys[:])
	}
	device[id] = have
}

func checkPort(t *rapid.T, f *topo.Fabric, r Rules, roster Roster, p PortPlan, device map[topo.PortID]Table) {
	def := ib.DefaultPKeyLimited
	if slices.Contains(r.SM, p.Port) {
		def = ib.DefaultPKeyFull
	}
	allowed := func(k ib.PKey) bool {
		m := Member{GUID: f.Port(p.Port).GUID, PKey: k, Place: f.PlaceOf(p.Port)}
		return m.GUID.Valid() && !m.Place.IsZero() && slices.Contains(roster.All(), m)
	}
	checkTable(t, p.EndPort, max(1, int(f.NodeOf(p.Port).PartitionCap)), def, device[p.Port], allowed)
	sw := f.SwitchPortOf(p.Port)
	if p.SwitchPort == topo.None {
		if len(p.EndPort) > 1 {
			t.Fatalf("port %d holds %v and nobody enforces it", p.Port, p.EndPort)
		}
		return
	}
	if p.SwitchPort != sw {
		t.Fatalf("port %d: enforced at %d, cabled to %d", p.Port, p.SwitchPort, sw)
	}
	checkTable(t, p.Switch, int(f.NodeOf(sw).PartitionEnforcementCap), def, device[sw], allowed)
	a, b := slices.Sorted(slices.Values(p.EndPort)), slices.Sorted(slices.Values(p.Switch))
	nonzero := func(k ib.PKey) bool { return k == 0 }
	if d := cmp.Diff(slices.DeleteFunc(a, nonzero), slices.DeleteFunc(b, nonzero)); d != "" {
		t.Fatalf("port %d and the switch port differ:\n%s", p.Port, d)
	}
}

func checkTable(t *rapid.T, table Table, capacity int, def ib.PKey, before Table, allowed func(ib.PKey) bool) {
	if len(table) == 0 || len(table) > capacity || table[0] != def {
		t.Fatalf("table %v: want %v at index 0 and at most %d entries", table, def, capacity)
	}
	bases := map[ib.PKey]bool{def.Base(): true}
	for i, k := range table[1:] {
		if k == 0 {
			continue
		}
		if !allowed(k) {
			t.Fatalf("table %v: nobody at its place was given %v", table, k)
		}
		if bases[k.Base()] {
			t.Fatalf("table %v: partition %v twice", table, k.Base())
		}
		bases[k.Base()] = true
		if was := indexOfBase(before[min(1, len(before)):], k); was >= 0 && was != i && was+1 < capacity {
			t.Fatalf("table %v: %v moved from index %d to %d", table, k, was+1, i+1)
		}
	}
}

// checkEveryMemberJudged: each member is accepted or rejected, and not both.
func checkEveryMemberJudged(t *rapid.T, roster Roster, w Wanted) {
	verdicts := make(map[Member]int)
	for _, p := range w.Ports {
		for _, m := range p.Members {
			verdicts[m]++
		}
	}
	for _, r := range w.Refused {
		verdicts[r.Member]++
	}
	for _, m := range roster.All() {
		if verdicts[m] != 1 {
			t.Fatalf("member %v has %d verdicts", m, verdicts[m])
		}
	}
}
