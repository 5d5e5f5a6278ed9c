package clock

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// machine is a clock that can be set, beside one that cannot.
type machine struct {
	*Water
	wall    time.Time
	elapsed time.Duration
}

func start(instance string, wall time.Time, m Mark) *machine {
	c := &machine{Water: New(instance), wall: wall}
	c.Take(m, c.read())
	return c
}

func (c *machine) read() Reading { return Reading{c.wall, c.elapsed} }

func (c *machine) pass(d time.Duration) time.Time {
	c.wall, c.elapsed = c.wall.Add(d), c.elapsed+d
	return c.Now(c.read())
}

func (c *machine) want(t *testing.T, s State, now time.Time, jumps ...State) {
	t.Helper()
	st := c.Standing(c.read())
	if st.State != s || !st.Time.Equal(now) {
		t.Errorf("%v, and it is %v; want %v and %v", st.State, st.Time, s, now)
	}
	var told []State
	for _, j := range c.Jumps() {
		told = append(told, j.Now)
	}
	if !slices.Equal(told, jumps) {
		t.Errorf("told of %v, want %v", told, jumps)
	}
}

// TestBackAfterRestart: below the highest time that was recorded the time stands still, and goes on once the clock has
// caught up.
func TestBackAfterRestart(t *testing.T) {
	c := start("", noon, Mark{Highest: noon.Add(3 * time.Hour)})
	c.want(t, Behind, noon.Add(3*time.Hour), Behind)
	if m, due := c.Due(c.read(), true); due {
		t.Errorf("%v is to be recorded by a clock that is behind", m)
	}
	c.pass(2 * time.Hour)
	c.want(t, Behind, noon.Add(3*time.Hour))
	c.pass(2 * time.Hour)
	c.want(t, Steady, noon.Add(4*time.Hour), Steady)
	if m, due := c.Due(c.read(), false); !due || !m.Highest.Equal(noon.Add(4*time.Hour)) {
		t.Errorf("%v, due %v", m, due)
	}
}

// TestBackInProcess: the same where the clock is set while the process runs, and small steps are none.
func TestBackInProcess(t *testing.T) {
	c := start("", noon, Mark{})
	c.want(t, Steady, noon)
	c.wall = noon.Add(-Tolerance)
	c.want(t, Steady, noon)
	c.wall = noon.Add(-3 * time.Hour)
	c.want(t, Behind, noon, Behind)
	c.pass(time.Minute)
	c.wall = noon.Add(time.Minute) // corrected: no jump ahead
	c.want(t, Steady, noon.Add(time.Minute), Steady)
}

// TestAheadAlone: the only instance has no other to ask. It believes a clock that was set ahead, and reports it; it does
// not report that it was switched off for long.
func TestAheadAlone(t *testing.T) {
	c := start("", noon, Mark{Highest: noon.Add(-720 * time.Hour)})
	c.want(t, Steady, noon)
	c.wall = noon.Add(48 * time.Hour)
	st := c.Standing(c.read())
	jumps := c.Jumps()
	if st.State != Steady || len(jumps) != 1 || !jumps[0].Ahead || !jumps[0].Time.Equal(noon) {
		t.Errorf("%v, told %+v", st.State, jumps)
	}
	c.wall = noon
	c.want(t, Behind, noon.Add(48*time.Hour), Behind)
	c.Take(Mark{Highest: noon, Resets: 1}, c.read()) // an operator sets it
	c.want(t, Steady, noon, Steady)
}

// TestAheadOfOthers: an instance whose clock is far ahead neither records that nor believes it while others say
// otherwise, for however long.
func TestAheadOfOthers(t *testing.T) {
	const day = 24 * time.Hour
	c := start("a", noon.Add(30*day), Mark{Highest: noon, By: "b"})
	c.want(t, Waiting, noon)
	for n := range 10 {
		c.pass(time.Minute)
		c.Take(Mark{Highest: noon.Add(time.Duration(n+1) * time.Minute), By: "b"}, c.read())
		if m, due := c.Due(c.read(), true); due {
			t.Fatalf("%v is to be recorded", m)
		}
	}
	c.want(t, Ahead, noon.Add(10*time.Minute), Ahead)
	c.pass(30 * time.Minute) // the others are down by now
	c.want(t, Ahead, noon.Add(40*time.Minute))
	c.wall = noon.Add(40 * time.Minute)
	c.want(t, Steady, noon.Add(40*time.Minute), Steady)

	c.wall = noon.Add(day)
	c.want(t, Waiting, noon.Add(40*time.Minute))
	c.pass(10 * time.Second)
	c.Take(Mark{Highest: noon.Add(40 * time.Minute).Add(10 * time.Second), By: "b"}, c.read())
	c.want(t, Ahead, noon.Add(40*time.Minute).Add(10*time.Second), Ahead)
}

