package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/credential"
	v1 "portcullis/api/v1"
)

// namesFixture serves a site of the tenants acme, theirs and old. It returns tokens by the name of their credential: those of acme
// and theirs are of these tenants alone, both is of the two, and olga an operator.
func namesFixture(t *testing.T) (*fixture, map[string]string) {
	t.Helper()
	f, _ := newTenantFixture(t)
	tokens, file := map[string]string{}, "tokens:\n"
	for name, is := range map[string]string{
		"acme": "role: tenant, tenants: [acme]", theirs: "role: tenant, tenants: [theirs]", "both": "role: tenant, tenants: [acme, theirs]", "olga": "role: operator",
	} {
		token, digest := credential.New()
		tokens[name] = token
		file += fmt.Sprintf("- {name: %s, sha256: %s, %s}\n", name, digest, is)
	}
	known, err := credential.Parse("tokens.yaml", []byte(file))
	fatal(t, err)
	f.server.SetTokens(known)
	f.operator = tokens["olga"]
	for _, tenant := range []string{"acme", theirs} {
		f.want(t, f.change("PUT", "/v1/tenants/"+tenant+"/quota", "", `{"clusters":9,"p_keys":9}`), 200)
	}
	return f, tokens
}

// TestTwoTenantsHaveTrain: each has a cluster of the name, reaches its own by the short name, and does not learn of the other one. An
// operator sees both.
func TestTwoTenantsHaveTrain(t *testing.T) {
	t.Parallel()
	f, tokens := namesFixture(t)
	for _, who := range []string{"acme", theirs} {
		w := f.do("POST", "/v1/clusters", tokens[who], `{"name":"infer"}`)
		f.want(t, w, 201)
		var c v1.Cluster
		fatal(t, json.Unmarshal(w.Body.Bytes(), &c))
		if c.Name != who+".infer" || c.Tenant != who {
			t.Errorf("%s created %+v", who, c)
		}
		for _, path := range []string{"/v1/clusters/infer", "/v1/clusters/" + who + ".infer", "/v1/clusters/infer/labels", "/v1/hosts?cluster=infer"} {
			w := f.do("GET", path, tokens[who], "")
			f.want(t, w, 200)
			if strings.Contains(path, "/v1/clusters/") && !strings.Contains(path, "labels") && !strings.Contains(w.Body.String(), `"name":"`+who+`.infer"`) {
				t.Errorf("%s: %s", path, w.Body)
			}
		}
	}
	names := func(token string) (out []string) {
		w := f.do("GET", "/v1/clusters", token, "")
		f.want(t, w, 200)
		var l v1.List[v1.Cluster]
		fatal(t, json.Unmarshal(w.Body.Bytes(), &l))
		for _, c := range l.Items {
			out = append(out, c.Name)
		}
		return out
	}
	for who, want := range map[string][]string{
		"acme": {"acme.infer", "disks", "train"}, theirs: {"theirs", "theirs.infer"},
		"both": {"acme.infer", "disks", "theirs", "theirs.infer", "train"}, "olga": {"acme.infer", "disks", "theirs", "theirs.infer", "train"},
	} {
		if d := cmp.Diff(want, names(tokens[who])); d != "" {
			t.Errorf("%s lists (-want +got):\n%s", who, d)
		}
	}
	wantProblem(t, f.do("GET", "/v1/clusters/infer", tokens["both"], ""), 404, "cluster_unknown")
	wantProblem(t, f.do("GET", "/v1/clusters/infer", tokens["olga"], ""), 404, "cluster_unknown")
	f.want(t, f.do("GET", "/v1/clusters/theirs.infer", tokens["both"], ""), 200)
	p := wantProblem(t, f.do("POST", "/v1/clusters", tokens["both"], `{"name":"new","tenant":"acme"}`), 422, "cluster_name_short")
	if p.Hint != "name it acme.new" {
		t.Errorf("the cure is %q", p.Hint)
	}

	f.operator = tokens["acme"]
	f.want(t, f.change("PUT", "/v1/tenants/acme/quota", "*", `{}`), 403)
	wantProblem(t, f.change("DELETE", "/v1/clusters/infer", "", ""), 428, v1.CodeVersionMissing)
	wantProblem(t, f.change("DELETE", "/v1/clusters/infer", `"x"`, ""), 412, v1.CodeChanged)
	f.want(t, f.change("DELETE", "/v1/clusters/infer", "*", ""), 204)
	wantProblem(t, f.change("DELETE", "/v1/clusters/train", "*", ""), 403, "operators_only")
	wantProblem(t, f.change("PUT", "/v1/clusters/train/uses/disks", "*", ""), 403, v1.CodeForbidden)
	f.want(t, f.do("GET", "/v1/clusters/infer", tokens[theirs], ""), 200)

	// An operator assigns hosts to a tenant's own names as to others.
	f.operator = tokens["olga"]
	f.want(t, f.change("PUT", "/v1/clusters/theirs.infer/uses/disks", "*", ""), 200)
}

