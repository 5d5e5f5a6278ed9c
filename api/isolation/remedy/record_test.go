package remedy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/isolation"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// drift returns drift of a kind at port n of a switch, at host hN, since so long before noon.
func drift(kind string, n int, since time.Duration) v1.Drift {
	return v1.Drift{
		Kind: kind, In: v1.DriftInSwitch, Host: fmt.Sprintf("h%d", n), GUID: ib.GUID(0x100 + n), Place: ib.Place{Switch: 0x10 + ib.GUID(n/200), Port: ib.PortNum(1 + n%200)},
		PKey: 0x8001, Since: noon.Add(-since),
	}
}

// sorted returns drift as it comes from a reading.
func sorted(list ...v1.Drift) []v1.Drift {
	slices.SortFunc(list, func(a, b v1.Drift) int { return strings.Compare(isolation.DriftKey(&a), isolation.DriftKey(&b)) })
	return list
}

func (s *step) String() string {
	var out []string
	for _, x := range s.found {
		out = append(out, "found "+x.Kind+" "+x.Host)
	}
	for _, x := range s.ended {
		out = append(out, "ended "+x.Kind+" "+x.Host)
	}
	for _, at := range s.correct {
		out = append(out, fmt.Sprintf("correct %d", at.Port))
	}
	for _, x := range s.fence {
		out = append(out, "fence "+x.Host)
	}
	for _, host := range s.free {
		out = append(out, "free "+host)
	}
	if s.more {
		out = append(out, "more")
	}
	return strings.Join(out, ", ")
}

// all returns the policy with one action for every kind.
func all(a Action) Policy {
	p := Policy{}
	for _, k := range Kinds() {
		p[k] = a
	}
	return p
}

