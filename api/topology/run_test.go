package topology_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/store/storetest"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
)

// manager is a Subnet Manager as a service sees it: it takes what it is given, or
// refuses it, and shows it.
type manager struct {
	site *site

	mu     sync.Mutex
	keep   *topology.Service
	given  []string // what it took
	refuse string
	away   bool
	lost   int // links that it does not verify
	cut    int // of these, links of which no tenant has an end
}

// backbone returns how many links of a revision no tenant has an end of.
func backbone(s *topospec.Spec) (n int) {
	for i := range s.Revision().Links {
		if s.IsBackbone(i) {
			n++
		}
	}
	return n
}

func (m *manager) give(_ context.Context, w topology.Wanted) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return false
	}
	if m.refuse != "" && w.Spec != nil {
		m.keep.OnEvent(&declared.TopologyRefused{Revision: w.Revision, Reason: m.refuse})
		m.refuse = ""
		m.keep.OnView()
		return true
	}
	m.given = append(m.given, fmt.Sprintf("%d %v", w.Revision, w.Mode))
	m.place(w)
	return true
}

// place shows what is in force. m.mu is held.
func (m *manager) place(w topology.Wanted) {
	m.site.mu.Lock()
	m.site.placed = nil
	if w.Spec != nil {
		m.site.placed = &declared.TopologyView{
			Revision: w.Revision, Digest: w.Spec.Digest(), Mode: w.Mode, Wanted: w.Mode, Rooted: true,
			Verified: w.Spec.NumActive() - m.lost, Backbone: backbone(w.Spec) - m.cut, Expected: w.Spec.NumActive(),
		}
	}
	m.site.mu.Unlock()
	m.keep.OnView()
}

// lose has the fabric verify fewer links from now on, of hosts.
func (m *manager) lose(n int) { m.loses(n, 0) }

// loses is lose for n links, of which no tenant has an end of cut.
func (m *manager) loses(n, cut int) {
	m.mu.Lock()
	was := m.cut
	m.lost, m.cut = n, cut
	m.mu.Unlock()
	m.site.mu.Lock()
	if p := m.site.placed; p != nil {
		c := *p
		c.Verified, c.Backbone = c.Expected-n, c.Backbone+was-cut
		m.site.placed = &c
	}
	m.site.mu.Unlock()
	m.keep.OnView()
}

func (m *manager) taken() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.given...)
}

// run has a Subnet Manager follow the service, as after a start, until the returned function is called.
func (s *site) run() (*manager, func()) {
	s.t.Helper()
	m := &manager{site: s, keep: s.keep}
	first, err := s.keep.Wanted(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	m.mu.Lock()
	m.place(first)
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.keep.Run(ctx, first, m.give) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return m, stop
}

// eventually waits until what is in force is as a test wants it.
func (s *site) eventually(what string, ok func(*v1.Topospec) bool) *v1.Topospec {
	s.t.Helper()
	late := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := s.keep.Status(s.t.Context())
		if err == nil && ok(st) {
			return st
		}
		select {
		case <-late:
			s.t.Fatalf("%s: %+v, %v\n%s", what, st, err, strings.Join(s.steps(), "\n"))
		case <-tick.C:
		}
	}
}

func change(r *topospec.Revision, reason string) *topospec.Revision {
	next := r.Clone()
	next.Links[len(next.Links)-1].Reason = reason
	return next
}

