package pkeys

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/topo"
)

// Foreign notes what a port loses that no membership explains.
func (c *core) Foreign(f *Foreign) {
	table := "switch"
	if f.Adapter {
		table = "adapter"
	}
	c.events = append(c.events, fmt.Sprintf("foreign %v at %s, port %v, %v", f.PKeys, table, f.GUID, f.Place))
}

// devices are tables of devices; stubborn ones accept a Set and keep what they have.
type devices struct {
	held     map[topo.PortID][]ib.PKey
	stubborn bool
}

// run takes up to n steps of each port in turn.
func (d *devices) run(c *core, n int) {
	for range n {
		for _, p := range []topo.PortID{c.leaf, c.host} {
			s := c.keeper.Next(p)
			if s.Method == 0 {
				continue
			}
			block := d.held[p][s.Block*perBlock:][:perBlock]
			if s.Method == mad.MethodSet && !d.stubborn {
				copy(block, s.Want.PKey[:])
			}
			var got mad.PKeyTable
			copy(got.PKey[:], block)
			c.keeper.Take(p, requestFor(p, s), &got)
		}
	}
}

// TestForeign: a P_Key that is removed and that no membership explains is reported, once for each table that had it.
func TestForeign(t *testing.T) {
	const other ib.PKey = 0x0002
	here, there := ib.Place{Switch: 0x10, Port: 1}, ib.Place{Switch: 0x10, Port: 2}
	const atSwitch, atAdapter = "foreign [0x8001 0x0002] at switch, port 0x0000000000000021, 0x0000000000000010/1", "foreign [0x8001 0x0002] at adapter, port 0x0000000000000021, 0x0000000000000010/1"
	const rest, restAdapter = "foreign [0x0002] at switch, port 0x0000000000000021, 0x0000000000000010/1", "foreign [0x0002] at adapter, port 0x0000000000000021, 0x0000000000000010/1"
	for _, tt := range []struct {
		name   string
		intent func(*members.Register)
		want   []string
	}{
		{"no membership", func(*members.Register) {}, []string{atSwitch, atAdapter}},
		{"a membership of one partition", func(m *members.Register) {
			m.Grant(partition.Member{GUID: 0x21, PKey: tenant, Place: here})
		}, []string{rest, restAdapter}},
		{"the limited form of one", func(m *members.Register) {
			m.Grant(partition.Member{GUID: 0x21, PKey: tenant.Limited(), Place: here})
		}, []string{rest, restAdapter}},
		{"one that is to go", func(m *members.Register) {
			m.Grant(partition.Member{GUID: 0x21, PKey: tenant, Place: here})
			m.Withdraw(partition.Member{GUID: 0x21, PKey: tenant, Place: here})
		}, []string{rest, restAdapter}},
		{"one of the port at another place", func(m *members.Register) {
			m.Grant(partition.Member{GUID: 0x21, PKey: tenant, Place: there})
		}, []string{rest, restAdapter}},
		{"one of another port at the place", func(m *members.Register) {
			m.Grant(partition.Member{GUID: 0x22, PKey: tenant, Place: here})
		}, []string{rest, restAdapter}},
		{"one of another port elsewhere", func(m *members.Register) {
			m.Grant(partition.Member{GUID: 0x22, PKey: tenant, Place: there})
		}, []string{atSwitch, atAdapter}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, m := newCoreWith(1)
			tt.intent(m)
			d := devices{held: map[topo.PortID][]ib.PKey{}}
			for _, p := range []topo.PortID{c.leaf, c.host} {
				d.held[p] = make([]ib.PKey, perBlock)
				copy(d.held[p], []ib.PKey{ib.DefaultPKeyLimited, tenant, other})
			}
			d.run(c, 20)
			told := slices.DeleteFunc(c.events, func(e string) bool { return e[:7] != "foreign" })
			if diff := cmp.Diff(tt.want, told); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if slices.Contains(d.held[c.leaf], other) || slices.Contains(d.held[c.host], other) {
				t.Errorf("the foreign P_Key stays: %v, %v", d.held[c.leaf], d.held[c.host])
			}
		})
	}
}

// TestForeignAgain: a device that keeps a foreign P_Key is reported once, and again when it has one later.
func TestForeignAgain(t *testing.T) {
	c, _ := newCoreWith(1)
	clean := func() []ib.PKey { return append([]ib.PKey{ib.DefaultPKeyLimited}, make([]ib.PKey, perBlock-1)...) }
	d := devices{held: map[topo.PortID][]ib.PKey{c.leaf: clean(), c.host: clean()}, stubborn: true}
	d.held[c.leaf][5] = tenant
	d.run(c, 20)
	if len(c.events) != 1 {
		t.Fatalf("of a switch that does not do as it is told: %q", c.events)
	}
	d.stubborn = false
	d.run(c, 5)
	if d.held[c.leaf][5] != 0 || len(c.events) != 1 {
		t.Fatalf("the switch port has %v, events are %q", d.held[c.leaf], c.events)
	}
	d.held[c.leaf][7] = tenant
	c.keeper.Forget(c.leaf)
	d.run(c, 5)
	if len(c.events) != 2 || d.held[c.leaf][7] != 0 {
		t.Errorf("later: the switch port has %v, events are %q", d.held[c.leaf], c.events)
	}
}
