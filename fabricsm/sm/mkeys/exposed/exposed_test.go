package exposed

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

func TestProgressSurvivesAsAMark(t *testing.T) {
	for _, p := range []Progress{None, Shown, Replaced} {
		var r Record
		r.Load(1, p.Mark())
		if r.Of(1) != p || len(r.All()) != min(int(p), 1) {
			t.Errorf("progress %d is read back as %d", p, r.Of(1))
		}
	}
	var r Record
	if r.Load(1, "of a later version"); r.Of(1) != Shown {
		t.Errorf("an unknown mark is read as %d", r.Of(1))
	}
}

func TestAKeyIsToldOfOnceUntilItIsReplaced(t *testing.T) {
	var r Record
	if !r.RecordSeen(7) || r.RecordSeen(7) {
		t.Error("want one report")
	}
	if !r.Set(7, Shown) || r.Set(7, Shown) || r.RecordSeen(7) {
		t.Error("the key is still the same")
	}
	if !r.Set(7, Replaced) || !r.RecordSeen(7) {
		t.Error("another key is exposed: want a report")
	}
	if !r.Set(7, None) || len(r.All()) != 0 {
		t.Error("nothing is exposed any longer")
	}
}

func TestKeysOfAProbeAreListedUntilAnAnswerComes(t *testing.T) {
	var r Record
	for _, g := range []ib.GUID{3, 5, 3} {
		r.RecordProbe(2, g)
	}
	want := []ib.GUID{3, 5}
	if got := r.ProbedUnder(2); !slices.Equal(got, want) {
		t.Errorf("probed under %v, want %v", got, want)
	}
	if got := r.Answered(2); !slices.Equal(got, want) || len(r.ProbedUnder(2)) != 0 {
		t.Errorf("answered %v, want %v and none after that", got, want)
	}
}

func TestAKeyIsExposedIfItsLinkIsLostSoonAfter(t *testing.T) {
	const p topo.PortID = 4
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {lossTime, true}, {lossTime + time.Millisecond, false}} {
		var r Record
		if r.LinkLost(p, 0) {
			t.Error("nothing was shown")
		}
		r.RecordShown(p, time.Minute, 8)
		if got := r.LinkLost(p, time.Minute+tt.after); got != tt.want || r.WasShown(p) {
			t.Errorf("lost %v after: exposed %v, want %v", tt.after, got, tt.want)
		}
		r.RecordShown(p, time.Minute, 8)
		if r.Forget(p); r.WasShown(p) {
			t.Error("a port that is gone has shown a key")
		}
	}
}