// A kind of drift begins to count at once or after a while, and what follows is what the policy says.
func TestWhatFollows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy Policy
		drift  v1.Drift
		want   string
	}{
		"listed":                    {all(List), drift(v1.DriftStray, 1, time.Hour), ""},
		"reported":                  {all(Report), drift(v1.DriftStray, 1, 0), "found stray h1"},
		"corrected":                 {all(Correct), drift(v1.DriftNotEnforced, 1, 0), "found not-enforced h1, correct 2"},
		"to be fenced, but later":   {all(Fence), drift(v1.DriftMembership, 1, time.Hour), "found membership h1, correct 2"},
		"missing for a short while": {all(Correct), drift(v1.DriftMissing, 1, patience-time.Second), ""},
		"missing for long":          {all(Correct), drift(v1.DriftMissing, 1, patience), "found missing h1, correct 2"},
		"leaving for a short while": {all(Fence), drift(v1.DriftLeaving, 1, patience-time.Second), ""},
		"leaving by default":        {Default(), drift(v1.DriftLeaving, 1, time.Hour), "found leaving h1"},
		"stray by default":          {Default(), drift(v1.DriftStray, 1, 0), "found stray h1, correct 2"},
		"absent":                    {all(Fence), drift(v1.DriftAbsent, 1, time.Hour), ""},
		"unread":                    {all(Fence), drift(v1.DriftUnread, 1, time.Hour), ""},
		"of no host, no place":      {all(Fence), v1.Drift{Kind: v1.DriftStray, GUID: 7, PKey: 0x8001, Since: noon}, "found stray "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := record{}.next(&input{now: noon, begun: noon, read: noon, drift: []v1.Drift{tt.drift}, policy: tt.policy})
			if got := s.String(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// timeline runs looks one after the other, each so long after noon.
func timeline(t *testing.T, policy Policy, looks ...look) {
	t.Helper()
	var r record
	for _, l := range looks {
		var s step
		r, s = r.next(&input{now: noon.Add(l.at), begun: noon.Add(l.read), read: noon.Add(l.read), drift: sorted(l.drift...), policy: policy})
		if got := s.String(); got != l.want {
			t.Errorf("after %v: %q, want %q", l.at, got, l.want)
		}
		for i := range r.Rows {
			for j := range s.fence {
				if l.fenced && s.fence[j].Host == r.Rows[i].Host {
					r.Rows[i].Fenced = noon.Add(l.at)
				}
			}
		}
	}
}

type look struct {
	at, read time.Duration
	drift    []v1.Drift
	fenced   bool
	want     string
}

// Drift is reported once, corrected again and again, and reported when it ends. When it comes back, that is reported again.
func TestDriftComesAndGoes(t *testing.T) {
	t.Parallel()
	d := drift(v1.DriftStray, 1, 0)
	later := d
	later.Since = noon.Add(time.Hour)
	timeline(t, all(Correct),
		look{0, 0, []v1.Drift{d}, false, "found stray h1, correct 2"},
		look{time.Minute, 0, []v1.Drift{d}, false, ""},
		look{again - time.Second, 0, []v1.Drift{d}, false, ""},
		look{again, 0, []v1.Drift{later}, false, "correct 2"},
		look{again + time.Minute, again, nil, false, "ended stray h1"},
		look{again + 2*time.Minute, again, nil, false, ""},
		look{time.Hour, time.Hour, []v1.Drift{later}, false, "found stray h1, correct 2"},
	)
}

// A host is fenced if a newer reading has the drift, some time after it was to be corrected, once for all of its ports, and until that
// is done.
func TestFencedWhenItStays(t *testing.T) {
	t.Parallel()
	a, b, c := drift(v1.DriftStray, 1, 0), drift(v1.DriftNotEnforced, 1, 0), drift(v1.DriftStray, 2, 0)
	b.Place.Port = 9
	c.Host = ""
	drift := []v1.Drift{a, b, c}
	timeline(t, all(Fence),
		look{0, 0, drift, false, "found stray h1, found stray , found not-enforced h1, correct 2, correct 3, correct 9"},
		look{grace - time.Second, 0, drift, false, ""},
		look{grace, 0, drift, false, ""}, // the same reading
		look{grace, time.Minute, drift, false, "fence h1"},
		look{grace + time.Minute, time.Minute, drift, true, "fence h1"},
		look{grace + 2*time.Minute, time.Minute, drift, false, ""},
		look{time.Hour, time.Hour, nil, false, "ended stray h1, ended stray , ended not-enforced h1"},
	)
	timeline(t, all(Correct),
		look{0, 0, drift[:1], false, "found stray h1, correct 2"},
		look{time.Hour, time.Hour, drift[:1], false, "correct 2"},
	)
}

// A host is not fenced any more where the policy was taken back.
func TestPolicyTakenBack(t *testing.T) {
	t.Parallel()
	d := []v1.Drift{drift(v1.DriftStray, 1, 0)}
	r, _ := record{}.next(&input{now: noon, begun: noon, read: noon, drift: d, policy: all(Fence)})
	later := input{now: noon.Add(grace), begun: noon.Add(grace), read: noon.Add(grace), drift: d, policy: all(Fence)}
	r, s := r.next(&later)
	if s.String() != "fence h1" {
		t.Fatalf("%q", &s)
	}
	later.policy = all(Correct)
	if r, s = r.next(&later); s.String() != "free h1" {
		t.Errorf("taken back: %q", &s)
	}
	if _, s = r.next(&later); s.String() != "" {
		t.Errorf("and once more: %q", &s)
	}
}

// What a reading did not find out ends no drift, and fences no host. A reading that is older than the one before says nothing.
func TestUnknownTakesNothing(t *testing.T) {
	t.Parallel()
	d, unread, absent := drift(v1.DriftStray, 1, 0), drift(v1.DriftUnread, 1, 0), drift(v1.DriftAbsent, 1, 0)
	absent.In = v1.DriftInAdapter
	timeline(t, all(Fence),
		look{0, 0, []v1.Drift{d}, false, "found stray h1, correct 2"},
		look{grace, grace, []v1.Drift{unread}, false, ""},
		look{grace, grace, []v1.Drift{absent}, false, ""},
		look{grace + time.Second, grace + time.Second, []v1.Drift{d}, false, "fence h1"},
		look{grace + time.Minute, grace, nil, false, ""},
		look{grace + time.Minute, grace + time.Minute, nil, false, "ended stray h1"},
	)
}

// An adapter that holds many P_Keys is reported by a few of them, and is corrected once at a time. Drift of others is not left out.
func TestManyPKeysOfOnePort(t *testing.T) {
	t.Parallel()
	var list []v1.Drift
	for n := range mostRows {
		d := drift(v1.DriftStray, 1, time.Hour)
		d.PKey = ib.PKey(0x8100 + n)
		list = append(list, d)
	}
	other := drift(v1.DriftNotEnforced, 2, 0)
	now := input{now: noon, begun: noon, read: noon, drift: sorted(append(slices.Clone(list), other)...), policy: all(Correct)}
	r, s := record{}.next(&now)
	if len(s.found) != mostAtPort+1 || len(r.Rows) != mostAtPort+1 || len(s.correct) != 2 || s.more {
		t.Fatalf("%q", &s)
	}
	for i := range list {
		list[i].PKey += 0x2000
	}
	now.drift, now.now, now.read = sorted(append(list, other)...), noon.Add(time.Minute), noon.Add(time.Minute)
	if _, s = r.next(&now); len(s.ended) != mostAtPort || len(s.found) > mostAtPort || len(s.correct) > 1 {
		t.Errorf("with other P_Keys: %q", &s)
	}
}

// What happens at many ports is recorded in parts, the oldest first, and no more than a bounded number of rows are kept.
func TestManyPorts(t *testing.T) {
	t.Parallel()
	var list []v1.Drift
	for n := range mostRows + 10 {
		list = append(list, drift(v1.DriftStray, n, time.Duration(n)*time.Second))
	}
	sorted(list...)
	var r record
	found, corrected, steps := map[string]bool{}, map[ib.Place]bool{}, 0
	for more := true; more; steps++ {
		var s step
		r, s = r.next(&input{now: noon, begun: noon, read: noon, drift: list, policy: all(Correct)})
		if len(s.found) > atOnce || len(s.correct) > min(mostCorrected, sm.MaxSuspected) {
			t.Fatalf("step %d: %d events, %d ports", steps, len(s.found), len(s.correct))
		}
		if steps == 0 && s.found[0].Host != fmt.Sprintf("h%d", mostRows+9) {
			t.Errorf("the first one is of %s, not the oldest", s.found[0].Host)
		}
		for _, x := range s.found {
			found[x.Host] = true
		}
		for _, at := range s.correct {
			corrected[at] = true
		}
		more = s.more
	}
	if len(found) != mostRows || len(corrected) != mostRows || len(r.Rows) != mostRows || steps != mostRows/atOnce+1 {
		t.Errorf("%d hosts, %d places, %d rows, after %d steps", len(found), len(corrected), len(r.Rows), steps)
	}
	if !slices.IsSortedFunc(r.Rows, func(a, b row) int { return strings.Compare(isolation.DriftKey(&a.Drift), isolation.DriftKey(&b.Drift)) }) {
		t.Error("rows are not sorted")
	}
	clear(corrected)
	for more := true; more; {
		var s step
		r, s = r.next(&input{now: noon.Add(again), begun: noon.Add(time.Second), read: noon.Add(time.Second), drift: list, policy: all(Correct)})
		if len(s.correct) > min(mostCorrected, sm.MaxSuspected) {
			t.Fatalf("%d ports at a time", len(s.correct))
		}
		for _, at := range s.correct {
			corrected[at] = true
		}
		more = s.more
	}
	if len(corrected) != mostRows {
		t.Errorf("%d places are to be corrected again", len(corrected))
	}
	ended := 0
	for more := true; more; {
		var s step
		r, s = r.next(&input{now: noon.Add(time.Minute), begun: noon.Add(time.Second), read: noon.Add(time.Second), policy: all(Correct)})
		if len(s.ended) > atOnce {
			t.Fatalf("%d events", len(s.ended))
		}
		ended += len(s.ended)
		more = s.more
	}
	if ended != mostRows || len(r.Rows) != 0 {
		t.Errorf("%d ended, %d are left", ended, len(r.Rows))
	}
}

func TestParseAction(t *testing.T) {
	t.Parallel()
	for _, a := range []Action{List, Report, Correct, Fence} {
		if got, err := ParseAction(a.String()); err != nil || got != a {
			t.Errorf("%v: %v, %v", a, got, err)
		}
	}
	if _, err := ParseAction("mend"); err == nil || !strings.Contains(err.Error(), `"mend" is none of list, report, correct, fence`) {
		t.Errorf("error %v", err)
	}
}
