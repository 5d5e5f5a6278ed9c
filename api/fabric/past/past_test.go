package past

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/fabric/timeline"
	"portcullis/api/fabric/timeline/spool"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// stage is a fabric of one leaf and one spine that a test changes, with what records it.
type stage struct {
	t        *testing.T
	dir      string
	sight    Sight
	switches []v1.FabricNode
	links    []v1.FabricLink
	ports    []v1.FabricPort
	proof    Proof
	broken   error
	hosts    *Hosts
	recorder *Recorder
	reader   *Reader
}

func (s *stage) Nodes(_ context.Context, q v1.NodeQuery) (*v1.Page[v1.FabricNode], error) {
	return cut(s.switches, q.PageQuery), s.broken
}

func (s *stage) Links(_ context.Context, q v1.LinkQuery) (*v1.Page[v1.FabricLink], error) {
	return cut(s.links, q.PageQuery), nil
}

func (s *stage) Ports(_ context.Context, q v1.PortQuery) (*v1.Page[v1.FabricPort], error) {
	return cut(s.ports, q.PageQuery), nil
}

// cut returns one item a page.
func cut[T any](all []T, q v1.PageQuery) *v1.Page[T] {
	at := len(q.After)
	out := &v1.Page[T]{Items: all[at:min(at+1, len(all))]}
	if at+1 < len(all) {
		out.Next = strings.Repeat("x", at+1)
	}
	return out
}

const leaf, spine = ib.GUID(0x1000), ib.GUID(0x2000)

func newStage(t *testing.T) *stage {
	t.Helper()
	end := func(g ib.GUID, name string, n ib.PortNum) v1.PortName {
		return v1.PortName{Node: g, Name: name, Num: n}
	}
	s := &stage{
		t: t, dir: t.TempDir(), sight: Sight{Version: 1, Settled: true}, hosts: NewHosts(), proof: Proof{Why: "not examined"},
		switches: []v1.FabricNode{{GUID: leaf, Name: "leaf"}, {GUID: spine, Name: "spine"}},
		links:    []v1.FabricLink{{A: end(leaf, "leaf", 9), B: end(spine, "spine", 1), State: "Active"}, {A: end(leaf, "leaf", 10), B: end(spine, "spine", 2), State: "Active"}},
	}
	for i := range 3 {
		s.ports = append(s.ports, v1.FabricPort{Node: ib.GUID(0x100 + i), Num: 1, Host: fmt.Sprint("h", i), Name: fmt.Sprint("n", i), State: "Active", Place: ib.Place{Switch: leaf, Port: ib.PortNum(i + 1)}})
	}
	s.ports = append(s.ports, v1.FabricPort{Node: 0x99, Num: 1, Name: "nowhere"})
	s.open()
	return s
}

