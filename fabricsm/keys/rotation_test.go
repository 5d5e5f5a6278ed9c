package keys

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

var t0 = time.Unix(1e9, 0).UTC()

// fleetOf returns devices 1 to n, all with dual keys, the first one nearest.
func fleetOf(n int) func(Kind) []Member {
	var all []Member
	for g := 1; g <= n; g++ {
		all = append(all, Member{GUID: ib.GUID(g), Dual: true, Keyed: true, Prior: true, Depth: g, Epoch: 7})
	}
	return func(Kind) []Member { return all }
}

func rotator(t *testing.T, c RotationConfig, kinds []Kind, saved ...Cycle) *Rotator {
	t.Helper()
	r, err := NewRotator(c, kinds, t0, saved)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func guids(targets []Target) (out []ib.GUID) {
	for _, x := range targets {
		out = append(out, x.GUID)
	}
	return out
}

func TestRotationWaitsAFullPeriodFirst(t *testing.T) {
	ended := Cycle{Kind: MKey, Epoch: 3, Began: t0.Add(-48 * time.Hour), Changed: t0.Add(-47 * time.Hour), Ended: t0.Add(-46 * time.Hour)}
	r := rotator(t, DefaultRotation(), []Kind{MKey}, ended)
	for _, after := range []time.Duration{0, time.Hour, 24*time.Hour - 1} {
		got := r.Next(t0.Add(after), true, fleetOf(3))
		if d := cmp.Diff(Turn{Wake: t0.Add(24 * time.Hour)}, got); d != "" {
			t.Errorf("after %v (-want +got):\n%s", after, d)
		}
	}
	if got := r.Next(t0.Add(24*time.Hour), true, fleetOf(3)); len(got.Change) != 3 || got.Change[0].Epoch != 8 {
		t.Errorf("after a period: %+v, want three changes to epoch 8, after all that were", got)
	}
}

func TestRotationIsPacedFromFarToNear(t *testing.T) {
	c := DefaultRotation()
	c.Window = 2
	r := rotator(t, c, []Kind{MKey})
	now := t0.Add(c.Period)
	var order []ib.GUID
	turn := r.Next(now, true, fleetOf(5))
	if len(turn.Save) != 1 || turn.Save[0].Began != now {
		t.Fatalf("saved %+v first, want the cycle", turn.Save)
	}
	for len(turn.Change) > 0 {
		order = append(order, guids(turn.Change)...)
		if again := r.Next(now, true, fleetOf(5)); len(again.Change) != 0 {
			t.Fatalf("%d more while the window is full", len(again.Change))
		}
		r.Done(MKey, turn.Change[0].GUID, order[0] != turn.Change[0].GUID)
		if len(turn.Change) == 2 {
			r.Done(MKey, turn.Change[1].GUID, true)
		}
		turn = r.Next(now, true, fleetOf(5))
	}
	if d := cmp.Diff([]ib.GUID{5, 4, 3, 2, 1}, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	want := Cycle{Kind: MKey, Epoch: 8, Began: now, Changed: now}
	if d := cmp.Diff([]Summary{{Cycle: want, Done: 4, Failed: 1}}, turn.Ended); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Cycle{want}, turn.Save); d != "" || turn.Wake != now.Add(c.Grace) {
		t.Errorf("saved, wake at %v (-want +got):\n%s", turn.Wake, d)
	}
	commits := r.Next(turn.Wake, true, fleetOf(5)).Commit
	if d := cmp.Diff([]ib.GUID{5, 4}, guids(commits)); d != "" {
		t.Errorf("commits (-want +got):\n%s", d)
	}
}

func TestRotationOfNodeKeysIsOneAtATime(t *testing.T) {
	r := rotator(t, DefaultRotation(), []Kind{N2NNodeKey, VSKey})
	got := r.Next(t0.Add(24*time.Hour), true, fleetOf(9))
	count := map[Kind]int{}
	for _, c := range got.Change {
		count[c.Kind]++
	}
	if d := cmp.Diff(map[Kind]int{N2NNodeKey: 1, VSKey: 9}, count); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
}

func TestRotationLeavesSingleKeysAlone(t *testing.T) {
	r := rotator(t, DefaultRotation(), []Kind{MKey})
	fleet := func(Kind) []Member {
		return []Member{{GUID: 1, Keyed: true}, {GUID: 2, Dual: true}, {GUID: 3, Dual: true, Keyed: true}}
	}
	got := r.Next(t0.Add(24*time.Hour), true, fleet)
	if d := cmp.Diff([]Target{{MKey, 3, 1}}, got.Change); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	r.Done(MKey, 3, true)
	if end := r.Next(t0.Add(24*time.Hour), true, fleet).Ended; len(end) != 1 || end[0].Single != 1 || end[0].Done != 1 {
		t.Errorf("summary %+v, want one device done and one without dual keys", end)
	}
}

func TestRotationPauses(t *testing.T) {
	r := rotator(t, DefaultRotation(), []Kind{MKey})
	if d := cmp.Diff(Turn{}, r.Next(t0.Add(24*time.Hour), false, fleetOf(3))); d != "" {
		t.Errorf("while not ready (-want +got):\n%s", d)
	}
}

func TestRotationResumesAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name           string
		saved          Cycle
		change, commit int
		wake           time.Time
	}{
		{"while changing", Cycle{Kind: MKey, Epoch: 8, Began: t0.Add(-time.Minute)}, 3, 0, time.Time{}},
		{"changing, all done", Cycle{Kind: MKey, Epoch: 7, Began: t0.Add(-time.Minute)}, 0, 0, t0.Add(time.Hour)},
		{"in grace", Cycle{Kind: MKey, Epoch: 7, Began: t0, Changed: t0.Add(-time.Minute)}, 0, 0, t0.Add(59 * time.Minute)},
		{"in grace, the clock was set back", Cycle{Kind: MKey, Epoch: 7, Began: t0, Changed: t0.Add(900 * time.Hour)}, 0, 0, t0.Add(time.Hour)},
		{"after grace", Cycle{Kind: MKey, Epoch: 7, Began: t0, Changed: t0.Add(-2 * time.Hour)}, 0, 3, time.Time{}},
	} {
		got := rotator(t, DefaultRotation(), []Kind{MKey}, tt.saved).Next(t0, true, fleetOf(3))
		if len(got.Change) != tt.change || len(got.Commit) != tt.commit || got.Wake != tt.wake {
			t.Errorf("%s: %d changes, %d commits, wake at %v; want %d, %d, %v", tt.name, len(got.Change), len(got.Commit), got.Wake, tt.change, tt.commit, tt.wake)
		}
	}
}

