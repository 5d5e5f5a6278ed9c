package topology_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/topospec/topospectest"
)

var shared storetest.Shared

func TestMain(m *testing.M) { os.Exit(storetest.Run(m, &shared)) }

var began = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// site is a service over a fabric that a test shows to it.
type site struct {
	t     *testing.T
	store *store.Store
	keep  *topology.Service
	rev   *topospec.Revision // that the fabric is as

	mu     sync.Mutex
	now    time.Time
	fabric *topo.Fabric
	sm     topo.PortID
	placed *declared.TopologyView
	blind  error
	file   bool
	opens  error // why no topology may be enforced
	asked  int   // how often that was asked
}

func newSite(t *testing.T, st *store.Store, rules topology.Rules) *site {
	t.Helper()
	s := &site{t: t, store: st, now: began, rev: topospectest.Revision(t, topospectest.Small(), "spare-1,0x0020000000009001,ConnectX-6,,spare")}
	s.fabric, s.sm = topospectest.Fabric(t, s.rev)
	s.keep = s.service(st, rules)
	return s
}

// service makes a service as after a start.
func (s *site) service(st *store.Store, rules topology.Rules) *topology.Service {
	return topology.New(topology.Options{
		Store: st, Log: slog.New(slog.DiscardHandler), Rules: rules, Owners: owners{}, Look: s.look,
		FromFile: func() (topospec.Mode, bool) { s.mu.Lock(); defer s.mu.Unlock(); return topospec.Enforce, s.file },
		Now:      func() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.now },
		Opens:    func(context.Context, *topospec.Spec) error { s.asked++; return s.opens },
	})
}

func (s *site) look() (*topology.Sight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blind != nil {
		return nil, s.blind
	}
	return &topology.Sight{At: s.now, Fabric: s.fabric, SM: s.sm, Complete: true, Placed: s.placed}, nil
}

// pass lets time pass.
func (s *site) pass(d time.Duration) { s.mu.Lock(); defer s.mu.Unlock(); s.now = s.now.Add(d) }

// owners assigns every node to one tenant.
type owners struct{}

func (owners) Owner(_ ib.Place, g ib.GUID) (host, tenant string) {
	return "host of " + g.String(), "acme"
}

func text(r *topospec.Revision) string { return string(native.AppendTo(nil, r, native.YAML)) }