// open opens the directory as an instance does that starts.
func (s *stage) open() {
	s.t.Helper()
	files, err := spool.Open(spool.Options{Dir: s.dir, Keep: 24 * time.Hour, Size: 8 << 20, Class: Class}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	s.recorder = NewRecorder(Options{Spool: files, Fabric: s, Sight: func() Sight { return s.sight }, Hosts: s.hosts, Proof: func() Proof { return s.proof }, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	s.reader = &Reader{Spool: func() *spool.Spool { return files }, Every: s.recorder.Every, Keep: 24 * time.Hour, Why: func() string { return "" }, Now: time.Now}
}

// look looks once, a minute after what was before, and returns when it did.
func (s *stage) look() time.Time {
	s.t.Helper()
	time.Sleep(time.Minute) // of the bubble
	s.recorder.look(s.t.Context(), time.Now())
	return time.Now()
}

func (s *stage) seen(change func()) time.Time {
	change()
	s.sight.Version = s.sight.Version.(int) + 1
	return s.look()
}

func (s *stage) at(when time.Time, proofs bool) *v1.FabricPast {
	s.t.Helper()
	out, err := s.reader.At(s.t.Context(), v1.PastQuery{At: when}, proofs)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// phases sets the records of hosts.
func (s *stage) phases(of map[string]v1.Phase) {
	s.hosts.change(func() {
		s.hosts.of, s.hosts.why = map[string]timeline.Row{}, ""
		for id, p := range of {
			s.hosts.of[id] = hostRow(id, &hostrecord.Record{Phase: p, Tenant: "acme", Cluster: "c"})
		}
	})
}

// words are the changes in short.
func (s *stage) words(proofs bool) []string {
	s.t.Helper()
	list, err := s.reader.Changes(s.t.Context(), v1.PastChangeQuery{}, proofs)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, c := range list.Items {
		text := c.Kind + " " + c.Name + " " + c.What
		for _, f := range c.Fields {
			if c.What == "changed" {
				text += " " + f.Field + ":" + f.Was + ">" + f.Now
			}
		}
		out = append(out, text)
	}
	return out
}

// TestPast: each change can be looked at from before and after, and is listed.
func TestPast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.phases(map[string]v1.Phase{"h1": v1.PhaseGranting})
		begun := s.look()
		s.phases(map[string]v1.Phase{"h1": v1.PhaseAdmitted, "h2": v1.PhaseAwaiting})
		admitted := s.look()
		down := s.seen(func() { s.links[1].State, s.ports[0].State, s.switches[1].Problem = "Down", "Init", "silent" })
		gone := s.seen(func() { s.ports, s.links = s.ports[1:], s.links[:1] })

		first := s.at(begun, false)
		if !first.Known || len(first.Switches) != 2 || len(first.Ports) != 3 || len(first.Trunks) != 1 || first.Trunks[0].Links != 2 || first.Trunks[0].Active != 2 {
			t.Fatalf("at the beginning: %+v", first)
		}
		if p := first.Ports; p[0].Phase != "quarantined" || p[0].Tenant != "" || p[1].Phase != "granting" || p[1].Tenant != "acme" {
			t.Errorf("ports at the beginning: %+v", p)
		}
		if !first.Next.Equal(admitted) || !first.Previous.IsZero() {
			t.Errorf("around the beginning: %v and %v", first.Previous, first.Next)
		}
		if p := s.at(admitted, false).Ports; p[1].Phase != "admitted" || p[2].Phase != "awaiting" {
			t.Errorf("ports once h1 was admitted: %+v", p)
		}
		if p := s.at(admitted.Add(-time.Millisecond), false).Ports; p[1].Phase != "granting" {
			t.Errorf("h1 before it was admitted: %+v", p[1])
		}
		after := s.at(down, false)
		if after.Trunks[0].Active != 1 || after.Ports[0].State != "Init" || after.Switches[1].Problem != "silent" {
			t.Errorf("once the link was down: %+v", after)
		}
		last := s.at(gone, false)
		if len(last.Ports) != 2 || last.Trunks[0].Links != 1 || !last.Next.IsZero() || !last.Previous.Equal(down) {
			t.Errorf("at the end: %+v", last)
		}
		want := []string{
			"host  changed phase:granting>admitted", "host  changed phase:quarantined>awaiting tenant:>acme cluster:>c",
			"switch spine changed problem:>silent", "link leaf/10 to spine/2 changed state:Active>Down", "port h0 changed state:Active>Init",
			"link leaf/10 to spine/2 gone", "port h0 gone",
		}
		if got := s.words(true); !slices.Equal(got, want) {
			t.Errorf("changes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestProofIsConfined: a reader who may not see proofs now sees none of the past: no verdict, no change, no mark, and no step to one.
func TestProofIsConfined(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.phases(nil)
		begun := s.look()
		verdict := func(v string) []v1.IsolationPortVerdict {
			return []v1.IsolationPortVerdict{{Host: "h0", Verdict: v, Place: ib.Place{Switch: leaf, Port: 1}, Other: "blue", Held: "each"}}
		}
		s.proof = Proof{Begun: time.Now(), MaxAge: time.Hour, Ports: verdict(v1.Isolated)}
		safe := s.look()
		s.proof = Proof{Begun: time.Now(), MaxAge: time.Hour, Ports: verdict(v1.Leaks)}
		leaks := s.look()

		all := s.at(safe, true)
		if all.Proof == nil || !all.Proof.Current || all.Proof.Items[0].Verdict != v1.Isolated || all.Proof.Age != 60 || !all.Next.Equal(leaks) {
			t.Fatalf("what was proven: %+v", all.Proof)
		}
		if p := s.at(leaks, true).Proof; p.Items[0].Verdict != v1.Leaks || p.Items[0].Other != "blue" {
			t.Errorf("the leak: %+v", p.Items)
		}
		if p := s.at(begun, true); p.Proof != nil || p.ProofWhy != "not examined" {
			t.Errorf("before the first proof: %+v, %q", p.Proof, p.ProofWhy)
		}
		if got := s.words(true); !slices.Equal(got, []string{"proof h0 changed verdict:isolated>leaks"}) {
			t.Errorf("changes: %q", got)
		}
		for _, when := range []time.Time{begun, safe, leaks} {
			p := s.at(when, false)
			if p.Proof != nil || p.ProofWhy == "" || !p.Next.IsZero() || !p.Previous.IsZero() {
				t.Errorf("a reader without proofs is shown %+v, next %v, previous %v", p.Proof, p.Next, p.Previous)
			}
		}
		known, err := s.reader.Known(t.Context(), false)
		if err != nil || len(known.Marks) != 0 || !known.Changed.IsZero() || len(s.words(false)) != 0 {
			t.Errorf("marks %v, changed %v, changes %q, %v", known.Marks, known.Changed, s.words(false), err)
		}
	})
}

// TestOldProof: a proof that was too old at a time counts for nothing there.
func TestOldProof(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.phases(nil)
		s.proof = Proof{Begun: time.Now(), MaxAge: 3 * time.Minute, Ports: []v1.IsolationPortVerdict{{Host: "h0", Verdict: v1.Isolated, Held: "each", Place: ib.Place{Switch: leaf, Port: 1}}}}
		var times []time.Time
		for range 5 {
			times = append(times, s.look())
		}
		for i, want := range []string{"isolated", "isolated", "isolated", "unproven", "unproven"} {
			p := s.at(times[i], true).Proof
			if got := p.Items[0]; got.Verdict != want || (got.Cause == v1.PortOld) != (want == "unproven") || p.Current != (want == "isolated") {
				t.Errorf("%d min later: %+v, current %v, want %s", i+1, got, p.Current, want)
			}
		}
	})
}

// TestUnknown: nothing is shown of a time in which the fabric was not seen, its records were not followed, or nothing could be written, and it
// says why; what changed meanwhile is listed with no time.
func TestUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.sight.Settled = false
		before := s.look()
		if k, err := s.reader.Known(t.Context(), true); err != nil || !k.From.IsZero() || len(k.Gaps) != 0 {
			t.Fatalf("before the fabric has settled: %+v, %v", k, err)
		}
		s.sight.Settled = true
		begun := s.look()
		if p := s.at(begun, false); p.HostsWhy == "" || p.Ports[0].Phase != "" || p.Ports[0].Tenant != "" {
			t.Errorf("records were not read: %q, %+v", p.HostsWhy, p.Ports[0])
		}
		if p := s.at(before, false); p.Known || p.Why == "" {
			t.Errorf("before the beginning: %+v", p)
		}
		s.phases(nil)
		s.sight.Why = "lost"
		lost := s.look()
		s.sight.Why = ""
		s.sight.Settled = false
		s.look()
		s.sight.Settled = true
		found := s.seen(func() { s.ports[0].State = "Down" })
		if p := s.at(lost, false); p.Known || p.Why != "lost" || len(p.Switches)+len(p.Ports) != 0 || !p.Next.IsZero() {
			t.Errorf("while the fabric was lost: %+v", p)
		}
		if p := s.at(found, false); !p.Known || p.Ports[0].State != "Down" || p.Ports[0].Phase != "quarantined" {
			t.Errorf("once it was found: %+v", p)
		}
		if got := s.words(true); len(got) != 0 {
			t.Errorf("changes whose time is not known are listed: %q", got)
		}
		s.broken = errors.New("not shown")
		hidden := s.seen(func() {})
		s.broken = nil
		if p := s.at(hidden, false); p.Known || !strings.Contains(p.Why, "not shown") {
			t.Errorf("while it was not shown: %+v", p)
		}
		s.look()
		k, err := s.reader.Known(t.Context(), true)
		if err != nil || len(k.Gaps) != 2 || k.Gaps[0] != (v1.FabricGap{From: lost.UTC(), Until: found.UTC(), Why: "lost"}) {
			t.Errorf("gaps: %+v, %v", k.Gaps, err)
		}
	})
}

