package api_test

import (
	"fmt"
	"strings"
	"testing"

	"portcullis/api/credential"
	"portcullis/api/roles"
	v1 "portcullis/api/v1"
)

// tokensOfRoles has the service know a credential of each role, and returns their tokens. That of a tenant is of acme.
func (f *fixture) tokensOfRoles(t *testing.T) map[roles.Role]string {
	t.Helper()
	tokens, file := map[roles.Role]string{}, "tokens:\n"
	for _, r := range roles.All() {
		token, digest := credential.New()
		tokens[r] = token
		scope := ""
		if r == roles.Tenant {
			scope = ", tenants: [acme]"
		}
		file += fmt.Sprintf("- {name: of-%s, role: %s, sha256: %s%s}\n", r, r, digest, scope)
	}
	known, err := credential.Parse("tokens.yaml", []byte(file))
	fatal(t, err)
	f.server.SetTokens(known)
	return tokens
}

// TestRolesHoldOnEveryRoute has a credential of each role ask every operation: the table says which ones it is refused, and
// the refusal names the roles that may.
func TestRolesHoldOnEveryRoute(t *testing.T) {
	t.Parallel()
	f := newFixture(t, unlimited)
	tokens := f.tokensOfRoles(t)
	refused := map[roles.Role]int{}
	for _, d := range operations(t, f) {
		if !d.asks() {
			continue
		}
		for r, token := range tokens {
			w := f.do(d.method, d.path, token, "")
			if roles.Allows(r, d.ID) {
				if w.Code == 401 || w.Code == 403 {
					t.Errorf("%s: role %s is refused: %d", d.ID, r, w.Code)
				}
				continue
			}
			refused[r]++
			p := wantProblem(t, w, 403, v1.CodeForbidden)
			if want := "role " + roles.OneOf(roles.Of(d.ID)); !strings.HasSuffix(p.Hint, want) {
				t.Errorf("%s: role %s: hint %q does not name the %s", d.ID, r, p.Hint, want)
			}
		}
	}
	for _, r := range roles.All() {
		if (refused[r] == 0) != (r == roles.Operator) {
			t.Errorf("role %s is refused %d operations", r, refused[r])
		}
	}
	for _, path := range []string{"/metrics", "/metrics/fabric"} {
		for r, token := range tokens {
			if w := f.do("GET", path, token, ""); (w.Code == 401 || w.Code == 403) == roles.Allows(r, roles.Metrics) {
				t.Errorf("%s: role %s: status %d", path, r, w.Code)
			}
		}
	}
	if got := f.site.Actors(); got != nil {
		t.Errorf("something was changed: %v", got)
	}
}
