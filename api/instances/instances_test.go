package instances_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/instances"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/fabricsm/ib"
)

// TestRecords: each instance changes its own record. One that was not written for long is no instance any more, and neither
// is one that was removed. A record that does not change is not written again within an hour.
func TestRecords(t *testing.T) {
	s, now := store.New(memory.New(time.Now), ""), time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	update := func(name string, at time.Time, change func(*instances.Instance)) {
		t.Helper()
		if err := instances.Update(t.Context(), s, name, at, change); err != nil {
			t.Fatal(err)
		}
	}
	list := func(at time.Time) (out []instances.Named) {
		t.Helper()
		out, err := instances.List(t.Context(), s, at)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	update("b", now, func(i *instances.Instance) { i.API, i.Pin, i.Manages = "https://b:8443", []byte{1}, true })
	update("a", now, func(i *instances.Instance) { i.API = "https://a:8443" })
	at := ib.Place{Switch: 0x10, Port: 3}
	update("b", now.Add(time.Minute), func(i *instances.Instance) { i.Port, i.Place = 0x20, at })
	want := []instances.Named{
		{Name: "a", Instance: instances.Instance{API: "https://a:8443", Seen: now}},
		{Name: "b", Instance: instances.Instance{API: "https://b:8443", Pin: []byte{1}, Manages: true, Port: 0x20, Place: at, Seen: now.Add(time.Minute)}},
	}
	if d := cmp.Diff(want, list(now)); d != "" {
		t.Errorf("after two changes of b (-want +got):\n%s", d)
	}
	update("a", now.Add(59*time.Minute), func(*instances.Instance) {})
	if d := cmp.Diff(want, list(now)); d != "" {
		t.Errorf("nothing changed within an hour (-want +got):\n%s", d)
	}
	update("a", now.Add(time.Hour), func(*instances.Instance) {})
	if got := list(now); !got[0].Seen.Equal(now.Add(time.Hour)) {
		t.Errorf("an hour later: %+v", got[0])
	}
	if got := list(now.Add(instances.Absent + 2*time.Minute)); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("long after b was seen last: %+v", got)
	}
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error { instances.Forget(tx, "a"); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := list(now); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("after a was removed: %+v", got)
	}
}