// TestRotationAfterClockSetBack: a clock that was set back for a time delays a phase by no more than its own length.
func TestRotationAfterClockSetBack(t *testing.T) {
	const back = 13 * time.Hour
	c := DefaultRotation()
	grace := t0.Add(c.Grace)
	for _, tt := range []struct {
		name  string
		saved Cycle
		first time.Time     // when the phase ends with a right clock
		whole time.Duration // of the phase
	}{
		{"in grace", Cycle{Kind: MKey, Epoch: 7, Began: t0, Changed: t0}, grace, c.Grace},
		{"waiting", Cycle{Kind: MKey, Epoch: 7, Began: t0.Add(-2), Changed: t0.Add(-2), Ended: t0.Add(-1)}, t0.Add(c.Period), c.Period},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rotator(t, c, []Kind{MKey}, tt.saved)
			if turn := r.Next(t0, true, fleetOf(3)); turn.Wake != tt.first {
				t.Fatalf("wake at %v, want %v", turn.Wake, tt.first)
			}
			if turn := r.Next(t0.Add(-back), true, fleetOf(3)); turn.Wake != t0.Add(tt.whole-back) {
				t.Errorf("with the clock back: wake at %v, want %v", turn.Wake, t0.Add(tt.whole-back))
			}
			if turn := r.Next(tt.first, true, fleetOf(3)); len(turn.Change)+len(turn.Commit) == 0 {
				t.Errorf("with a right clock: %+v, want the next phase", turn)
			}
		})
	}
}

func TestRotationOff(t *testing.T) {
	r := rotator(t, RotationConfig{}, []Kind{MKey})
	if d := cmp.Diff(Turn{}, r.Next(t0.Add(9999*time.Hour), true, fleetOf(3))); d != "" {
		t.Errorf("got (-want +got):\n%s", d)
	}
}

