package lend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
)

// rig is a core in which some devices have keys.
type rig struct {
	now      time.Time
	keyed    map[ib.GUID]bool
	replaced []ib.GUID
	saved    map[ib.GUID]string
	said     []string
	alarms   []time.Duration
}

func (r *rig) Now() time.Time                                  { return r.now }
func (r *rig) Report(e fault.Event)                            { r.said = append(r.said, e.String()) }
func (r *rig) After(d time.Duration, _ work.Alarm, _ work.Ref) { r.alarms = append(r.alarms, d) }
func (r *rig) ShowSoon()                                       {}
func (r *rig) SaveLease(guid ib.GUID, _ time.Time, to string)  { r.saved[guid] = to }
func (r *rig) IsLendable(guid ib.GUID) bool                    { return r.keyed[guid] }
func (r *rig) HasKey(guid ib.GUID) bool                        { return r.keyed[guid] }
func (r *rig) Replace(guid ib.GUID)                            { r.replaced = append(r.replaced, guid) }
func (r *rig) LeaseChanged(ib.GUID)                            {}

func start(guids ...ib.GUID) (*rig, Leases) {
	r := &rig{now: time.Unix(1e9, 0), keyed: make(map[ib.GUID]bool), saved: make(map[ib.GUID]string)}
	for _, g := range guids {
		r.keyed[g] = true
	}
	return r, New(r, r, r, r, controls.Strict{})
}

func TestAKeyIsReplacedWhenItsTimeIsOver(t *testing.T) {
	r, l := start(1, 2, 3)
	end := r.now.Add(time.Minute)
	l.Lend(2, end, "bob")
	l.Lend(1, end, "alice")
	l.Lend(3, end.Add(time.Hour), "carol")
	l.Lend(9, end, "a tool that asks for a key that does not exist")
	if got := len(r.alarms); got != 3 || len(r.saved) != 3 || r.saved[1] != "alice" {
		t.Fatalf("%d alarms, saved %v", got, r.saved)
	}
	r.now = end.Add(2 * time.Second)
	l.Due()
	if want := []ib.GUID{1, 2}; !slices.Equal(r.replaced, want) || r.saved[1] != "" || r.saved[3] != "carol" {
		t.Errorf("replaced %v, want %v; saved %v", r.replaced, want, r.saved)
	}
	if last := r.said[len(r.said)-1]; !strings.Contains(last, "2s late") {
		t.Errorf("said %q", last)
	}
	delete(r.keyed, 3)
	r.now = end.Add(2 * time.Hour)
	if l.Due(); len(r.replaced) != 2 || !l.Until(3).IsZero() {
		t.Errorf("replaced %v: a device without a key has none to replace", r.replaced)
	}
}

func TestALeaseHasBounds(t *testing.T) {
	r, l := start()
	for g := ib.GUID(1); g <= maxLeases+1; g++ {
		r.keyed[g] = true
		l.Lend(g, r.now.Add(48*time.Hour), strings.Repeat("x", 2*maxBorrower))
	}
	if got := l.Until(1).Sub(r.now); got != Longest {
		t.Errorf("lent for %v, want %v", got, Longest)
	}
	if got := len(r.saved[1]); got != maxBorrower {
		t.Errorf("the name of the holder has %d bytes, want %d", got, maxBorrower)
	}
	if last := r.said[len(r.said)-1]; !l.Until(maxLeases+1).IsZero() || !strings.Contains(last, fmt.Sprintf("%d others are", maxLeases)) {
		t.Errorf("said %q", last)
	}
}

func TestALeaseOutlastsARestart(t *testing.T) {
	r, l := start(1, 2)
	l.Load(1, r.now.Add(-time.Hour), "alice")
	l.Load(2, r.now.Add(time.Hour), "bob")
	l.Load(2, time.Time{}, "")
	l.Start()
	if want := []time.Duration{0}; !slices.Equal(r.alarms, want) {
		t.Errorf("alarms %v, want %v", r.alarms, want)
	}
	if l.Due(); !slices.Equal(r.replaced, []ib.GUID{1}) {
		t.Errorf("replaced %v", r.replaced)
	}
}
