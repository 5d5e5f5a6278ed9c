//go:build vm

package softhca_test

import (
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/verbs"
)

// manager is a program at node sm that sets attributes of other nodes, as a subnet manager does.
type manager struct {
	station *sim.Station
	f       adapter.Fabric
}

func newManager(t *testing.T, f adapter.Fabric) manager {
	t.Helper()
	s, err := f.Station("sm", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return manager{s, f}
}

// set sends a Set by the port of the leaf where a node is.
func (m manager) set(t *testing.T, leafPort ib.PortNum, attr mad.AttrID, mod uint32, fill func(data []byte)) {
	t.Helper()
	p := transport.Packet{LID: ib.PermissiveLID}
	r := mad.MakeRoute(1, leafPort)
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodSet, Attr: attr, Mod: mod}, &r, ib.MKey{})
	fill(p.MAD.Data())
	in := m.station.Exchange([]transport.Packet{p}, nil)
	if len(in) != 1 || in[0].Undelivered || in[0].MAD.Status() != mad.StatusOK {
		t.Fatalf("Set of %v by port %d of the leaf: %d answers", attr, leafPort, len(in))
	}
}

// port changes PortInfo of a node.
func (m manager) port(t *testing.T, node string, leafPort ib.PortNum, change func(*mad.PortInfo)) {
	t.Helper()
	info := m.f.PortInfo(node, 1)
	info.PortState, info.PortPhysicalState = ib.PortNop, ib.PhysNop
	change(&info)
	m.set(t, leafPort, mad.AttrPortInfo, 1, func(data []byte) {
		if err := mad.Encode(data, &info); err != nil {
			t.Fatal(err)
		}
	})
}

// pkeys sets the first entries of the P_Key table of a node.
func (m manager) pkeys(t *testing.T, leafPort ib.PortNum, keys ...ib.PKey) {
	t.Helper()
	m.set(t, leafPort, mad.AttrPKeyTable, 0, func(data []byte) {
		for i, k := range keys {
			data[2*i], data[2*i+1] = byte(k>>8), byte(k)
		}
	})
}

// open opens an adapter for programs, until the test ends.
func open(t *testing.T, name string) *verbs.Context {
	t.Helper()
	var c *verbs.Context
	guest.Eventually(t, soon, "the adapter has no uverbs file", func() bool {
		var err error
		c, err = verbs.Open(name)
		return err == nil
	})
	t.Cleanup(c.Close)
	return c
}

// wants waits until the adapter reported an event, and returns how long that took.
func wants(t *testing.T, c *verbs.Context, event uint32, since time.Time) time.Duration {
	t.Helper()
	var other []uint32
	for {
		e, ok, err := c.Event(int(soon.Milliseconds()))
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			t.Fatalf("event %d did not come, but %v", event, other)
		}
		if e.Type == event {
			return time.Since(since)
		}
		other = append(other, e.Type)
	}
}

// drain takes the events that are there.
func drain(t *testing.T, c *verbs.Context) (types []uint32) {
	t.Helper()
	for {
		e, ok, err := c.Event(200)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return types
		}
		types = append(types, e.Type)
	}
}

// Each change by a subnet manager comes to the kernel by itself.
func TestEvents(t *testing.T) {
	f := adapter.NewFabric(t)
	a := f.Plug(t, "h1", "mlx5_0")
	m := newManager(t, f)
	c := open(t, "mlx5_0")
	// An event reports nothing else.
	drain(t, c)
	m.pkeys(t, h1Port, 0xffff, 0x8002)
	if e, ok, err := c.Event(int(soon.Milliseconds())); !ok || err != nil || e.Type != verbs.PKeyChange {
		t.Errorf("a changed P_Key is told by event %d, %v, %v", e.Type, ok, err)
	}
	if got := drain(t, c); len(got) > 0 {
		t.Errorf("a changed P_Key is also told by events %v", got)
	}
	// Linux reports a changed GID to no program; its own table follows.
	m.port(t, "h1", h1Port, func(p *mad.PortInfo) { p.GIDPrefix = 0xfec0 << 48 })
	guest.Eventually(t, soon, "the kernel's GID has the old prefix", func() bool {
		return strings.HasPrefix(adapter.PortFile(t, "mlx5_0", 1, "gids/0"), "fec0:")
	})
	for _, tt := range []struct {
		name   string
		event  uint32
		change func()
	}{
		{"LID", verbs.LIDChange, func() { m.port(t, "h1", h1Port, func(p *mad.PortInfo) { p.LID = 7 }) }},
		{"SM", verbs.SMChange, func() { m.port(t, "h1", h1Port, func(p *mad.PortInfo) { p.MasterSMLID = 3 }) }},
		{"P_Key", verbs.PKeyChange, func() { m.pkeys(t, h1Port, 0xffff, 0x8001) }},
		{"reregister", verbs.ClientRegister, func() { m.port(t, "h1", h1Port, func(p *mad.PortInfo) { p.ClientReregister = true }) }},
		{"active", verbs.PortActive, func() {
			m.port(t, "h1", h1Port, func(p *mad.PortInfo) { p.PortState = ib.PortArmed })
			m.port(t, "h1", h1Port, func(p *mad.PortInfo) { p.PortState = ib.PortActive })
		}},
		{"cable pulled", verbs.PortError, func() {
			if err := f.Unlink("h1", 1); err != nil {
				t.Fatal(err)
			}
		}},
		{"fatal", verbs.DeviceFatal, a.Fatal},
	} {
		drain(t, c)
		begin := time.Now()
		tt.change()
		t.Logf("%s: told after %v", tt.name, wants(t, c, tt.event, begin))
	}
	if got := adapter.PortFile(t, "mlx5_0", 1, "lid"); got != "0x7" {
		t.Errorf("LID is %s, want 0x7", got)
	}
	if got := adapter.PortFile(t, "mlx5_0", 1, "pkeys/1"); got != "0x8001" {
		t.Errorf("P_Key 1 is %s, want 0x8001", got)
	}
	if got := adapter.PortFile(t, "mlx5_0", 1, "state"); got != "1: DOWN" {
		t.Errorf("state is %s, want DOWN", got)
	}
	// Pulled while a program has it open: the program is notified, and its calls fail.
	adapter.Pull(t, a, "mlx5_0")
	if _, err := c.NewCQ(1); err == nil {
		t.Error("a program makes a completion queue of a pulled adapter")
	}
}
