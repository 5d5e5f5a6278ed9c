package api_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// keeper records the calls that it receives.
type keeper struct {
	said []string
	fail error
}

func (k *keeper) say(format string, args ...any) error {
	k.said = append(k.said, fmt.Sprintf(format, args...))
	return k.fail
}

func (k *keeper) Status(context.Context) (*v1.Topospec, error) {
	return &v1.Topospec{Source: v1.TopospecNone, Version: "7"}, k.fail
}

func (k *keeper) Revisions(_ context.Context, q v1.TopospecQuery) (*v1.TopospecRevisions, error) {
	return &v1.TopospecRevisions{Items: []v1.TopospecRevision{}}, k.say("list %s %d %d", q.Status, q.Before, q.Limit)
}

func (k *keeper) Revision(_ context.Context, number uint64) (*v1.TopospecRevision, error) {
	return &v1.TopospecRevision{Revision: number, Digest: "sha256:00", Version: "9", Approvals: []v1.TopospecApproval{}}, k.fail
}

func (k *keeper) Content(_ context.Context, number uint64, form string) (string, error) {
	return "0x1,1\n", k.say("content %d %s", number, form)
}

func (k *keeper) Draft(_ context.Context, actor string, in v1.NewTopospec) (*v1.TopospecRevision, error) {
	return &v1.TopospecRevision{Revision: 1, Version: "3", Approvals: []v1.TopospecApproval{}}, k.say("%s draft %s %q %s", actor, in.Name, in.Content, in.Reason)
}

func (k *keeper) Validate(_ context.Context, actor string, number uint64) (*v1.TopospecCheck, error) {
	return &v1.TopospecCheck{}, k.say("%s validate %d", actor, number)
}

func (k *keeper) Simulate(_ context.Context, actor string, number uint64, in v1.TopospecSimulate) (*v1.TopospecSimulation, error) {
	return &v1.TopospecSimulation{}, k.say("%s simulate %d %s", actor, number, in.Mode)
}

func (k *keeper) Approve(_ context.Context, actor string, number uint64, match string, in v1.TopospecApprove) (*v1.TopospecRevision, error) {
	return &v1.TopospecRevision{Version: "4"}, k.say("%s approve %d %s %s", actor, number, match, in.Digest)
}

func (k *keeper) Reject(_ context.Context, actor string, number uint64, match string, in v1.TopospecReject) (*v1.TopospecRevision, error) {
	return &v1.TopospecRevision{Version: "5"}, k.say("%s reject %d %s %s", actor, number, match, in.Reason)
}

func (k *keeper) Activate(_ context.Context, actor string, number uint64, match string, in v1.TopospecActivate) (*v1.Topospec, error) {
	return &v1.Topospec{Version: "6"}, k.say("%s activate %d %s %s %s", actor, number, match, in.Mode, in.Reason)
}

func (k *keeper) Rollback(_ context.Context, actor, match string, in v1.TopospecRollback) (*v1.Topospec, error) {
	return &v1.Topospec{Version: "8"}, k.say("%s rollback %s %d %s", actor, match, in.Revision, in.Reason)
}

// topospecSteps are the requests that change something, or are put into the audit log.
var topospecSteps = []struct{ path, body string }{
	{"/v1/topospec/revisions", `{"name":"a.yaml","content":"x","reason":"why"}`},
	{"/v1/topospec/revisions/2/validate", ``},
	{"/v1/topospec/revisions/2/simulate", `{"mode":"warn"}`},
	{"/v1/topospec/revisions/2/approve", `{"digest":"0123456789ab"}`},
	{"/v1/topospec/revisions/2/reject", `{"reason":"no"}`},
	{"/v1/topospec/revisions/2/activate", `{"mode":"enforce","reason":"go"}`},
	{"/v1/topospec/rollback", `{"revision":1,"reason":"back"}`},
}

