package fabric

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// TestTakeoverLeavesRecords: what a subnet manager has not read yet is not written over what an earlier one recorded. Every
// instance follows each of these records.
func TestTakeoverLeavesRecords(t *testing.T) {
	now := noon
	b := newTestBook(false)
	b.clock = func() time.Time { return now }
	known := v1.Node{GUID: 0xa0, Type: "CA", Description: "host-1 HCA-1", NumPorts: 1, Ports: []v1.Port{{Num: 1, GUID: 0xa1, LID: 7, State: "Active", PKeys: []ib.PKey{0x8005}}}}
	port := records.Port{NodeGUID: 0xa0, Place: home, LID: 7, State: "Active", HCACap: 64, SwitchCap: 32, Time: noon}
	b.nodes.now["0x00000000000000a0"], b.ports.now["0x00000000000000a1"] = known, port
	phase := func(name string, after time.Duration, state ib.SMState, settled, kept bool) {
		t.Helper()
		now = now.Add(after)
		// Of the host nothing is read yet but that it is there.
		b.look(seenAt(home, func(o *observed) { o.settled, o.quiet, o.smState = settled, false, state }))
		n, _ := b.nodes.get("0x00000000000000a0")
		if is := n.Description == known.Description; is != kept {
			t.Errorf("%s: the record of the node is kept: %v, want %v", name, is, kept)
		}
		if p, _ := b.ports.get("0x00000000000000a1"); p != port {
			t.Errorf("%s: the record of the port is %+v, want %+v", name, p, port)
		}
		if _, ok := b.nodes.get("0x0000000000000010"); !ok {
			t.Errorf("%s: a switch that no record names is not recorded", name)
		}
	}
	phase("discovering", 0, ib.SMDiscovering, false, true)
	phase("master", 2*time.Second, ib.SMMaster, false, true)
	phase("settled", 2*time.Second, ib.SMMaster, true, false)
	b.nodes.set("0x00000000000000a0", known)
	phase("unsettled later", 2*time.Second, ib.SMMaster, false, false)
	b.nodes.set("0x00000000000000a0", known)
	b.settledOnce = false
	phase("never settled", earlyFor, ib.SMMaster, false, false)
}

// TestDiscoveryShowsNoPorts: a port that discovery has found and not read changes no record of it.
func TestDiscoveryShowsNoPorts(t *testing.T) {
	b := newTestBook(false)
	was := records.Port{NodeGUID: 0xa0, Place: home, LID: 7, State: "Active", HCACap: 64, SwitchCap: 32, Time: noon.Add(-time.Hour)}
	b.ports.now["0x00000000000000a1"] = was
	for _, state := range []ib.SMState{ib.SMDiscovering, ib.SMMaster} {
		b.look(seenAt(away, func(o *observed) { o.settled, o.quiet, o.smState = false, false, state }))
		p, _ := b.ports.get("0x00000000000000a1")
		if changed := p != was; changed != (state == ib.SMMaster) {
			t.Errorf("%v: the record of the port changed: %v", state, changed)
		}
	}
}

// TestPendingInOrder: writes come in key order, each once, and keys that became dirty meanwhile come later.
func TestPendingInOrder(t *testing.T) {
	s := newSheet(records.SMs())
	set := func(keys ...string) {
		for _, k := range keys {
			s.set(k, v1.SM{State: k})
		}
	}
	set("c", "a", "b", "e")
	land := func() string {
		before := s.dirty
		s.dirty = maps.Clone(before)
		for _, w := range s.pending(2) {
			w.done()
		}
		for k := range s.dirty {
			delete(before, k)
		}
		return strings.Join(slices.Sorted(maps.Keys(before)), " ")
	}
	got := []string{land()}
	set("d", "a0")
	s.drop("a")
	for range 4 {
		got = append(got, land())
	}
	if want := []string{"a b", "a c", "e", "a0 d", ""}; !slices.Equal(got, want) {
		t.Errorf("written %q, want %q", got, want)
	}
}

// TestHugeTable: a port that shows more P_Keys than any host uses does not make the record of its node grow, and the record
// says so.
func TestHugeTable(t *testing.T) {
	keys := make([]ib.PKey, 1000)
	for i := range keys {
		keys[i] = ib.PKey(0x8001 + i)
	}
	b := newTestBook(false)
	b.look(seenAt(home, holding(true, keys...)))
	n, ok := b.nodes.get("0x00000000000000a0")
	if !ok || len(n.Ports) != 1 {
		t.Fatalf("node %+v, want one port", n)
	}
	if p := n.Ports[0]; len(p.PKeys) != 64 || p.PKeysOmitted != 936 {
		t.Errorf("%d P_Keys listed and %d omitted, want 64 and 936", len(p.PKeys), p.PKeysOmitted)
	}
}

// TestRestlessFabric: a fabric that settles a hundred times a second, because a
// host wants it so, is written once a second.
func TestRestlessFabric(t *testing.T) {
	now := noon
	b := newTestBook(false)
	b.clock = func() time.Time { return now }
	written := 0
	for i := range 1000 {
		o := seenAt(home, nil)
		o.state.Pending = i
		b.look(o)
		if i%100 == 99 {
			b.tick()
		}
		written += len(b.pending(1000))
		b.sight.sheet.dirty = map[string]bool{}
		b.nodes.dirty, b.sms.dirty, b.ports.dirty = map[string]bool{}, map[string]bool{}, map[string]bool{}
		now = now.Add(10 * time.Millisecond)
	}
	if written > 30 {
		t.Errorf("%d records written in ten seconds, want at most 30", written)
	}
	if s, ok := b.sms.get(records.Master); !ok || s.Pending < 990 {
		t.Errorf("the state shown is %+v, want the newest", s)
	}
}