// TestFull: where nothing can be written the recorder says so, goes on, and records again later.
func TestFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.phases(nil)
		s.look()
		if err := s.recorder.Spool.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(s.dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 { // no mode stops it
			if err := os.RemoveAll(s.dir); err != nil {
				t.Fatal(err)
			}
		}
		failed := s.look()
		k, err := s.reader.Known(t.Context(), true)
		if err != nil || k.Failure == "" {
			t.Errorf("nothing says that it is not recorded: %+v, %v", k, err)
		}
		if err := errors.Join(os.MkdirAll(s.dir, 0o700), os.Chmod(s.dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		s.recorder.look(t.Context(), failed.Add(time.Second))
		if k, _ := s.reader.Known(t.Context(), true); k.Failure == "" {
			t.Error("tried again without a pause")
		}
		again := s.look()
		k, err = s.reader.Known(t.Context(), true)
		if err != nil || k.Failure != "" || len(k.Gaps) != 1 || !strings.HasPrefix(k.Gaps[0].Why, "recording failed: ") {
			t.Errorf("once it can be written: %+v, %v", k, err)
		}
		if p := s.at(again, false); !p.Known {
			t.Errorf("not known again: %s", p.Why)
		}
	})
}

// TestRun: a recorder records while it leads, and what was between two times at which it led is not known.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.phases(nil)
		lead := func(d time.Duration) (from, until time.Time) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { s.recorder.Run(ctx); close(done) }()
			from = time.Now()
			time.Sleep(d)
			cancel()
			<-done
			return from, time.Now()
		}
		from, until := lead(5*time.Minute + time.Second) // not at the time of a look
		time.Sleep(time.Minute)
		again, _ := lead(time.Minute + time.Second)
		k, err := s.reader.Known(t.Context(), true)
		if len(k.Gaps) == 1 && k.Gaps[0].Why != "this instance does not lead any longer" {
			t.Errorf("the gap is said to be since %q", k.Gaps[0].Why)
		}
		if err != nil || !k.From.Equal(from) || len(k.Gaps) != 1 || !k.Gaps[0].From.Equal(until) || !k.Gaps[0].Until.Equal(again) || k.Why == "" {
			t.Errorf("known: %+v, %v", k, err)
		}
		if p := s.at(until.Add(-time.Millisecond), true); !p.Known {
			t.Errorf("not known while it led: %s", p.Why)
		}
		time.Sleep(time.Minute)
		s.open() // another process
		third, _ := lead(time.Minute)
		k, err = s.reader.Known(t.Context(), true)
		if err != nil || len(k.Gaps) != 2 || !k.Gaps[1].Until.Equal(third) {
			t.Errorf("after a start: %+v, %v", k, err)
		}
	})
}

