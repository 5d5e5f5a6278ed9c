package fabric

import (
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/fabricsm/ib"
)

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