// draft hands a revision in as ada.
func (s *site) draft(r *topospec.Revision) *v1.TopospecRevision {
	s.t.Helper()
	out, err := s.keep.Draft(s.t.Context(), "ada", v1.NewTopospec{Name: "rail-a.yaml", Content: text(r), Reason: "planned"})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *site) approve(r *v1.TopospecRevision, by string) {
	s.t.Helper()
	if _, err := s.keep.Approve(s.t.Context(), by, r.Revision, "", v1.TopospecApprove{Digest: r.Digest}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) activate(number uint64, mode string) *v1.Topospec {
	s.t.Helper()
	out, err := s.keep.Activate(s.t.Context(), "bob", number, "", v1.TopospecActivate{Mode: mode, Reason: "ticket 7"})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// inForce takes a revision all the way.
func (s *site) inForce(r *topospec.Revision, mode string) *v1.TopospecRevision {
	s.t.Helper()
	d := s.draft(r)
	s.approve(d, "bob")
	s.activate(d.Revision, mode)
	return d
}

// wants fails unless err is a refusal with a code that says some words.
func wants(t *testing.T, what string, err error, kind refusal.Kind, code, words string) {
	t.Helper()
	e, ok := errors.AsType[*refusal.Error](err)
	if !ok || e.Status != kind || e.Code != code || !strings.Contains(e.Error(), words) || e.Hint == "" {
		t.Errorf("%s: %v (%+v), want %v %s about %q with a hint", what, err, e, kind, code, words)
	}
}

// steps returns the audit log, an entry a line.
func (s *site) steps() (out []string) {
	s.t.Helper()
	if _, err := audit.Verify(s.t.Context(), s.store); err != nil {
		s.t.Fatal(err)
	}
	all, _, err := audit.Entries().List(s.t.Context(), s.store, "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range all {
		out = append(out, strings.TrimSpace(e.Value.Actor+" "+e.Value.Action+" "+e.Value.Object+" "+e.Value.Code))
	}
	return out
}

// TestLife takes revisions from draft to rollback, as two people do.
func TestLife(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{})
	ctx := t.Context()
	first := s.draft(s.rev)
	if first.Revision != 1 || first.Status != "draft" || first.Author != "ada" || first.Needed != 1 || first.Reason != "planned" {
		t.Errorf("draft: %+v", first)
	}
	check, err := s.keep.Validate(ctx, "bob", 1)
	if err != nil || check.Digest != first.Digest || len(check.Refused) != 0 {
		t.Fatalf("%+v, %v", check, err)
	}
	sim, err := s.keep.Simulate(ctx, "bob", 1, v1.TopospecSimulate{})
	if err != nil || sim.Verified != sim.Expected || sim.Expected != first.Expected || len(sim.Refused) != 0 || sim.Mode != "observe" {
		t.Fatalf("%+v, %v", sim, err)
	}
	_, err = s.keep.Activate(ctx, "bob", 1, "", v1.TopospecActivate{Reason: "x"})
	wants(t, "not approved", err, refusal.Conflict, "topospec_refused", "a person other than its author must approve it, 0 did")
	_, err = s.keep.Approve(ctx, "ada", 1, "", v1.TopospecApprove{Digest: first.Digest})
	wants(t, "by its author", err, refusal.Conflict, "topospec_refused", "ada wrote it")
	_, err = s.keep.Approve(ctx, "bob", 1, "", v1.TopospecApprove{Digest: strings.Repeat("0", 12)})
	wants(t, "another content", err, refusal.Conflict, "topospec_refused", "what was looked at is 000000000000")
	_, err = s.keep.Approve(ctx, "bob", 1, "1", v1.TopospecApprove{Digest: first.Digest})
	wants(t, "an older version", err, refusal.Changed, v1.CodeChanged, "was changed since")
	now, err := s.keep.Revision(ctx, 1)
	if err != nil || now.Checked == nil || now.Simulated == nil || now.Simulated.By != "bob" {
		t.Fatalf("%+v, %v", now, err)
	}
	short := strings.TrimPrefix(first.Digest, "sha256:")[:12]
	if _, err := s.keep.Approve(ctx, "bob", 1, `"`+now.Version+`"`, v1.TopospecApprove{Digest: short, Reason: "walked along the cables"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.keep.Activate(ctx, "bob", 1, "", v1.TopospecActivate{Mode: "enforce", Reason: "x"})
	wants(t, "enforced at once", err, refusal.Conflict, "topospec_refused", "in force is observe")
	if st := s.activate(1, ""); st.Revision != 1 || st.Mode != "observe" || st.By != "bob" || st.Reason != "ticket 7" || st.Watch != nil || st.Source != v1.TopospecOfRevisions {
		t.Errorf("%+v", st)
	}
	if st := s.activate(1, "enforce"); st.Mode != "enforce" {
		t.Errorf("promoted: %+v", st)
	}

	next := s.rev.Clone()
	next.Links[len(next.Links)-1].Reason = "spare"
	second := s.draft(next)
	if second.Parent != first.Digest {
		t.Errorf("parent %s, want %s", second.Parent, first.Digest)
	}
	s.approve(second, "bob")
	if st := s.activate(2, ""); st.Revision != 2 || st.Mode != "enforce" {
		t.Errorf("%+v", st)
	}
	status, err := s.keep.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.keep.Rollback(ctx, "ada", "1", v1.TopospecRollback{Reason: "x"})
	wants(t, "an older version", err, refusal.Changed, v1.CodeChanged, "what is in force was changed")
	back, err := s.keep.Rollback(ctx, "ada", status.Version, v1.TopospecRollback{Reason: "hosts lost"})
	if err != nil || back.Revision != 1 || back.Mode != "enforce" || back.By != "ada" {
		t.Fatalf("%+v, %v", back, err)
	}
	_, err = s.keep.Rollback(ctx, "ada", "", v1.TopospecRollback{Reason: "x"})
	wants(t, "to nothing", err, refusal.Conflict, "topospec_refused", "nothing that is kept was in force before")
	if back, err = s.keep.Rollback(ctx, "ada", "", v1.TopospecRollback{Revision: 2, Mode: "warn", Reason: "it was the cable"}); err != nil || back.Revision != 2 || back.Mode != "warn" {
		t.Fatalf("%+v, %v", back, err)
	}
	third := s.draft(next)
	if _, err := s.keep.Reject(ctx, "bob", third.Revision, "", v1.TopospecReject{Reason: "nothing new"}); err != nil {
		t.Fatal(err)
	}
	all, err := s.keep.Revisions(ctx, v1.TopospecQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range all.Items {
		got = append(got, r.Status)
	}
	if d := cmp.Diff(got, []string{"rejected", "active", "rolled_back"}); d != "" {
		t.Errorf("revisions (-got +want):\n%s", d)
	}
	want := []string{
		"ada topospec.draft topospec/1", "bob topospec.validate topospec/1", "bob topospec.simulate topospec/1", "bob topospec.approve topospec/1",
		"bob topospec.activate topospec/1 observe", "bob topospec.activate topospec/1 enforce",
		"ada topospec.draft topospec/2", "bob topospec.approve topospec/2", "bob topospec.activate topospec/2 enforce",
		"ada topospec.rollback topospec/1 enforce", "ada topospec.rollback topospec/2 warn",
		"ada topospec.draft topospec/3", "bob topospec.reject topospec/3",
	}
	if d := cmp.Diff(s.steps(), want); d != "" {
		t.Errorf("audit (-got +want):\n%s", d)
	}
	entries, _, err := audit.Entries().List(ctx, s.store, "")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range entries {
		if e.Value.Action == "topospec.approve" {
			said = append(said, e.Value.Detail)
		}
	}
	if len(said) != 2 || !strings.HasSuffix(said[0], ": walked along the cables") || strings.Contains(said[1], ":") {
		t.Errorf("approvals in the audit log: %q, want what the first was given for", said)
	}
}

// TestDraftRefused: a file that cannot be law is refused with its lines, and nothing is kept.
func TestDraftRefused(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{})
	s.inForce(s.rev, "")
	whole := text(s.rev)
	foreign := s.rev.Clone()
	foreign.Fabric = "other"
	empty := s.rev.Clone()
	for i := range empty.Links {
		empty.Links[i] = topospec.Link{A: empty.Links[i].A, State: topospec.Reserved}
	}
	for _, tt := range []struct {
		name, file, content string
		kind                refusal.Kind
		code, words         string
	}{
		{"cut off", "rail-a.yaml", whole[:len(whole)*2/3], refusal.Invalid, "topospec_invalid", "rail-a.yaml:"},
		{"nothing", "rail-a.conf", "", refusal.Invalid, "topospec_invalid", "rail-a.conf"},
		{"misspelt", "rail-a.conf", "0x0010000100000001,1,0x0020000000000001,1,Any,Activ\n", refusal.Invalid, "topospec_invalid", "rail-a.conf:1:"},
		{"observed", "now.topo", "vendid=0x2c9\ndevid=0x1\n", refusal.Invalid, "topospec_invalid", "neither a native revision"},
		{"of another fabric", "rail-b.yaml", text(foreign), refusal.Conflict, "topospec_foreign", `describes fabric "other"`},
		{"no link", "rail-a.yaml", text(empty), refusal.Invalid, "topospec_empty", "no link of it is to be up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.keep.Draft(t.Context(), "ada", v1.NewTopospec{Name: tt.file, Content: tt.content, Reason: "x"})
			wants(t, tt.name, err, tt.kind, tt.code, tt.words)
		})
	}
	if _, err := s.keep.Draft(t.Context(), "ada", v1.NewTopospec{Name: "a.yaml", Content: whole, Reason: "  "}); !refusal.IsKind(err, refusal.Invalid) {
		t.Errorf("without a reason: %v", err)
	}
	all, err := s.keep.Revisions(t.Context(), v1.TopospecQuery{})
	if err != nil || len(all.Items) != 1 {
		t.Errorf("%d revisions are kept, %v", len(all.Items), err)
	}
}

// TestSimulateNamesTenants: of a wrong link the port, the host and the tenant are named.
func TestSimulateNamesTenants(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{})
	s.inForce(s.rev, "")
	next := s.rev.Clone()
	for i := range next.Links {
		if next.Links[i].Class == topospec.ClassHost {
			next.Links[i] = topospec.Link{A: next.Links[i].A, State: topospec.Reserved}
			break
		}
	}
	d := s.draft(next)
	out, err := s.keep.Simulate(t.Context(), "bob", d.Revision, v1.TopospecSimulate{})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Hits) != 1 || out.Hits[0].Tenant != "acme" || !strings.Contains(out.Hits[0].Where, "leaf-1") || out.Would {
		t.Errorf("%+v", out.Hits)
	}
	check, err := s.keep.Validate(t.Context(), "bob", d.Revision)
	if err != nil || check.Changed == 0 {
		t.Errorf("%+v, %v", check, err)
	}
}