// TestAlive: where nothing changes it is recorded now and then, so that a crash takes little of what is known.
func TestAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.phases(nil)
		s.look()
		last := s.look()
		s.open() // after a crash
		if p := s.at(last, true); !p.Known {
			t.Errorf("not known a minute after the last change: %s", p.Why)
		}
	})
}

// TestRefusals: what cannot be answered says why and what to do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := &Reader{Spool: func() *spool.Spool { return nil }, Every: func() time.Duration { return Every }, Why: func() string { return "" }, Now: time.Now}
	var e *refusal.Error
	if _, err := r.Known(t.Context(), true); !errors.As(err, &e) || e.Status != refusal.NotFound || e.Code != "history_off" {
		t.Errorf("nothing is to be recorded: %v", err)
	}
	r.Keep = time.Hour
	if _, err := r.At(t.Context(), v1.PastQuery{At: time.Now()}, true); !errors.As(err, &e) || e.Status != refusal.Unavailable {
		t.Errorf("nothing is open: %v", err)
	}
	s := newStage(t)
	for _, after := range []string{"x", "2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z+-1", "2026-11-30T12:00:00Z+x", "+1"} {
		if _, err := s.reader.Changes(t.Context(), v1.PastChangeQuery{PageQuery: v1.PageQuery{After: after}}, true); !errors.As(err, &e) || e.Code != v1.CodeCursor {
			t.Errorf("after=%q: %v", after, err)
		}
	}
	if p, err := parsePosition("2026-11-30T12:00:00.25Z+7"); err != nil || p.Skip != 7 || p.Time.Nanosecond() != 250e6 {
		t.Errorf("a cursor is read as %+v, %v", p, err)
	}
}

// TestHosts: the phases of hosts follow their records.
func TestHosts(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	put := func(id string, phase v1.Phase) {
		t.Helper()
		if _, err := st.Update(t.Context(), func(tx *store.Tx) error {
			return hostrecord.Records().Put(tx, id, hostrecord.Record{Phase: phase})
		}); err != nil {
			t.Fatal(err)
		}
	}
	put("h1", v1.PhaseAwaiting)
	h := NewHosts()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { h.Follow(ctx, st, slog.New(slog.DiscardHandler)); close(done) }()
	await := func(want string) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		late := time.After(2 * time.Minute)
		for {
			rows, _ := h.rows(0)
			var got []string
			for _, r := range rows {
				got = append(got, r.ID+" "+r.Value[0])
			}
			slices.Sort(got)
			if strings.Join(got, ", ") == want {
				return
			}
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("hosts are %q, want %q", got, want)
			}
		}
	}
	await("h1 awaiting, hosts ")
	put("h2", v1.PhaseAdmitted)
	await("h1 awaiting, h2 admitted, hosts ")
	cancel()
	<-done
	await("hosts the records of hosts are not followed any longer")
}
