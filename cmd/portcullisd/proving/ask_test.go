package proving_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// believing answers every port as if the SA_Key was shown.
type believing struct{ sa.Strict }

func (believing) Accepts(v trust.Verdict) bool {
	return v == trust.OK || v == trust.NotAllowed || v == trust.SpoofedSGID
}

func (believing) Trusts(sa.Topic, portindex.Asker) bool { return true }

// answeringSite is a site whose Subnet Manager runs and answers hosts.
func answeringSite(t *testing.T, change func(*sa.Config)) *site {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	cfg := sa.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	s := siteOf(t, l, map[string]string{"h1": "red", "h2": "blue", "h3": "red", "h4": "blue"}, map[string]ib.PKey{"red": 0x8101, "blue": 0x8202},
		func(o *testbed.Options) { o.SA = &cfg })
	s.View = func() (*sm.View, error) { return s.stage.View(), nil }
	s.Ask = s.answers
	return s
}

// answers has the Subnet Manager's agent answer.
func (s *site) answers(_ context.Context, questions []transport.Packet) (out []sa.Heard, _ error) {
	aside, err := s.stage.Administration().Aside()
	if err != nil {
		return nil, err
	}
	for i := range questions {
		h, err := aside.Ask(testbed.Epoch.Add(s.stage.Now()), &questions[i])
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

// prove examines all tenants, and wants a verdict about subnet administration.
func (s *site) prove(t *testing.T, want string) *v1.Isolation {
	t.Helper()
	got, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{Membership: true})
	if err != nil {
		t.Fatal(err)
	}
	if got.Administration.Verdict != want {
		t.Errorf("subnet administration: %+v, want %s", got.Administration, want)
	}
	return got
}

// A strict one names nothing of others to ports, and the statement says that it was asked.
func TestAdministrationConfined(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*sa.Config){
		"enhanced trust model":    nil,
		"without the trust model": func(c *sa.Config) { c.Trust.Model = false },
		"few requests at a time": func(c *sa.Config) {
			c.Limiter.Administration.Node.Rate, c.Limiter.Administration.Node.Burst, c.Trust.Threshold = 1, 1, 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := answeringSite(t, change)
			got := s.prove(t, v1.SAConfined)
			a := &got.Administration
			// One of red, of blue and of the hosts without a tenant first, and then the others.
			if a.Ports != 5 || a.Parties != 3 || a.Unasked != 0 || a.Silent != 0 || a.Disclosed != 0 || len(a.Disclosures) != 0 || a.Undecided != 0 {
				t.Errorf("%+v", a)
			}
			if a.Questions < 6*30 || a.Answers < 5*2 || a.Records < 5 {
				t.Errorf("asked too little: %+v", a)
			}
			if got.Verdict != v1.Isolated || !slices.ContainsFunc(got.Bounds.Assumptions, func(s string) bool { return strings.Contains(s, "it named no port") }) {
				t.Errorf("verdict %s: %s; %q", got.Verdict, got.Reason, got.Bounds.Assumptions)
			}
			if s.stage.Administration().Status().Violations != nil {
				t.Errorf("the questions count as violations: %+v", s.stage.Administration().Status().Violations)
			}
		})
	}
}

// One that trusts every port discloses. Nothing of the parties is proven then, and nothing of what was read leaks.
func TestAdministrationDiscloses(t *testing.T) {
	t.Parallel()
	s := answeringSite(t, func(c *sa.Config) { c.Policy = believing{} })
	got := s.prove(t, v1.SADiscloses)
	a := &got.Administration
	if got.Verdict != v1.IsolationUnknown || got.Pairs.Leaks != 0 || got.Pairs.Isolated != 0 || !strings.HasPrefix(got.Reason, "subnet administration") {
		t.Errorf("verdict %s: %s; pairs %+v", got.Verdict, got.Reason, got.Pairs)
	}
	if a.Disclosed < 20 || len(a.Disclosures) != 20 {
		t.Errorf("%d disclosures, %d shown", a.Disclosed, len(a.Disclosures))
	}
	d := &a.Disclosures[0]
	if d.From.Host == "" || d.From.GUID == 0 || d.From.LID == 0 || d.From.Party == "" || d.Record == "" || d.Field == "" || d.Cure == "" || d.About.Party == d.From.Party {
		t.Errorf("the first one: %+v", d)
	}
	red, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{Membership: true, Tenant: "red"})
	if err != nil || red.Administration.Verdict != v1.SADiscloses || red.Verdict != v1.IsolationUnknown {
		t.Fatalf("of red: %+v, %v", red, err)
	}
	for _, d := range red.Administration.Disclosures {
		if d.From.Party != "red" && d.About.Party != "red" {
			t.Errorf("of red: %+v", d)
		}
	}
	// A receipt says the same: the pairs are not isolated.
	out, err := s.Examine(t.Context(), v1.IsolationQuery{Membership: true}, true)
	if err != nil || len(out.Detail.Pairs) != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, p := range out.Detail.Pairs {
		if p.Verdict != v1.IsolationUnknown || p.Held != "" {
			t.Errorf("pair %+v", p)
		}
	}
}