// TestFourEyes: a step that needs a second approval needs it here, too, and the rule of two persons can be switched off.
func TestFourEyes(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{})
	s.rev.Policy.Two = []topospec.Touch{topospec.TouchPolicy}
	d := s.draft(s.rev)
	if d.Needed != 2 || len(d.Touches) != 1 {
		t.Errorf("%+v", d)
	}
	s.approve(d, "bob")
	_, err := s.keep.Activate(t.Context(), "bob", 1, "", v1.TopospecActivate{Reason: "x"})
	wants(t, "one", err, refusal.Conflict, "topospec_refused", "two persons other than its author must approve it, 1 did")
	s.approve(d, "eve")
	s.activate(1, "")

	alone := newSite(t, shared.Open(t), topology.Rules{Alone: true})
	d = alone.draft(alone.rev)
	alone.approve(d, "ada")
	alone.activate(1, "")
}

// TestBlind: without a look at the fabric nothing is simulated or activated, and a
// rollback is possible where nothing is switched off.
func TestBlind(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{})
	s.inForce(s.rev, "")
	next := s.rev.Clone()
	next.Links[0].Reason = "x"
	s.inForce(next, "")
	d := s.draft(next)
	s.approve(d, "bob")
	s.blind = &refusal.Error{Code: "fabric_unseen", Status: refusal.Unavailable, Detail: "nothing is seen", Hint: "wait"}
	_, err := s.keep.Simulate(t.Context(), "bob", d.Revision, v1.TopospecSimulate{})
	wants(t, "simulate", err, refusal.Unavailable, "fabric_unseen", "nothing is seen")
	_, err = s.keep.Activate(t.Context(), "bob", d.Revision, "", v1.TopospecActivate{Reason: "x"})
	wants(t, "activate", err, refusal.Unavailable, "fabric_unseen", "nothing is seen")
	if st, err := s.keep.Rollback(t.Context(), "bob", "", v1.TopospecRollback{Reason: "x"}); err != nil || st.Revision != 1 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestFileInForce: while the configuration names the topology, a revision that is
