package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/credential"
	"portcullis/api/profile"
	"portcullis/api/roles"
	v1 "portcullis/api/v1"
)

// profiler answers with the profile that was asked for.
type profiler struct{}

func (profiler) Profile(_ context.Context, p profile.Profile) (*v1.SecurityProfile, error) {
	return &v1.SecurityProfile{Name: p.String(), Rules: []v1.ProfileFinding{}}, nil
}

// Each role but tenant and scheduler may compare the installation with a profile, if it is not confined to ranges of P_Keys.
func TestProfile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, unlimited, func(o *api.Options) { o.Profiler = profiler{} })
	var file strings.Builder
	file.WriteString("tokens:\n")
	tokens := map[string]string{}
	add := func(name string, role roles.Role, more string) {
		token, digest := credential.New()
		tokens[name] = token
		fmt.Fprintf(&file, "- {name: %s, role: %s, sha256: %s%s}\n", name, role, digest, more)
	}
	for _, r := range roles.All() {
		more := ""
		if r == roles.Tenant {
			more = ", tenants: [acme]"
		}
		add("plain-"+string(r), r, more)
	}
	add("confined", roles.Operator, ", p_keys: [0x0100-0x01ff]")
	known, err := credential.Parse("t.yaml", []byte(file.String()))
	fatal(t, err)
	f.server.SetTokens(known)
	refused := map[string]bool{"plain-tenant": true, "plain-scheduler": true, "confined": true}
	for name, token := range tokens {
		w := f.do("GET", "/v1/profile", token, "")
		if refused[name] {
			wantProblem(t, w, 403, v1.CodeForbidden)
		} else if w.Code != 200 || !strings.Contains(w.Body.String(), `"name":"secured-bare-metal-cloud"`) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	viewer := tokens["plain-viewer"]
	if w := f.do("GET", "/v1/profile?name=general", viewer, ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"name":"general"`) {
		t.Errorf("general: %d %s", w.Code, w.Body)
	}
	wantProblem(t, f.do("GET", "/v1/profile?name=best", viewer, ""), 422, v1.CodeInvalid)
	elsewhere := newFixture(t)
	wantProblem(t, elsewhere.do("GET", "/v1/profile", elsewhere.viewer, ""), 503, v1.CodeSMElsewhere)
}
