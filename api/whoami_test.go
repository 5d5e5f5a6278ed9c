package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api"
	"portcullis/api/credential"
	"portcullis/api/limit"
	"portcullis/api/roles"
	v1 "portcullis/api/v1"
)

// TestWhoAmI: each role is shown its own credential, with scope, end and limits, and without the token or its digest.
func TestWhoAmI(t *testing.T) {
	t.Parallel()
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	rate := v1.CallLimits{PerSecond: 5e8, Burst: 1e8}
	type caller struct{ token, digest string }
	var file strings.Builder
	callers, want := map[string]caller{}, map[string]v1.WhoAmI{}
	add := func(name string, role roles.Role, more string, scope v1.Scope, end *time.Time) {
		var c caller
		c.token, c.digest = credential.New()
		callers[name] = c
		want[name] = v1.WhoAmI{Name: name, Method: "token", Role: string(role), Scope: scope, Expires: end, Limits: rate}
		fmt.Fprintf(&file, "- {name: %s, role: %s, sha256: %s%s}\n", name, role, c.digest, more)
	}
	file.WriteString("tokens:\n")
	for _, r := range roles.All() {
		if r == roles.Tenant {
			add("of-acme", r, ", tenants: [acme]", v1.Scope{Tenants: []string{"acme"}}, nil)
			continue
		}
		add("plain-"+string(r), r, "", v1.Scope{}, nil)
	}
	add("slurm", roles.Scheduler, ", p_keys: [0x0100-0x01ff], hosts: ['gpu-*'], expires: "+ends.Format(time.RFC3339),
		v1.Scope{PKeys: []string{"0x0100-0x01ff"}, Hosts: []string{"gpu-*"}}, &ends)
	tokens, err := credential.Parse("t.yaml", []byte(file.String()))
	fatal(t, err)
	p := &people{known: map[string]credential.Principal{
		jwt("olga"): {Name: "oidc:corp:olga", Provider: "corp", Role: credential.Operator, Expires: ends},
	}}
	callers["oidc:corp:olga"] = caller{jwt("olga"), "c2ln"}
	want["oidc:corp:olga"] = v1.WhoAmI{Name: "oidc:corp:olga", Method: "oidc", Provider: "corp", Role: "operator", Expires: &ends, Limits: rate}
	f := newFixture(t, unlimited, func(o *api.Options) {
		o.Tokens, o.Verifier = tokens, p
		o.Limits.Tokens = limit.Rate{PerSecond: rate.PerSecond, Burst: rate.Burst}
	})
	for name, c := range callers {
		w := f.do("GET", "/v1/whoami", c.token, "")
		var got v1.WhoAmI
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		for operation, may := range map[string]bool{
			"fence-host":    got.Role == "operator",
			"assign-host":   got.Role == "operator" || got.Role == "scheduler", // that of slurm, too, within its P_Keys
			"create-tenant": got.Role == "operator" || got.Role == "scheduler",
			"release-host":  got.Role == "operator" || got.Role == "scheduler" || got.Role == "tenant",
			"get-host":      false, // it only reads
		} {
			if slices.Contains(got.Operations, operation) != may {
				t.Errorf("%s: %s is among its operations %v, want %v", name, operation, got.Operations, may)
			}
		}
		got.Operations = nil
		if diff := cmp.Diff(want[name], got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if strings.Contains(w.Body.String(), c.token) || strings.Contains(w.Body.String(), c.digest) {
			t.Errorf("%s: the answer has the token or its digest: %s", name, w.Body)
		}
	}
	wantProblem(t, f.do("GET", "/v1/whoami", "", ""), 401, v1.CodeUnauthenticated)
}
