package history_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/history"
	"portcullis/fabricsm/topospec/simulate"
	"portcullis/fabricsm/topospec/topospectest"
)

var at = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// fine is the simulation of a revision that no guard refuses.
func fine() *simulate.Report { return &simulate.Report{} }

func draft(t *testing.T, h *history.History, r *topospec.Revision) *topospec.Spec {
	t.Helper()
	s, err := h.Draft(r, "ada")
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

func activate(t *testing.T, h *history.History, s *topospec.Spec) {
	t.Helper()
	if _, err := h.Activate(s.Revision().Number, fine(), at); err != nil {
		t.Fatal(err)
	}
}

func TestLife(t *testing.T) {
	h := &history.History{}
	r := topospectest.Revision(t, topospectest.Small())
	first := draft(t, h, r)
	approve(t, h, first, "bob")
	activate(t, h, first)

	changed := r.Clone()
	changed.Links[len(changed.Links)-1].Reason = "spare"
	second, stale := draft(t, h, changed), draft(t, h, r)
	approve(t, h, second, "bob")
	activate(t, h, second)
	approve(t, h, stale, "bob")
	if _, err := h.Activate(3, fine(), at); !errors.Is(err, history.ErrRefused) || !strings.Contains(err.Error(), "not in force any more") {
		t.Errorf("a draft of an older revision: %v", err)
	}
	if s, e := h.Active(); s != second || e.Number != 2 || e.Parent != first.Digest() {
		t.Errorf("in force: %+v", e)
	}
	if _, err := h.Rollback("", "", nil, at); !errors.Is(err, history.ErrRefused) {
		t.Errorf("rolled back by nobody: %v", err)
	}
	back, err := h.Rollback("bob", "hosts lost", fine(), at)
	if err != nil || back.Digest() != first.Digest() {
		t.Fatalf("rolled back to %v, %v", back, err)
	}
	if _, err := h.Rollback("bob", "again", nil, at); !errors.Is(err, history.ErrRefused) {
		t.Errorf("rolled back to nothing: %v", err)
	}
	var got []string
	for _, e := range h.Entries() {
		got = append(got, e.Status.String()+" "+e.Why)
	}
	if d := cmp.Diff(got, []string{"active ", "rolled_back bob: hosts lost", "draft "}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	specs := map[topospec.Digest]*topospec.Spec{first.Digest(): first, second.Digest(): second, stale.Digest(): stale}
	again, err := history.Restore(h.Entries(), func(d topospec.Digest) *topospec.Spec { return specs[d] })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(again.Entries(), h.Entries()); d != "" {
		t.Errorf("restored (-got +want):\n%s", d)
	}
}

func TestRestoreRefuses(t *testing.T) {
	h := &history.History{}
	s := draft(t, h, topospectest.Revision(t, topospectest.Small()))
	approve(t, h, s, "bob")
	activate(t, h, s)
	good := h.Entries()
	for _, tt := range []struct {
		name   string
		change func(e []history.Entry) []history.Entry
		want   string
	}{
		{"another digest", func(e []history.Entry) []history.Entry { e[0].Digest[0]++; return e }, "not what its digest"},
		{"another number", func(e []history.Entry) []history.Entry { e[0].Number = 7; return e }, "not what its digest"},
		{"another parent", func(e []history.Entry) []history.Entry { e[0].Parent[0]++; return e }, "not what its digest"},
		{"twice", func(e []history.Entry) []history.Entry { return append(e, e[0]) }, "it comes after 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entries := tt.change(append([]history.Entry(nil), good...))
			if _, err := history.Restore(entries, func(topospec.Digest) *topospec.Spec { return s }); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := history.Restore(good, func(topospec.Digest) *topospec.Spec { return nil }); err == nil {
		t.Error("a history without content is taken")
	}
}

// TestFourEyes: who may put what into force (T131).
func TestFourEyes(t *testing.T) {
	base := topospectest.Revision(t, topospectest.Small(), "spare-1,0x0020000000009001,ConnectX-6,,spare")
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
		{"nobody", func(*topospec.Revision) {}, nil, "somebody other than its author"},
		{"the author alone", func(*topospec.Revision) {}, []history.Person{"ada"}, "somebody other than its author"},
		{"one other", func(*topospec.Revision) {}, []history.Person{"bob"}, ""},
		{"a spare put to use", func(r *topospec.Revision) {
			topospectest.Device(t, r, "spare-1").Stock = topospec.InUse
			linkOf(r, "host-0001 mlx5_1").B.GUID = topospectest.Device(t, r, "spare-1").GUID
		}, []history.Person{"bob"}, ""},
		{"a new device, one other", func(r *topospec.Revision) {
			r.Devices = append(r.Devices, topospec.Device{GUID: 0x0020000000009901, Kind: topospec.KindHCA})
			linkOf(r, "host-0001 mlx5_1").B.GUID = 0x0020000000009901
		}, []history.Person{"bob", "ada"}, "it touches [new_device]: two persons"},
		{"a new device, two others", func(r *topospec.Revision) {
			r.Devices = append(r.Devices, topospec.Device{GUID: 0x0020000000009901, Kind: topospec.KindHCA})
			linkOf(r, "host-0001 mlx5_1").B.GUID = 0x0020000000009901
		}, []history.Person{"bob", "eve"}, ""},
		{"the Subnet Manager's link", func(r *topospec.Revision) { linkOf(r, "sm-1").State = topospec.Maintenance }, []history.Person{"bob"}, "it touches [service_link]"},
		{"the Subnet Manager's link away", func(r *topospec.Revision) {
			l := linkOf(r, "sm-1")
			l.B, l.State, l.Class = topospec.End{}, topospec.Reserved, topospec.ClassAny
		}, []history.Person{"bob"}, "it touches [service_link]"},
		{"the rule itself", func(r *topospec.Revision) { r.Policy.Two = nil }, []history.Person{"bob"}, "it touches [policy]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &history.History{}
			first := draft(t, h, base)
			approve(t, h, first, "bob", "eve")
			activate(t, h, first)
			next := base.Clone()
			tt.change(next)
			s := draft(t, h, next)
			approve(t, h, s, tt.by...)
			_, err := h.Activate(2, fine(), at)
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
	if _, err := h.Activate(1, nil, at); !errors.Is(err, history.ErrRefused) {
		t.Errorf("not simulated: %v", err)
	}
	refused := &simulate.Report{Refused: []simulate.Refusal{{Guard: simulate.GuardScore, Text: "too few", Do: "look"}}}
	if _, err := h.Activate(1, refused, at); err == nil || !strings.Contains(err.Error(), "too few; look") {
		t.Errorf("a guard refuses: %v", err)
	}
	if err := h.Reject(1, "bob", "wrong rack"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Activate(1, fine(), at); !errors.Is(err, history.ErrRefused) {
		t.Errorf("rejected: %v", err)
	}
}
