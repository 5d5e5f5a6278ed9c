package keystore

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sa/trust"
)

// TestSAKeySurvives: the SA_Key in force, the one before in its grace and the data on those before are the same after a
// restart, and no file shows any key.
func TestSAKeySurvives(t *testing.T) {
	dir := t.TempDir()
	inner := files(t, dir)
	s := open(t, inner, root(t, "a", 1), 5)
	k, err := trust.NewKeys(trust.KeyState{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0).UTC()
	for i := range 3 {
		if err := k.Rotate(now, held(i), time.Hour); err != nil {
			t.Fatal(err)
		}
		state := k.State()
		if err := s.Save(state.Facts()); err != nil {
			t.Fatal(err)
		}
	}
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	scan := keystest.New(keystest.Planted(0), keystest.Planted(1), keystest.Planted(2))
	scan.CleanFiles(t, dir)

	facts, err := open(t, files(t, dir), root(t, "a", 1), 6).Load()
	if err != nil {
		t.Fatal(err)
	}
	state, err := trust.KeyStateOf(facts)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(k.State(), state, bare); d != "" {
		t.Errorf("after a restart (-want +got):\n%s", d)
	}
	again, err := trust.NewKeys(state)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []trust.Shown{trust.ShownRetired, trust.ShownRight, trust.ShownRight} {
		if got := again.Show(now, keystest.Planted(i)); got != want {
			t.Errorf("key %d: %d, want %d", i, got, want)
		}
	}
}