func TestRotationRefuses(t *testing.T) {
	good := DefaultRotation()
	for want, c := range map[string]RotationConfig{
		"period": {Period: time.Second, Window: 1}, "grace": {Period: time.Hour, Grace: time.Hour, Window: 1}, "window": {Period: time.Hour},
	} {
		if _, err := NewRotator(c, nil, t0, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	if _, err := NewRotator(good, []Kind{SMKey}, t0, nil); err == nil {
		t.Error("the SM_Key is rotated on devices")
	}
	if _, err := NewRotator(good, []Kind{MKey}, t0, []Cycle{{Kind: 77}}); err == nil {
		t.Error("a saved cycle of no kind is taken")
	}
}

func TestAges(t *testing.T) {
	held := func(origin Origin, days int) Held {
		return Held{Key: New(0x8F3A5C917B2E4D60), Epoch: 2, Origin: origin, Since: t0.Add(-time.Duration(days) * 24 * time.Hour)}
	}
	records := []Record{
		{Kind: MKey, GUID: 1, Current: held(OriginRandom, 1)},
		{Kind: MKey, GUID: 2, Current: held(OriginRandom, 9)},
		{Kind: MKey, GUID: 3, Current: held(OriginImported, 1)},
		{Kind: MKey, GUID: 4, Current: held(OriginRandom, 1), Pending: Held{Key: other}},
		{Kind: MKey, GUID: 5, Current: held(OriginRandom, 30)},
		{Kind: MKey, GUID: 6},
		{Kind: SMKey, Current: held(OriginRandom, 99)},
	}
	got := map[ib.GUID]Why{}
	ages := Ages(records, t0, 24*time.Hour, func(_ Kind, g ib.GUID) bool { return g != 5 })
	for _, a := range ages {
		got[a.GUID] = a.Why
	}
	want := map[ib.GUID]Why{2: WhyOverdue, 3: WhyImported, 4: WhyUnknown, 5: WhySingle}
	if d := cmp.Diff(want, got); d != "" || ages[0].GUID != 5 {
		t.Errorf("oldest %v (-want +got):\n%s", ages[0].GUID, d)
	}
}

// TestSuccession: after another instance the first cycle begins at once, with switches
// first and a short grace, also where that instance left a cycle unfinished; the next one
// is an ordinary one.
func TestSuccession(t *testing.T) {
	fleet := func(Kind) []Member {
		return []Member{
			{GUID: 1, Dual: true, Keyed: true, Prior: true, Depth: 3, Epoch: 7},
			{GUID: 2, Dual: true, Keyed: true, Prior: true, Depth: 2, Epoch: 7, Switch: true},
			{GUID: 3, Dual: true, Keyed: true, Prior: true, Depth: 1, Epoch: 7, Switch: true},
		}
	}
	ended := Cycle{Kind: MKey, Epoch: 7, Began: t0.Add(-3 * time.Hour), Changed: t0.Add(-3 * time.Hour), Ended: t0.Add(-2 * time.Hour)}
	unfinished := Cycle{Kind: MKey, Epoch: 7, Began: t0.Add(-time.Second), Changed: t0.Add(-time.Second)}
	for name, saved := range map[string]Cycle{"no cycle under way": ended, "in the grace of a cycle": unfinished} {
		t.Run(name, func(t *testing.T) {
			c := DefaultRotation()
			c.Succeeds = true
			r := rotator(t, c, []Kind{MKey}, saved)
			now := t0
			var changes []ib.GUID
			var cycle Cycle
			for steps := 0; cycle.Ended.IsZero(); steps++ {
				if steps > 20 {
					t.Fatalf("the cycle of the succession does not end: %+v", r.Cycle(MKey))
				}
				turn := r.Next(now, true, fleet)
				for _, x := range turn.Change {
					changes = append(changes, x.GUID)
					r.Done(MKey, x.GUID, true)
				}
				for _, x := range turn.Commit {
					r.Done(MKey, x.GUID, true)
				}
				if got := r.Cycle(MKey); got.Epoch > saved.Epoch {
					cycle = got
				}
				if at := turn.Wake; cycle.Ended.IsZero() && at.After(now) {
					if at.Sub(now) > SuccessionGrace {
						t.Fatalf("it waits %v, want at most %v", at.Sub(now), SuccessionGrace)
					}
					now = at
				}
			}
			if d := cmp.Diff([]ib.GUID{2, 3, 1}, changes); d != "" {
				t.Errorf("order of devices (-want +got):\n%s", d)
			}
			if took := now.Sub(t0); took > 2*SuccessionGrace || !cycle.Succession || cycle.Epoch != 8 {
				t.Errorf("%+v after %v", cycle, took)
			}
			if turn := r.Next(now, true, fleet); turn.Wake.Sub(now) < c.Period-SuccessionGrace {
				t.Errorf("the next cycle begins after %v", turn.Wake.Sub(now))
			}
		})
	}
}
