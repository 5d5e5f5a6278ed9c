package history_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/approval"
	"portcullis/fabricsm/topospec/history"
	"portcullis/fabricsm/topospec/simulate"
	"portcullis/fabricsm/topospec/topospectest"
)

var at = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// fine is the simulation of a revision that no guard rejects.
func fine() *simulate.Report { return &simulate.Report{} }

func draft(t *testing.T, h *history.History, r *topospec.Revision) *topospec.Spec {
	t.Helper()
	s, err := h.Draft("draft", r, "ada", at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func approve(t *testing.T, h *history.History, s *topospec.Spec, by ...history.Person) {
	t.Helper()
	for _, p := range by {
		if err := h.Approve(s.Revision().Number, s.Digest(), p, at); err != nil {
			t.Fatal(err)
		}
	}
}

// step asks for a revision to be in force. now is the content of the one that is.
func step(now, next *topospec.Spec) history.Step {
	s := history.Step{By: "bob", Why: "planned", At: at, Report: fine(), Active: now, Next: next}
	if next != nil {
		s.Number = next.Revision().Number
	}
	return s
}

func activate(t *testing.T, h *history.History, now, next *topospec.Spec) {
	t.Helper()
	if err := h.Activate(step(now, next)); err != nil {
		t.Fatal(err)
	}
}

func TestLife(t *testing.T) {
	h := &history.History{}
	r := topospectest.Revision(t, topospectest.Small())
	first := draft(t, h, r)
	approve(t, h, first, "bob")
	activate(t, h, nil, first)

	changed := r.Clone()
	changed.Links[len(changed.Links)-1].Reason = "spare"
	second, stale := draft(t, h, changed), draft(t, h, r)
	approve(t, h, second, "bob")
	activate(t, h, first, second)
	approve(t, h, stale, "bob")
	if err := h.Activate(step(second, stale)); !errors.Is(err, history.ErrRefused) || !strings.Contains(err.Error(), "not in force any more") {
		t.Errorf("a draft of an older revision: %v", err)
	}
	if e := h.Active(); e.Number != 2 || e.Parent != first.Digest() {
		t.Errorf("in force: %+v", e)
	}
	if _, err := h.Rollback(history.Step{Report: fine(), At: at}); !errors.Is(err, history.ErrRefused) {
		t.Errorf("rolled back by nobody: %v", err)
	}
	back, err := h.Rollback(history.Step{By: "bob", Why: "hosts lost", Report: fine(), At: at})
	if err != nil || back.Digest != first.Digest() {
		t.Fatalf("rolled back to %v, %v", back, err)
	}
	if _, err := h.Rollback(history.Step{By: "bob", Why: "again", At: at}); !errors.Is(err, history.ErrRefused) {
		t.Errorf("rolled back to nothing: %v", err)
	}
	if err := h.Activate(step(first, second)); !errors.Is(err, history.ErrRefused) || !strings.Contains(err.Error(), "roll back to it") {
		t.Errorf("activated again: %v", err)
	}
	if back, err = h.Rollback(history.Step{Number: 2, By: "bob", Why: "it was the cable", At: at}); err != nil || back.Number != 2 {
		t.Fatalf("rolled on to %v, %v", back, err)
	}
	for number, want := range map[uint64]string{2: "it is in force", 3: "never in force", 9: "no such revision"} {
		if _, err := h.Rollback(history.Step{Number: number, By: "bob", Why: "x", At: at}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rolled back to %d: %v, want %q", number, err, want)
		}
	}
	var got []string
	for _, e := range h.Entries() {
		got = append(got, e.Status.String()+" "+e.Why)
	}
	if d := cmp.Diff(got, []string{"rolled_back bob: it was the cable", "active bob: it was the cable", "draft "}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	again, err := history.Restore(h.Rules, h.Entries())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(again.Entries(), h.Entries()); d != "" {
		t.Errorf("restored (-got +want):\n%s", d)
	}
	if d := cmp.Diff(again.Active(), h.Active()); d != "" {
		t.Errorf("in force (-got +want):\n%s", d)
	}
}

// TestMode: the mode of the revision in force changes without a new approval; a stronger one only if no guard rejects it.
func TestMode(t *testing.T) {
	h := &history.History{}
	s := draft(t, h, topospectest.Revision(t, topospectest.Small()))
	approve(t, h, s, "bob")
	activate(t, h, nil, s)
	refused := &simulate.Report{Refused: []simulate.Refusal{{Guard: simulate.GuardFlips, Text: "too many", Do: "look"}}}
	in := step(s, s)
	if err := h.Activate(in); err == nil || !strings.Contains(err.Error(), "in force in mode observe") {
		t.Errorf("the same mode: %v", err)
	}
	in.Mode, in.Report = topospec.Enforce, refused
	if err := h.Activate(in); err == nil || !strings.Contains(err.Error(), "too many; look") {
		t.Errorf("a guard refuses: %v", err)
	}
	in.Report = nil
	if err := h.Activate(in); err == nil || !strings.Contains(err.Error(), "not simulated") {
		t.Errorf("not simulated: %v", err)
	}
	in.Report = fine()
	if err := h.Activate(in); err != nil || h.Active().Mode != topospec.Enforce {
		t.Fatalf("promoted: %v, %+v", err, h.Active())
	}
	in.Mode, in.Report = topospec.Warn, refused
	if err := h.Activate(in); err != nil || h.Active().Mode != topospec.Warn {
		t.Errorf("demoted: %v, %+v", err, h.Active())
	}
}

func TestRestoreRefuses(t *testing.T) {
	h := &history.History{}
	r := topospectest.Revision(t, topospectest.Small())
	s := draft(t, h, r)
	approve(t, h, s, "bob")
	activate(t, h, nil, s)
	good := h.Entries()
	for _, tt := range []struct {
		name   string
		change func(e []history.Entry) []history.Entry
		want   string
	}{
		{"no digest", func(e []history.Entry) []history.Entry { e[0].Digest = topospec.Digest{}; return e }, "has no number or no digest"},
		{"no number", func(e []history.Entry) []history.Entry { e[0].Number = 0; return e }, "has no number or no digest"},
		{"twice", func(e []history.Entry) []history.Entry { return append(e, e[0]) }, "it comes after 1"},
		{"two in force", func(e []history.Entry) []history.Entry {
			return append(e, history.Entry{Number: 2, Digest: e[0].Digest, Status: history.Active})
		}, "revision 1 is active, too"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entries := tt.change(append([]history.Entry(nil), good...))
			if _, err := history.Restore(approval.Rule{}, entries); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	other := topospectest.Revision(t, topospectest.Small())
	other.Number, other.Fabric = 1, "other"
	if err := good[0].Check(topospectest.Spec(t, other)); err == nil || !strings.Contains(err.Error(), "not what its digest") {
		t.Errorf("another content is taken: %v", err)
	}
	if err := good[0].Check(s); err != nil {
		t.Error(err)
	}
}

// TestPrune: the revision in force, the one before it, and drafts are never removed.
func TestPrune(t *testing.T) {
	h := &history.History{}
	r := topospectest.Revision(t, topospectest.Small())
	var now *topospec.Spec
	for i := range 6 {
		r.Links[0].Reason = strings.Repeat("x", i+1)
		next := draft(t, h, r)
		approve(t, h, next, "bob")
		activate(t, h, now, next)
		now = next
	}
	draft(t, h, r)
	for range 3 { // as far back as it goes
		if _, err := h.Rollback(history.Step{By: "bob", Why: "back", At: at}); err != nil {
			t.Fatal(err)
		}
	}
	var dropped, kept []uint64
	for _, e := range h.Prune(3) {
		dropped = append(dropped, e.Number)
	}
	for _, e := range h.Entries() {
		kept = append(kept, e.Number)
	}
	if d := cmp.Diff([][]uint64{dropped, kept}, [][]uint64{{1, 4, 5, 6}, {2, 3, 7}}); d != "" {
		t.Errorf("dropped and kept (-got +want):\n%s", d)
	}
	if e := h.Active(); e == nil || e.Number != 3 {
		t.Errorf("in force: %+v", e)
	}
	if _, err := history.Restore(approval.Rule{}, h.Entries()); err != nil {
		t.Error(err)
	}
}

// TestDraftsAreBounded: an author cannot flood the list of drafts.
func TestDraftsAreBounded(t *testing.T) {
	h := &history.History{}
	r := topospectest.Revision(t, topospectest.Small())
	for range history.MaxDrafts {
		draft(t, h, r)
	}
	if _, err := h.Draft("draft", r, "ada", at); !errors.Is(err, history.ErrRefused) || !strings.Contains(err.Error(), "reject those") {
		t.Errorf("one more draft: %v", err)
	}
	if err := h.Reject(5, "ada", "old"); err != nil {
		t.Fatal(err)
	}
	if s := draft(t, h, r); s.Revision().Number != history.MaxDrafts+1 {
		t.Errorf("number %d", s.Revision().Number)
	}
}

// TestAlone: where the rule of two persons is switched off, the author's own word
// counts once.
func TestAlone(t *testing.T) {
	h := &history.History{Rules: approval.Rule{Alone: true}}
	r := topospectest.Revision(t, topospectest.Small())
	s := draft(t, h, r)
	if err := h.Activate(step(nil, s)); err == nil || !strings.Contains(err.Error(), "a person must approve it, 0 did") {
		t.Errorf("nobody: %v", err)
	}
	approve(t, h, s, "ada")
	activate(t, h, nil, s)
}

func TestWorse(t *testing.T) {
	for _, tt := range []struct {
		foretold, after, allowance int
		want                       bool
	}{{100, 100, 0, false}, {100, 99, 0, true}, {100, 98, 2, false}, {100, 97, 2, true}, {0, 0, 0, false}, {1, 5, 0, false}} {
		if got := history.Worse(tt.foretold, tt.after, tt.allowance); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestFourEyes: which persons may put a revision into force (T131).
func TestFourEyes(t *testing.T) {
	base := topospectest.Revision(t, topospectest.Small(), "spare-1,0x0020000000009001,ConnectX-6,,spare", "gone-1,0x0020000000009002,ConnectX-6,,retired")
	base.Policy.Two = []topospec.Touch{topospec.TouchNewDevice, topospec.TouchServiceLink, topospec.TouchPolicy}
	linkOf := func(r *topospec.Revision, name string) *topospec.Link {
		g := topospectest.Device(t, r, name).GUID
		for i := range r.Links {
			if r.Links[i].B.GUID == g {
				return &r.Links[i]
			}
		}
		t.Fatalf("%s has no link", name)
		return nil
	}
	for _, tt := range []struct {
		name   string
		change func(r *topospec.Revision)
		by     []history.Person
		want   string
	}{
		{"nobody", func(*topospec.Revision) {}, nil, "a person other than its author"},
		{"one other", func(*topospec.Revision) {}, []history.Person{"bob"}, ""},
		{"a spare put to use", func(r *topospec.Revision) {
			topospectest.Device(t, r, "spare-1").Stock = topospec.InUse
			linkOf(r, "host-0001 mlx5_1").B.GUID = topospectest.Device(t, r, "spare-1").GUID
		}, []history.Person{"bob"}, ""},
		{"a new device, one other", func(r *topospec.Revision) {
			r.Devices = append(r.Devices, topospec.Device{GUID: 0x0020000000009901, Kind: topospec.KindHCA})
			linkOf(r, "host-0001 mlx5_1").B.GUID = 0x0020000000009901
		}, []history.Person{"bob"}, "it touches [new_device]: two persons"},
		{"a new device, two others", func(r *topospec.Revision) {
			r.Devices = append(r.Devices, topospec.Device{GUID: 0x0020000000009901, Kind: topospec.KindHCA})
			linkOf(r, "host-0001 mlx5_1").B.GUID = 0x0020000000009901
		}, []history.Person{"bob", "eve"}, ""},
		{"the Subnet Manager's link", func(r *topospec.Revision) { linkOf(r, "sm-1").State = topospec.Maintenance }, []history.Person{"bob"}, "it touches [service_link]"},
		{"the Subnet Manager's link away", func(r *topospec.Revision) {
			l := linkOf(r, "sm-1")
			l.B, l.State, l.Class = topospec.End{}, topospec.Reserved, topospec.ClassAny
		}, []history.Person{"bob"}, "it touches [service_link]"},
		{"a new device that has no link yet", func(r *topospec.Revision) {
			r.Devices = append(r.Devices, topospec.Device{GUID: 0x0020000000009901, Kind: topospec.KindHCA, Stock: topospec.Spare})
		}, []history.Person{"bob"}, "it touches [new_device]"},
		{"a retired device again", func(r *topospec.Revision) {
			topospectest.Device(t, r, "gone-1").Stock = topospec.Spare
		}, []history.Person{"bob"}, "it touches [new_device]"},
		{"the Subnet Manager's link made an ordinary one", func(r *topospec.Revision) {
			linkOf(r, "sm-1").Class = topospec.ClassHost
			topospectest.Device(t, r, "sm-1").Role = topospec.RoleCompute
		}, []history.Person{"bob"}, "it touches [service_link]"},
		{"an ordinary adapter made a Subnet Manager's", func(r *topospec.Revision) {
			topospectest.Device(t, r, "host-0001 mlx5_1").Role = topospec.RoleSM
		}, []history.Person{"bob"}, "it touches [service_link]"},
		{"the rule itself", func(r *topospec.Revision) { r.Policy.Two = nil }, []history.Person{"bob"}, "it touches [policy]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &history.History{}
			first := draft(t, h, base)
			approve(t, h, first, "bob", "eve")
			activate(t, h, nil, first)
			next := base.Clone()
			tt.change(next)
			s := draft(t, h, next)
			approve(t, h, s, tt.by...)
			err := h.Activate(step(first, s))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestApprovalsAreForOneContent(t *testing.T) {
	h := &history.History{}
	s := draft(t, h, topospectest.Revision(t, topospectest.Small()))
	if err := h.Approve(1, topospec.Digest{1}, "bob", at); !errors.Is(err, history.ErrRefused) {
		t.Errorf("something else was looked at: %v", err)
	}
	approve(t, h, s, "bob")
	if err := h.Approve(1, s.Digest(), "bob", at); !errors.Is(err, history.ErrRefused) {
		t.Errorf("twice: %v", err)
	}
	if err := h.Approve(9, s.Digest(), "bob", at); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("no such revision: %v", err)
	}
	if err := h.Approve(1, s.Digest(), "ada", at); !errors.Is(err, history.ErrRefused) || !strings.Contains(err.Error(), "ada wrote it") {
		t.Errorf("by its author: %v", err)
	}
	in := step(nil, s)
	in.Report = nil
	if err := h.Activate(in); err == nil || !strings.Contains(err.Error(), "not simulated") {
		t.Errorf("not simulated: %v", err)
	}
	in.Report = &simulate.Report{Refused: []simulate.Refusal{{Guard: simulate.GuardScore, Text: "too few", Do: "look"}}}
	if err := h.Activate(in); err == nil || !strings.Contains(err.Error(), "too few; look") {
		t.Errorf("a guard refuses: %v", err)
	}
	in = step(nil, s)
	in.By = ""
	if err := h.Activate(in); err == nil || !strings.Contains(err.Error(), "say who") {
		t.Errorf("by nobody: %v", err)
	}
	in = step(nil, nil)
	in.Number = 1
	if err := h.Activate(in); err == nil || !strings.Contains(err.Error(), "its content is missing") {
		t.Errorf("without content: %v", err)
	}
	if err := h.Reject(1, "bob", "wrong rack"); err != nil {
		t.Fatal(err)
	}
	if err := h.Activate(step(nil, s)); !errors.Is(err, history.ErrRefused) {
		t.Errorf("rejected: %v", err)
	}
}