// What was not asked, or not answered, is not examined, and that is said. The verdict about packets stays.
func TestAdministrationNotExamined(t *testing.T) {
	t.Parallel()
	s := answeringSite(t, nil)
	for name, c := range map[string]struct {
		ask proving.Asked
		why string
	}{
		"none":   {nil, "fabric.sa.enabled"},
		"failed": {func(context.Context, []transport.Packet) ([]sa.Heard, error) { return nil, errors.New("broken") }, "broken"},
		"silent": {func(_ context.Context, q []transport.Packet) ([]sa.Heard, error) {
			return make([]sa.Heard, len(q)), nil
		}, "none of the ports"},
	} {
		s.Ask = c.ask
		got := s.prove(t, v1.SANotExamined)
		a := &got.Administration
		if !strings.Contains(a.Reason, c.why) || a.Ports+a.Questions+a.Disclosed != 0 || got.Verdict != v1.Isolated {
			t.Errorf("%s: %+v, verdict %s", name, a, got.Verdict)
		}
		if !slices.Contains(got.Bounds.Assumptions, "what subnet administration answers to ports was not examined") {
			t.Errorf("%s: %q", name, got.Bounds.Assumptions)
		}
	}
}

// What is disclosed once, and not again, is no disclosure. One whose tables the Subnet Manager touched since they were read is judged by the
// next reading.
func TestDisclosuresAreConfirmed(t *testing.T) {
	t.Parallel()
	s := answeringSite(t, func(c *sa.Config) { c.Policy = believing{} })
	strict := answeringSite(t, nil)
	parts, last, pause := 0, time.Time{}, time.Duration(0)
	s.Ask = func(ctx context.Context, q []transport.Packet) ([]sa.Heard, error) {
		parts++
		pause = max(pause, time.Since(last))
		if parts == 1 {
			pause = 0
		}
		last = time.Now()
		if parts > 6 { // five ports, and the LID that no port has
			return strict.answers(ctx, q)
		}
		return s.answers(ctx, q)
	}
	if got := s.prove(t, v1.SAConfined); got.Verdict != v1.Isolated || parts < 7 {
		t.Errorf("verdict %s after %d series: %s", got.Verdict, parts, got.Reason)
	}
	if pause < time.Second {
		t.Errorf("what disclosed something is asked again after %v", pause)
	}
	// The Subnet Manager adds one host to a partition while it is asked: its tables are not those that were read.
	parts = 0
	s.Ask = func(ctx context.Context, q []transport.Packet) ([]sa.Heard, error) {
		if parts++; parts == 1 {
			s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8404))
			if err := s.stage.Settle(time.Minute); err != nil {
				return nil, err
			}
		}
		return s.answers(ctx, q)
	}
	one := s.prove(t, v1.SADiscloses)
	for _, d := range one.Administration.Disclosures {
		if d.From.Host == "h1" || d.About.Host == "h1" {
			t.Errorf("what was touched is judged: %+v", d)
		}
	}
	if one.Administration.Undecided == 0 {
		t.Errorf("%+v", one.Administration)
	}
	// And all hosts.
	parts = 0
	s.Ask = func(ctx context.Context, q []transport.Packet) ([]sa.Heard, error) {
		if parts++; parts == 1 {
			for _, h := range []string{"h1", "h2", "h3", "h4", "h5"} {
				s.stage.Grant(s.stage.GrantOf(h, 1, 0x8303))
			}
			if err := s.stage.Settle(time.Minute); err != nil {
				return nil, err
			}
		}
		return s.answers(ctx, q)
	}
	s.Pace.Membership = true
	if got := s.prove(t, v1.SAUnknown); got.Administration.Undecided == 0 {
		t.Errorf("%+v", got.Administration)
	}
	// They are asked again by the next reading.
	k := &proving.Keeper{Prover: s.Prover, Settled: func() bool { return true }}
	s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8505))
	if err := errors.Join(s.stage.Settle(time.Minute), k.CatchUp(t.Context())); err != nil {
		t.Fatal(err)
	}
	if found, _ := s.Last(); found.Administration.Verdict != v1.SADiscloses {
		t.Errorf("after the next reading: %+v", found.Administration)
	}
}

// What is answered until the time is over counts, and the report says which parties did not ask.
func TestAdministrationIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			parts, ports, parties, unasked int // parts: that are answered; the first is of a LID that no port has
			verdict                        string
		}{
			{1, 0, 0, 0, v1.SANotExamined}, {2, 1, 1, 2, v1.SAConfined}, {4, 3, 3, 0, v1.SAConfined}, {5, 4, 3, 0, v1.SAConfined},
		} {
			s := answeringSite(t, nil)
			n := 0
			s.Ask = func(ctx context.Context, q []transport.Packet) ([]sa.Heard, error) {
				if n++; n > c.parts {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return s.answers(ctx, q)
			}
			began := time.Now()
			a := s.prove(t, c.verdict).Administration
			if a.Ports != c.ports || a.Parties != c.parties || a.Unasked != c.unasked || time.Since(began) > 2*time.Minute {
				t.Errorf("%d parts are answered: %+v, after %v", c.parts, a, time.Since(began))
			}
		}
	})
}