// activated waits, in the mode of the file.
func TestFileInForce(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{Watch: time.Minute})
	m, _ := s.run()
	d := s.draft(s.rev)
	s.approve(d, "bob")
	s.mu.Lock()
	s.file = true
	s.mu.Unlock()
	if st := s.activate(1, ""); st.Source != v1.TopospecOfFile || st.Applied || st.Mode != "enforce" || st.Watch != nil || !strings.Contains(st.Problem, "revision 1 is when that is taken out") {
		t.Errorf("%+v", st)
	}
	if got := m.taken(); len(got) > 0 {
		t.Errorf("given %v while the file is in force", got)
	}
	s.mu.Lock()
	s.file = false
	s.mu.Unlock()
	s.activate(1, "warn")
	s.eventually("the revision in force", func(st *v1.Topospec) bool {
		return st.Applied && st.Source == v1.TopospecOfRevisions && st.Mode == "warn"
	})
	if got := m.taken(); got[len(got)-1] != "1 warn" {
		t.Errorf("given %v", got)
	}
}

// TestContent: a revision comes back as it was handed in, and in other forms.
func TestContent(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{})
	d := s.draft(s.rev)
	for _, form := range []string{"", "json", "yaml"} {
		got, err := s.keep.Content(t.Context(), d.Revision, form)
		if err != nil {
			t.Fatal(err)
		}
		r, err := native.Parse("again", []byte(got))
		if err != nil || r.Digest().String() != d.Digest {
			t.Errorf("%q: %v", form, err)
		}
	}
	if got, err := s.keep.Content(t.Context(), d.Revision, "topoconfig"); err != nil || !strings.HasPrefix(got, "0x") {
		t.Errorf("topoconfig: %.60q, %v", got, err)
	}
	_, err := s.keep.Content(t.Context(), d.Revision, "xml")
	wants(t, "xml", err, refusal.Invalid, "form_unknown", `"xml"`)
	_, err = s.keep.Content(t.Context(), 9, "")
	wants(t, "unknown", err, refusal.NotFound, "revision_unknown", "revision 9")
}

// TestWanted fails closed: a record of the store that cannot be read is an error, never "nothing".
func TestWanted(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{})
	w, err := s.keep.Wanted(t.Context())
	if err != nil || w.Spec != nil {
		t.Errorf("nothing declared: %+v, %v", w, err)
	}
	d := s.inForce(s.rev, "")
	if w, err = s.keep.Wanted(t.Context()); err != nil || w.Spec.Digest().String() != d.Digest || w.By != "bob" {
		t.Errorf("%+v, %v", w, err)
	}
	damage := func(name, words string, f func(tx *store.Tx) error) {
		t.Run(name, func(t *testing.T) {
			broken := newSite(t, shared.Open(t), topology.Rules{})
			broken.inForce(broken.rev, "")
			if _, err := broken.store.Update(context.Background(), f); err != nil {
				t.Fatal(err)
			}
			w, err := broken.service(broken.store, topology.Rules{}).Wanted(context.Background())
			if err == nil || w.Spec != nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%+v, %v; want an error about %q", w, err, words)
			}
		})
	}
	const key = "0000000001"
	damage("content gone", "its content is not in the store", func(tx *store.Tx) error {
		topology.Contents().Delete(tx, key)
		return nil
	})
	damage("content cut", "revision 1 in the store", func(tx *store.Tx) error {
		return topology.Contents().Put(tx, key, topology.Content{Gzip: []byte{0x1f, 0x8b}})
	})
	damage("entry gone", "none of its revisions is", func(tx *store.Tx) error {
		topology.Entries().Delete(tx, key)
		return nil
	})
	damage("another mode", "and its revisions that it is 1", func(tx *store.Tx) error {
		return topology.Heads().Put(tx, "head", topology.Head{Revision: 1, Mode: topospec.Enforce})
	})
}
