package past

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// TestHostsLost: where the records of hosts are not known for a time, no host is said to have changed because of that, and what changed
// meanwhile is listed once they are known again.
func TestHostsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		begun := s.look()
		s.phases(map[string]v1.Phase{"h0": v1.PhaseAdmitted, "h1": v1.PhaseAdmitted})
		s.sight.Version, s.ports[2].State = 2, "Down"
		read := s.look()
		if got := s.words(false); !slices.Equal(got, []string{"port h2 changed state:Active>Down"}) {
			t.Errorf("once records were read: %q", got)
		}
		s.hosts.lost("the store is gone")
		lost := s.look()
		s.phases(map[string]v1.Phase{"h0": v1.PhaseAdmitted, "h1": v1.PhaseReleasing})
		again := s.look()
		want := []string{"port h2 changed state:Active>Down", "host  changed phase:admitted>releasing"}
		if got := s.words(false); !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}
		for _, is := range []struct {
			at         time.Time
			why, phase string
		}{{begun, "the records of hosts were not read yet", ""}, {read.Add(time.Second), "", "admitted"}, {lost, "the store is gone", ""}, {again, "", "releasing"}} {
			if p := s.at(is.at, false); p.HostsWhy != is.why || p.Ports[1].Phase != is.phase {
				t.Errorf("at %v: %q, phase %q, want %q, %q", is.at, p.HostsWhy, p.Ports[1].Phase, is.why, is.phase)
			}
		}
		known, err := s.reader.Known(t.Context(), false)
		if err != nil || len(known.Marks) != 2 || known.Marks[0].Changes != 1 || known.Marks[1].Changes != 1 {
			t.Errorf("marks %+v, %v", known.Marks, err)
		}
	})
}

// TestProofLost: a verdict that is another one after a time in which none was known is listed, and those that stay are not.
func TestProofLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.phases(nil)
		proof := func(second string) Proof {
			p := Proof{Begun: time.Now(), MaxAge: time.Hour}
			for i, v := range []string{v1.Isolated, second} {
				p.Ports = append(p.Ports, v1.IsolationPortVerdict{Host: fmt.Sprint("h", i), Verdict: v, Place: ib.Place{Switch: leaf, Port: ib.PortNum(i + 1)}})
			}
			return p
		}
		s.proof = proof(v1.Isolated)
		s.look()
		s.proof = Proof{Why: "not examined"}
		lost := s.look()
		s.proof = proof(v1.Leaks)
		s.look()
		if got := s.words(true); !slices.Equal(got, []string{"proof h1 changed verdict:isolated>leaks"}) {
			t.Errorf("changes %q", got)
		}
		if p := s.at(lost, true); p.Proof != nil || p.ProofWhy != "not examined" {
			t.Errorf("while it was not known: %+v, %q", p.Proof, p.ProofWhy)
		}
	})
}

// TestManyGaps: each page lists the gaps in its span however many there are, and no time of which nothing is known is left out.
func TestManyGaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.phases(nil)
		s.look()
		var lost []time.Time
		for range mostGaps + 3 {
			s.sight.Why = "lost"
			lost = append(lost, s.look())
			s.sight.Why = ""
			s.look()
		}
		page, err := s.reader.Changes(t.Context(), v1.PastChangeQuery{Until: lost[2]}, false)
		if err != nil || len(page.Gaps) != 2 || !page.Gaps[0].From.Equal(lost[0]) {
			t.Errorf("gaps of the beginning: %+v, %v", page.Gaps, err)
		}
		page, err = s.reader.Changes(t.Context(), v1.PastChangeQuery{}, false)
		if err != nil || len(page.Gaps) != mostGaps || !page.Gaps[0].From.Equal(lost[0]) || !page.Gaps[1].From.Equal(lost[4]) {
			t.Errorf("%d gaps, %v", len(page.Gaps), err)
		}
		if why := page.Gaps[0].Why; why != "4 times of which nothing is known; of the last one: lost" {
			t.Errorf("the first one: %q", why)
		}
		s.sight.Why = "lost for good"
		end := s.look()
		time.Sleep(time.Minute) // of the bubble
		page, err = s.reader.Changes(t.Context(), v1.PastChangeQuery{From: end}, false)
		if err != nil || len(page.Gaps) != 1 || page.Gaps[0].Why != "lost for good" || !page.Gaps[0].From.Equal(end) || !page.Gaps[0].Until.Equal(time.Now()) {
			t.Errorf("what goes on: %+v, %v", page.Gaps, err)
		}
	})
}

// TestClockBack: while the clock is behind what was recorded last nothing is recorded, since no time of it is right; then it goes on.
func TestClockBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.phases(nil)
		s.look()
		ahead := time.Now().Add(time.Hour)
		s.recorder.look(t.Context(), ahead)
		s.phases(map[string]v1.Phase{"h0": v1.PhaseAdmitted})
		s.recorder.look(t.Context(), ahead.Add(time.Second-mostBack)) // a small step
		s.phases(map[string]v1.Phase{"h0": v1.PhaseAdmitted, "h1": v1.PhaseAdmitted})
		s.look()
		if got := s.recorder.said; !strings.Contains(got, "the clock is behind what was recorded last") {
			t.Errorf("said: %q", got)
		}
		all, err := s.reader.Changes(t.Context(), v1.PastChangeQuery{Until: ahead.Add(time.Hour)}, false)
		if err != nil || len(all.Items) != 1 || all.Items[0].Object != "h0" {
			t.Errorf("changes while the clock was behind: %+v, %v", all, err)
		}
		for range 62 {
			s.look()
		}
		if p := s.at(time.Now(), false); !p.Known || p.Ports[1].Phase != "admitted" || s.recorder.said != "" {
			t.Errorf("once the clock is beyond it: %v, %q, %+v", p.Known, p.Why, p.Ports)
		}
		if k, err := s.reader.Known(t.Context(), false); err != nil || len(k.Gaps) != 1 || k.Gaps[0].Why != "the clock was set back" {
			t.Errorf("gaps %+v, %v", k.Gaps, err)
		}
	})
}

// TestRetryAhead: a pause after a failure that ends far ahead, since the clock went back, is not waited for.
func TestRetryAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.recorder.failed(time.Now().Add(time.Hour), errors.New("full"))
		if p := s.at(s.look(), false); !p.Known {
			t.Errorf("not recorded: %s", p.Why)
		}
	})
}