// What is disclosed again until the time is over is a disclosure. What was not asked again is not judged.
func TestDisclosuresAreConfirmedSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			parts   int // that are answered: those of five ports and of the LID that no port has, and what is repeated
			verdict string
		}{
			{6, v1.SANotExamined}, {7, v1.SADiscloses}, {8, v1.SADiscloses},
		} {
			s := answeringSite(t, func(c *sa.Config) { c.Policy = believing{} })
			n := 0
			s.Ask = func(ctx context.Context, q []transport.Packet) ([]sa.Heard, error) {
				if n++; n > c.parts {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return s.answers(ctx, q)
			}
			got := s.prove(t, c.verdict)
			a := got.Administration
			if (a.Disclosed > 0) != (c.verdict == v1.SADiscloses) || (a.Disclosed > 0) != (a.Undecided > 0) || (a.Disclosed > 0) != (got.Verdict == v1.IsolationUnknown) {
				t.Errorf("%d parts are answered: verdict %s, %+v", c.parts, got.Verdict, a)
			}
		}
	})
}

// After a change of a few tables, subnet administration is not asked each time; while it discloses something, it is. Disclosures do not stay
// in what is proven after them.
func TestAdministrationIsAskedNowAndThen(t *testing.T) {
	t.Parallel()
	s, strict := answeringSite(t, func(c *sa.Config) { c.Policy = believing{} }), answeringSite(t, nil)
	now, asked, isStrict := time.Now(), 0, true
	s.Now = func() time.Time { return now }
	s.Pace.Membership = true
	s.Ask = func(ctx context.Context, q []transport.Packet) ([]sa.Heard, error) {
		asked++
		if isStrict {
			return strict.answers(ctx, q)
		}
		return s.answers(ctx, q)
	}
	s.prove(t, v1.SAConfined)
	k, stray, there := &proving.Keeper{Prover: s.Prover, Settled: func() bool { return true }}, s.stage.GrantOf("h1", 1, 0x8303), false
	// follow has a table changed and followed, and reports whether subnet administration was asked.
	follow := func(verdict, administration string) bool {
		t.Helper()
		before := asked
		if there = !there; there {
			s.stage.Grant(stray)
		} else {
			s.stage.Withdraw(stray)
		}
		now = now.Add(2 * time.Second)
		err := errors.Join(s.stage.Settle(time.Minute), k.CatchUp(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		found, _ := s.Last()
		if found.Bounds.Again == nil || !found.Bounds.Again.Equal(now.UTC()) || found.Verdict != verdict || found.Administration.Verdict != administration {
			t.Errorf("verdict %s, subnet administration %+v, bounds %+v", found.Verdict, found.Administration, found.Bounds)
		}
		if n := found.Pairs.Isolated + found.Pairs.Unknown; n != 3 || (found.Pairs.Isolated == 3) != (verdict == v1.Isolated) {
			t.Errorf("pairs %+v", found.Pairs)
		}
		return asked > before
	}
	for range 2 {
		if follow(v1.Isolated, v1.SAConfined) {
			t.Error("asked again at once")
		}
	}
	now = now.Add(5 * time.Minute)
	if !follow(v1.Isolated, v1.SAConfined) || follow(v1.Isolated, v1.SAConfined) {
		t.Error("not asked once after 5 minutes")
	}
	isStrict, now = false, now.Add(5*time.Minute)
	for range 2 {
		if !follow(v1.IsolationUnknown, v1.SADiscloses) {
			t.Error("not asked each time while it discloses")
		}
	}
	isStrict = true
	if !follow(v1.Isolated, v1.SAConfined) || follow(v1.Isolated, v1.SAConfined) {
		t.Error("not asked once more when it disclosed before")
	}
}

// Answers that were cut by time are not taken over by the next reading, and those of all ports are.
func TestCutAnswersAreNotTakenOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := answeringSite(t, nil)
		s.Pace.Membership = true
		n, most := 0, 3
		s.Ask = func(ctx context.Context, q []transport.Packet) ([]sa.Heard, error) {
			if n++; n > most {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return s.answers(ctx, q)
		}
		if a := s.prove(t, v1.SAConfined).Administration; a.Unasked != 1 {
			t.Fatalf("the answers were not cut: %+v", a)
		}
		most = 1000
		k := &proving.Keeper{Prover: s.Prover, Settled: func() bool { return true }}
		for i, asks := range []bool{true, false} {
			n = 0
			s.stage.Grant(s.stage.GrantOf("h1", 1, ib.PKey(0x8303+i)))
			if err := errors.Join(s.stage.Settle(time.Minute), k.CatchUp(t.Context())); err != nil {
				t.Fatal(err)
			}
			found, _ := s.Last()
			if a := &found.Administration; found.Bounds.Again == nil || n > 0 != asks || a.Unasked != 0 || a.Ports != 5 {
				t.Errorf("change %d: %d series of questions, %+v", i, n, a)
			}
		}
	})
}