// TestAllWereDown: after a time in which no instance ran, no instance contradicts, and the clock is believed.
func TestAllWereDown(t *testing.T) {
	c := start("a", noon, Mark{Highest: noon.Add(-time.Hour), By: "b"})
	c.want(t, Waiting, noon.Add(-time.Hour))
	c.pass(Wait - time.Second)
	c.want(t, Waiting, noon.Add(-time.Hour).Add(Wait-time.Second))
	c.pass(time.Second)
	c.want(t, Steady, noon.Add(Wait))
	if _, due := c.Due(c.read(), false); !due {
		t.Error("nothing is to be recorded")
	}
}

// TestOthersAgree: another instance that came back first has recorded the time already.
func TestOthersAgree(t *testing.T) {
	c := start("a", noon, Mark{Highest: noon.Add(-time.Hour), By: "b"})
	c.want(t, Waiting, noon.Add(-time.Hour))
	c.pass(time.Second)
	c.Take(Mark{Highest: noon, By: "b"}, c.read())
	c.want(t, Steady, noon.Add(time.Second))
}

// TestSuspended: a machine that slept finds what others recorded meanwhile, late and all at once.
func TestSuspended(t *testing.T) {
	c := start("a", noon, Mark{Highest: noon, By: "b"})
	c.want(t, Steady, noon)
	c.wall = noon.Add(8 * time.Hour) // elapsed time stood still
	for n := range 480 {
		c.Take(Mark{Highest: noon.Add(time.Duration(n+1) * time.Minute), By: "b"}, c.read())
		c.Now(c.read())
	}
	c.want(t, Steady, noon.Add(8*time.Hour))
}

// TestLeapOfAnother: a time that another instance records far ahead stops this one, until an operator sets the clock.
func TestLeapOfAnother(t *testing.T) {
	c := start("b", noon, Mark{Highest: noon, By: "b"})
	c.want(t, Steady, noon)
	c.Take(Mark{Highest: noon.Add(time.Hour), By: "a"}, c.read())
	c.want(t, Behind, noon.Add(time.Hour), Behind)
	c.pass(time.Minute)
	c.Take(Mark{Highest: c.wall, By: "b", Resets: 1}, c.read())
	c.want(t, Steady, noon.Add(time.Minute), Steady)
	c.Take(Mark{Highest: noon.Add(2 * time.Hour), By: "a"}, c.read()) // recorded before
	c.want(t, Steady, noon.Add(time.Minute))
}

// TestNeverBack: whatever clocks and instances do, time does not go back while no operator sets it. A time to be recorded
// is never less than the recorded one.
func TestNeverBack(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		names := []string{"", "a"}
		c := start(names[seed%2], noon, Mark{})
		var last time.Time
		for step := range 200 {
			switch r.IntN(4) {
			case 0:
				c.wall = c.wall.Add(time.Duration(r.IntN(7200)-3600) * time.Second)
			case 1:
				c.Take(Mark{Highest: c.wall.Add(time.Duration(r.IntN(3600)-1800) * time.Second), By: "b"}, c.read())
			}
			now := c.pass(time.Duration(r.IntN(90)) * time.Second)
			if now.Before(last) {
				t.Fatalf("seed %d, step %d: %v after %v", seed, step, now, last)
			}
			last = now
			if m, due := c.Due(c.read(), true); due {
				if !m.Highest.After(c.mark.Highest) {
					t.Fatalf("seed %d, step %d: %v is recorded over %v", seed, step, m, c.mark)
				}
				c.Take(m, c.read())
			}
		}
	}
}