// TestFollow: the Subnet Manager receives each change, once, but none that was withdrawn before it attached.
func TestFollow(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{})
	m, _ := s.run()
	s.inForce(s.rev, "")
	s.eventually("applied", func(st *v1.Topospec) bool { return st.Applied && st.Revision == 1 })
	s.activate(1, "warn")
	s.eventually("promoted", func(st *v1.Topospec) bool { return st.Applied && st.Mode == "warn" })
	m.mu.Lock()
	m.away = true
	m.mu.Unlock()
	d := s.draft(change(s.rev, "a"))
	s.approve(d, "bob")
	if st := s.activate(2, ""); st.Applied || st.Problem == "" {
		t.Errorf("taken by nobody: %+v", st)
	}
	if _, err := s.keep.Rollback(t.Context(), "bob", "", v1.TopospecRollback{Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	s.inForce(change(s.rev, "b"), "")
	m.mu.Lock()
	m.away = false
	m.mu.Unlock()
	s.eventually("applied", func(st *v1.Topospec) bool { return st.Applied && st.Revision == 3 })
	if d := cmp.Diff(m.taken(), []string{"1 observe", "1 warn", "3 warn"}); d != "" {
		t.Errorf("given (-got +want):\n%s", d)
	}
}

// watched are the rules of a site that watches for a minute.
var watched = topology.Rules{Watch: time.Minute}

// TestKept: an activation that makes nothing worse stands when the time is over.
func TestKept(t *testing.T) {
	s := newSite(t, shared.Open(t), watched)
	m, _ := s.run()
	s.inForce(s.rev, "")
	s.inForce(change(s.rev, "a"), "")
	st := s.eventually("applied", func(st *v1.Topospec) bool { return st.Applied && st.Revision == 2 })
	if w := st.Watch; w == nil || w.Back != 1 || w.Foretold != st.InForce.Expected || w.Least != w.Foretold-2 {
		t.Fatalf("%+v", st.Watch)
	}
	m.lose(2) // as many as come and go by themselves
	s.pass(time.Minute)
	m.keep.OnView()
	s.eventually("kept", func(st *v1.Topospec) bool { return st.Watch == nil && st.Revision == 2 })
	if got := s.steps(); got[len(got)-1] != "service topospec.keep topospec/2 observe" {
		t.Errorf("audit: %v", got)
	}
}

// TestTakenBack: an activation that makes things worse is taken back by itself, in the
// mode of before, and a promotion is taken back to the milder mode.
func TestTakenBack(t *testing.T) {
	s := newSite(t, shared.Open(t), watched)
	m, _ := s.run()
	s.inForce(s.rev, "")
	s.inForce(change(s.rev, "a"), "")
	s.eventually("applied", func(st *v1.Topospec) bool { return st.Applied && st.Revision == 2 })
	m.lose(3)
	s.eventually("seen to be worse", func(st *v1.Topospec) bool { return st.InForce.Verified == st.InForce.Expected-3 })
	s.untilBack(m, 1, "observe")
	m.lose(0)

	s.activate(1, "enforce")
	s.eventually("promoted", func(st *v1.Topospec) bool { return st.Applied && st.Mode == "enforce" })
	m.loses(5, 3)
	s.untilBack(m, 1, "observe")
	st, err := s.keep.Status(t.Context())
	if err != nil || !strings.Contains(st.Reason, "links that no tenant has an end of are verified, foretold were") || st.By != "service" {
		t.Errorf("%+v, %v", st, err)
	}
	want := []string{
		"service topospec.rollback topospec/1 observe", "bob topospec.activate topospec/1 enforce", "service topospec.rollback topospec/1 observe",
	}
	if got := s.steps(); cmp.Diff(got[len(got)-3:], want) != "" {
		t.Errorf("audit: %v", got)
	}
}

// TestHostsTakeNothingBack: an attacker who is root on hosts has their links lost as he likes. Enforcement is not taken
// back for it, nor a revision under enforcement.
func TestHostsTakeNothingBack(t *testing.T) {
	s := newSite(t, shared.Open(t), watched)
	m, _ := s.run()
	s.inForce(s.rev, "")
	s.activate(1, "enforce")
	s.eventually("promoted", func(st *v1.Topospec) bool { return st.Applied && st.Mode == "enforce" })
	m.lose(9)
	s.untilKept(m)
	m.lose(0)
	s.inForce(change(s.rev, "a"), "enforce")
	s.eventually("applied", func(st *v1.Topospec) bool { return st.Applied && st.Revision == 2 })
	m.lose(9)
	if st := s.untilKept(m); st.Revision != 2 || st.Mode != "enforce" {
		t.Errorf("revision %d in mode %s is in force", st.Revision, st.Mode)
	}
	want := []string{"service topospec.keep topospec/1 enforce", "service topospec.keep topospec/2 enforce"}
	var got []string
	for _, step := range s.steps() {
		if strings.HasPrefix(step, "service ") {
			got = append(got, step)
		}
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("audit (-got +want):\n%s", d)
	}
}

// untilKept lets time pass, by a second each, until an activation is watched no longer.
func (s *site) untilKept(m *manager) *v1.Topospec {
	s.t.Helper()
	return s.eventually("watched no longer", func(st *v1.Topospec) bool {
		s.pass(time.Second)
		m.keep.OnView()
		return st.Watch == nil && st.Applied
	})
}

// untilBack lets time pass until the service took an activation back.
func (s *site) untilBack(m *manager, revision uint64, mode string) {
	s.t.Helper()
	s.eventually("taken back", func(st *v1.Topospec) bool {
		s.pass(time.Second)
		m.keep.OnView()
		return st.Revision == revision && st.Mode == mode && st.Watch == nil && st.Applied
	})
}

// TestRefusedBySM: a revision that the Subnet Manager refuses is taken back at once.
func TestRefusedBySM(t *testing.T) {
	s := newSite(t, shared.Open(t), watched)
	m, _ := s.run()
	s.inForce(s.rev, "")
	s.eventually("applied", func(st *v1.Topospec) bool { return st.Applied })
	m.mu.Lock()
	m.refuse = "it would switch off 90 ports"
	m.mu.Unlock()
	s.activate(1, "enforce")
	st := s.eventually("taken back", func(st *v1.Topospec) bool { return st.Applied && st.Mode == "observe" && st.By == "service" })
	if !strings.Contains(st.Reason, "the subnet manager refuses it: it would switch off 90 ports") {
		t.Errorf("reason %q", st.Reason)
	}
}

// TestWatchOutlivesRestart: the time after an activation goes on over a restart.
func TestWatchOutlivesRestart(t *testing.T) {
	s := newSite(t, shared.Open(t), watched)
	_, stop := s.run()
	s.inForce(s.rev, "")
	s.inForce(change(s.rev, "a"), "")
	s.eventually("applied", func(st *v1.Topospec) bool { return st.Applied && st.Revision == 2 })
	stop()
	s.keep = s.service(s.store, watched)
	m, _ := s.run()
	if st := s.eventually("applied again", func(st *v1.Topospec) bool { return st.Applied }); st.Watch == nil || st.Revision != 2 {
		t.Fatalf("%+v", st)
	}
	m.lose(9)
	s.untilBack(m, 1, "observe")
}

// TestKilledAtEachStep kills the service at every write of a life from draft to rollback,
// before and after the write landed, and starts another on what is there. Each time the
// books are whole, the Subnet Manager gets what they say, and the life goes on.
func TestKilledAtEachStep(t *testing.T) {
	for _, moment := range []storetest.Moment{storetest.Before, storetest.After} {
		for n := 1; ; n++ {
			ended := false
			t.Run(fmt.Sprintf("write %d landed %v", n, bool(moment)), func(t *testing.T) { ended = killedAt(t, n, moment) })
			if ended || t.Failed() {
				break
			}
		}
	}
}

// killedAt reports whether the life has fewer writes than n.
func killedAt(t *testing.T, n int, moment storetest.Moment) bool {
	st, failing := shared.OpenFailing(t)
	s := newSite(t, st, watched)
	failing.FailAt(n, moment)
	died := s.lifeUntilDeath()
	failing.Heal()
	if !died {
		return true
	}
	s.keep = s.service(st, watched)
	w, err := s.keep.Wanted(t.Context())
	if err != nil {
		t.Fatalf("after the kill: %v", err)
	}
	s.steps() // the chain of the audit log is whole
	m, _ := s.run()
	s.eventually("the subnet manager has what is wanted", func(st *v1.Topospec) bool { return st.Applied })
	// A step that was under way can be done again.
	was := w.Revision
	s.inForce(change(s.rev, "after the kill"), "")
	now := s.eventually("activated after the kill", func(st *v1.Topospec) bool { return st.Applied && st.Revision > was })
	if was == 0 {
		return false
	}
	m.loses(50, 50)
	s.untilBack(m, was, w.Mode.String())
	if now.Watch == nil || now.Watch.Back != was {
		t.Errorf("%+v", now.Watch)
	}
	return false
}

// lifeUntilDeath goes through a life until the store does not answer any more.
func (s *site) lifeUntilDeath() (died bool) {
	ctx := context.Background()
	for _, r := range []*topospec.Revision{s.rev, change(s.rev, "a"), change(s.rev, "b")} {
		d, err := s.keep.Draft(ctx, "ada", v1.NewTopospec{Name: "rail-a.yaml", Content: text(r), Reason: "planned"})
		if err != nil {
			return true
		}
		for _, do := range []func() error{
			func() error { _, err := s.keep.Validate(ctx, "bob", d.Revision); return err },
			func() error {
				_, err := s.keep.Simulate(ctx, "bob", d.Revision, v1.TopospecSimulate{})
				return err
			},
			func() error {
				_, err := s.keep.Approve(ctx, "bob", d.Revision, "", v1.TopospecApprove{Digest: d.Digest})
				return err
			},
			func() error {
				_, err := s.keep.Activate(ctx, "bob", d.Revision, "", v1.TopospecActivate{Reason: "x"})
				return err
			},
		} {
			if do() != nil {
				return true
			}
		}
	}
	if _, err := s.keep.Activate(ctx, "bob", 3, "", v1.TopospecActivate{Mode: "enforce", Reason: "x"}); err != nil {
		return true
	}
	if _, err := s.keep.Rollback(ctx, "bob", "", v1.TopospecRollback{Reason: "x"}); err != nil {
		return true
	}
	_, err := s.keep.Rollback(ctx, "bob", "", v1.TopospecRollback{Revision: 1, Mode: "observe", Reason: "x"})
	return err != nil
}
