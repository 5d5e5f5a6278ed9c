package fabric

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/events"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// TestForeignPKeys: P_Keys that were removed and that no membership explains are an event, which names tables and hosts. Those of
// a second are one, and what comes while it waits for the store is the next one.
func TestForeignPKeys(t *testing.T) {
	r := newSightRig(t)
	r.book.owners.ports[0xa1], r.book.owners.cables[ib.Place{Switch: 0x10, Port: 3}] = "alice", "bob"
	tick := func(evs ...sm.Event) {
		r.book.handle(evs)
		r.now = r.now.Add(time.Second)
		r.book.tick()
	}
	write := func() {
		t.Helper()
		if err := r.link.write(t.Context(), r.book); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	write()
	if got := r.events(); len(got) != 0 {
		t.Fatalf("without any: events %q", got)
	}
	tick(
		&sm.ForeignPKeys{GUID: 0xa1, Place: ib.Place{Switch: 0x10, Port: 2}, Adapter: true, PKeys: []ib.PKey{0x8005, 0x0006}},
		&sm.ForeignPKeys{Place: ib.Place{Switch: 0x10, Port: 3}, PKeys: []ib.PKey{0x8007}},
		&sm.ForeignPKeys{Place: ib.Place{Switch: 0x10, Port: 4}, PKeys: slices.Repeat([]ib.PKey{0x8008}, 20)},
	)
	for port := range 40 {
		tick(&sm.ForeignPKeys{Place: ib.Place{Switch: 0x20, Port: ib.PortNum(port + 1)}, PKeys: []ib.PKey{0x8009}})
	}
	write()
	first := r.newest()
	for _, want := range []string{
		"removed from 3 tables: ", "0x8005 0x0006 at adapter at 0x0000000000000010/2 (alice)", "0x8007 at switch port 0x0000000000000010/3 (bob)",
		"0x8008 0x8008 0x8008 0x8008 16 more at switch port 0x0000000000000010/4 (no host of the inventory)",
	} {
		if !strings.Contains(first.Seen, want) {
			t.Errorf("the event lacks %q: %s", want, first.Seen)
		}
	}
	tick()
	write()
	if second := r.newest(); second.Count != 2 || !strings.HasPrefix(second.Seen, "removed from 40 tables: ") || !strings.HasSuffix(second.Seen, "; and 37 more") {
		t.Errorf("what came while an event waited: %d events, the last is %s", second.Count, second.Seen)
	}
	tick()
	write()
	if got, want := r.events(), []string{"fabric.foreign-p-keys removed 2"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// newest returns the event that happened last.
func (r *sightRig) newest() v1.Event {
	r.t.Helper()
	all, err := events.Book{Store: r.store}.List(r.t.Context(), v1.EventQuery{})
	if err != nil || len(all.Items) == 0 {
		r.t.Fatalf("%d events: %v", len(all.Items), err)
	}
	return all.Items[0]
}