// TestTopospecIsForOperators: steps take the role operator and carry the name of the caller and the version that it saw;
// answers carry the present version.
func TestTopospecIsForOperators(t *testing.T) {
	k := &keeper{}
	f := newFixture(t, func(o *api.Options) { o.Topospec = k })
	var tags []string
	for _, r := range topospecSteps {
		wantProblem(t, f.do("POST", r.path, "", r.body), 401, v1.CodeUnauthenticated)
		wantProblem(t, f.do("POST", r.path, f.viewer, r.body), 403, v1.CodeForbidden)
		q := httptest.NewRequest("POST", r.path, strings.NewReader(r.body))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+f.operator)
		if strings.HasSuffix(r.path, "/approve") || strings.HasSuffix(r.path, "/reject") || strings.HasSuffix(r.path, "/activate") || strings.HasSuffix(r.path, "/rollback") {
			q.Header.Set("If-Match", `"41"`) // the others compare no version, and refuse one
		}
		w := f.send(q)
		if w.Code != 200 && w.Code != 201 {
			t.Errorf("POST %s: %d %s", r.path, w.Code, w.Body)
		}
		tags = append(tags, w.Header().Get("ETag"))
	}
	if d := cmp.Diff(k.said, []string{
		`olga draft a.yaml "x" why`, "olga validate 2", "olga simulate 2 warn", `olga approve 2 "41" 0123456789ab`, `olga reject 2 "41" no`,
		`olga activate 2 "41" enforce go`, `olga rollback "41" 1 back`,
	}); d != "" {
		t.Errorf("said (-got +want):\n%s", d)
	}
	if d := cmp.Diff(tags, []string{`"3"`, "", "", `"4"`, `"5"`, `"6"`, `"8"`}); d != "" {
		t.Errorf("ETag (-got +want):\n%s", d)
	}
}

// TestTopospecIsForViewers: a viewer may see what is in force and all revisions.
func TestTopospecIsForViewers(t *testing.T) {
	k := &keeper{}
	f := newFixture(t, func(o *api.Options) { o.Topospec = k })
	for path, want := range map[string]string{
		"/v1/topospec": `"version":"7"`, "/v1/topospec/revisions?status=draft&before=9&limit=5": `"items":[]`,
		"/v1/topospec/revisions/3": `"revision":3`, "/v1/topospec/revisions/3/content?form=topoconfig": "0x1,1\n",
	} {
		wantProblem(t, f.do("GET", path, "", ""), 401, v1.CodeUnauthenticated)
		if w := f.do("GET", path, f.viewer, ""); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
	w := f.do("GET", "/v1/topospec/revisions/3/content", f.viewer, "")
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
		t.Errorf("Content-Type %q", got)
	}
	for path, status := range map[string]int{"/v1/topospec/revisions/0": 422, "/v1/topospec/revisions/x": 422, "/v1/topospec/revisions?limit=5000": 422} {
		if w := f.do("GET", path, f.viewer, ""); w.Code != status {
			t.Errorf("GET %s: %d, want %d", path, w.Code, status)
		}
	}
}

// TestTopospecProblems: refusals name what is wrong, each line of a file by itself.
func TestTopospecProblems(t *testing.T) {
	k := &keeper{fail: &refusal.Error{Code: v1.CodeChanged, Status: refusal.Changed, Detail: "it was changed", Hint: "look again"}}
	f := newFixture(t, func(o *api.Options) { o.Topospec = k })
	wantProblem(t, f.do("POST", "/v1/topospec/rollback", f.operator, `{"reason":"x"}`), 412, v1.CodeChanged)
	k.fail = &refusal.Error{Code: "topospec_invalid", Status: refusal.Invalid, Detail: "2 problems", Hint: "correct it", Problems: []string{"a.yaml:3: port: used twice", "a.yaml:9: x"}}
	w := f.do("POST", "/v1/topospec/revisions", f.operator, topospecSteps[0].body)
	wantProblem(t, w, 422, "topospec_invalid")
	if !strings.Contains(w.Body.String(), "a.yaml:3: port: used twice") {
		t.Errorf("%s", w.Body)
	}
	wantProblem(t, f.do("POST", "/v1/topospec/revisions", f.operator, `{"name":"a","content":"x"}`), 422, v1.CodeInvalid)
	wantProblem(t, f.do("POST", "/v1/topospec/revisions/2/activate", f.operator, `{"mode":"always","reason":"x"}`), 422, v1.CodeInvalid)
	without := newFixture(t)
	wantProblem(t, without.do("GET", "/v1/topospec", without.viewer, ""), 503, v1.CodeUnavailable)
}