// TestAnothersNameIsNone has a credential of a tenant ask with names that another tenant has, and with such that none has. The answers
// are the same to the byte, and so is what the store was asked for them.
func TestAnothersNameIsNone(t *testing.T) {
	t.Parallel()
	f, tokens := namesFixture(t)
	// "theirs.mine" is there, and so is the common "theirs"; no cluster begins with the other name.
	f.want(t, f.do("POST", "/v1/clusters", tokens[theirs], `{"name":"mine"}`), 201)
	requests := 0
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/v1/clusters/NAME.mine", ""},
		{"GET", "/v1/clusters/NAME", ""},
		{"GET", "/v1/clusters/NAME.mine/labels", ""},
		{"GET", "/v1/hosts?cluster=NAME.mine", ""},
		{"GET", "/v1/hosts?tenant=acme&cluster=NAME.mine", ""},
		{"DELETE", "/v1/clusters/NAME.mine", ""},
		{"DELETE", "/v1/clusters/NAME", ""},
		{"POST", "/v1/clusters", `{"name":"NAME.mine"}`},
		{"POST", "/v1/clusters", `{"name":"NAME.mine","tenant":"acme"}`},
		{"POST", "/v1/clusters", `{"name":"NAME.mine","tenant":"NAME"}`},
		{"POST", "/v1/clusters", `{"name":"NAME-x","tenant":"NAME"}`},
		{"POST", "/v1/plan", `{"clusters":[{"name":"NAME.mine","tenant":"NAME"}]}`},
		{"POST", "/v1/plan", `{"clusters":[{"name":"NAME","tenant":"acme","uses":["NAME.mine"]}]}`},
		{"POST", "/v1/plan", `{"assignments":[{"cluster":"NAME.mine","hosts":["NAME"]}]}`},
		{"POST", "/v1/plan", `{"assignments":[{"cluster":"NAME","hosts":["host-1"]}]}`},
	} {
		for _, header := range []http.Header{{}, {"If-Match": {"*"}}, {"If-Match": {"*"}, "Idempotency-Key": {"k-" + fmt.Sprint(requests)}}} {
			requests++
			one := f.about(tokens["acme"], theirs, r.method, r.path, r.body, header)
			none := f.about(tokens["acme"], nobodys, r.method, r.path, r.body, header)
			if d := cmp.Diff(none, one); d != "" {
				t.Errorf("%s %s %s %v tells another's name (+) from none (-):\n%s", r.method, r.path, r.body, header, d)
			}
			if r.path != "/v1/plan" && one.Status < 400 {
				t.Errorf("%s %s %s %v: status %d", r.method, r.path, r.body, header, one.Status)
			}
		}
	}
}

// TestAnothersNameIsFree: a bare name that is another's is made just as one that none has, with the same work.
func TestAnothersNameIsFree(t *testing.T) {
	t.Parallel()
	work := map[string][]string{}
	for _, name := range []string{theirs, nobodys} {
		f, tokens := namesFixture(t)
		got := f.about(tokens["acme"], name, "POST", "/v1/clusters", `{"name":"NAME"}`, http.Header{})
		if got.Status != 201 || !strings.Contains(got.Body, `"name":"acme.NAME"`) {
			t.Errorf("%s: %+v", name, got)
		}
		work[name] = got.Work
	}
	if d := cmp.Diff(work[nobodys], work[theirs]); d != "" || len(work[theirs]) == 0 {
		t.Errorf("the work tells another's name (+) from none (-):\n%s", d)
	}
}
