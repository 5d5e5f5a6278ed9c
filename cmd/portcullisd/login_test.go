package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
)

// A caller without a credential is shown what the configuration has for people who sign in, and of its CA file the certificates.
func TestLogins(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	file := filepath.Join(dir, "portcullisd.yaml")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(dir, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(string(old), "oidc: []\n", `oidc:
- {name: quiet, issuer: "https://127.0.0.1:1/quiet", audience: portcullis, rules: [{claim: groups, value: staff, role: viewer}]}
- name: corp
  issuer: https://127.0.0.1:1/corp
  audience: portcullis
  ca_file: tls/ca.pem
  login: {client_id: portcullis-cli, scopes: [openid, api]}
  rules: [{claim: groups, value: staff, role: viewer}]
`, 1))
	start(t, dir)
	got, err := withToken(t, dir, address, "").Logins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &v1.Logins{Providers: []v1.LoginProvider{{
		Name: "corp", Issuer: "https://127.0.0.1:1/corp", ClientID: "portcullis-cli", Scopes: []string{"openid", "api"}, Audience: "portcullis", Token: "access", CA: string(authority),
	}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
