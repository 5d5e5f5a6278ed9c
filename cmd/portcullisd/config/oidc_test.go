package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/ca"
	"portcullis/api/oidc"
)

const issuerOfTests = "{name: corp, issuer: https://idp.test, audience: portcullis, rules: [{claim: groups, value: staff, role: viewer}]}"

func withLogin(login string) string {
	return strings.Replace(issuerOfTests, "{", "{login: "+login+", ", 1)
}

// TestIssuersOfTokens: each mistake is reported with its key and line.
func TestIssuersOfTokens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{issuerOfTests, ""},
		{"{}", "oidc.0.name: "},
		{strings.Replace(issuerOfTests, "corp", "'Corp:'", 1), "oidc.0.name: "},
		{strings.Replace(issuerOfTests, "https", "http", 1), "oidc.0.issuer: "},
		{strings.Replace(issuerOfTests, "audience: portcullis, ", "", 1), "oidc.0.audience: "},
		{strings.Replace(issuerOfTests, "viewer", "king", 1), `oidc.0.rules.0.role: "king": want viewer, `},
		{strings.Replace(issuerOfTests, ", role: viewer", "", 1), "oidc.0.rules.0.role: is missing: want viewer, "},
		{strings.Replace(issuerOfTests, "viewer", "tenant, tenants: [acme]", 1), ""},
		{strings.Replace(issuerOfTests, "viewer", "tenant, tenants_claim: org", 1), ""},
		{strings.Replace(issuerOfTests, "viewer", "tenant", 1), "oidc.0.rules.0.tenants: the role tenant needs"},
		{strings.Replace(issuerOfTests, "viewer", "tenant, tenants: [acme], tenants_claim: org", 1), "oidc.0.rules.0.tenants: the role tenant needs either"},
		{strings.Replace(issuerOfTests, "viewer", "tenant, tenants: ['*']", 1), `oidc.0.rules.0.tenants: "*" is no name`},
		{strings.Replace(issuerOfTests, "viewer", "viewer, tenants: [acme]", 1), "oidc.0.rules.0.tenants: is for the role tenant alone"},
		{strings.Replace(issuerOfTests, "viewer", "viewer, tenants_claim: org", 1), "oidc.0.rules.0.tenants_claim: is for the role tenant alone"},
		{strings.Replace(issuerOfTests, "claim: groups, ", "", 1), "oidc.0.rules.0.claim: "},
		{strings.Replace(issuerOfTests, "audience", "audiense", 1), "unknown key audiense"},
		{withLogin("{client_id: cli}"), ""},
		{withLogin("{client_id: cli, scopes: [openid, groups], token: id}"), ""},
		{withLogin("{client_id: cli, scopes: [api], token: access}"), ""},
		{withLogin("{}"), "oidc.0.login.client_id: is missing: register a public client"},
		{withLogin("{scopes: [openid]}"), "oidc.0.login.client_id: is missing: register a public client"},
		{withLogin("{client_id: 'a b'}"), `oidc.0.login.client_id: "a b": want 1 to 256 printable`},
		{withLogin("{client_id: " + strings.Repeat("x", 257) + "}"), "want 1 to 256 printable"},
		{withLogin("{client_id: cli, client_secret: s}"), "unknown key client_secret"},
		{withLogin("{client_id: cli, scopes: [openid, 'a b']}"), `oidc.0.login.scopes.1: "a b": want 1 to 128`},
		{withLogin("{client_id: cli, scopes: [openid, '']}"), `oidc.0.login.scopes.1: "": want 1 to 128`},
		{withLogin("{client_id: cli, scopes: [openid, openid]}"), "oidc.0.login.scopes.1: openid is there twice"},
		{withLogin("{client_id: cli, scopes: [" + strings.Repeat("s, ", 33) + "]}"), "oidc.0.login.scopes: 33 of them: want at most 32"},
		{withLogin("{client_id: cli, token: refresh}"), `oidc.0.login.token: "refresh": want access or id`},
		{withLogin("{client_id: cli, token: id, scopes: [groups]}"), "oidc.0.login.scopes: openid is not among them"},
		{withLogin("{client_id: portcullis, scopes: [groups]}"), "oidc.0.login.scopes: openid is not among them"},
		{issuerOfTests + "," + strings.Replace(issuerOfTests, "idp", "idp2", 1), "oidc.1.name: corp is named twice"},
		{issuerOfTests + "," + strings.Replace(issuerOfTests, "corp", "corp2", 1), "oidc.1.issuer: https://idp.test is there twice"},
		{strings.Repeat(issuerOfTests+",", 9), "oidc: 9 of them"},
	} {
		_, err := Parse("c.yaml", []byte("oidc: ["+tt.in+"]\n"))
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "c.yaml:1: ")) {
			t.Errorf("%s: error %v, want %q", tt.in, err, tt.want)
		}
	}
}

// authority returns certificate and key of the authority of a provider.
func authority(t *testing.T) ca.Pair {
	t.Helper()
	root, err := ca.New("idp", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := root.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestIssuerFiles: the CA file is read by --check, too, and no token has a name of people at identity providers.
func TestIssuerFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pair := authority(t)
	for name, data := range map[string]string{
		"ca.pem": string(pair.Cert), "empty.pem": "\n",
		"tokens.yaml": "tokens:\n- {name: 'oidc:corp:olga', role: viewer, sha256: " + strings.Repeat("ab", 32) + "}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{"ca.pem": "", "": "", "empty.pem": "oidc.0.ca_file: ", "none.pem": "oidc.0.ca_file: "} {
		c, err := Parse(filepath.Join(dir, "c.yaml"), []byte("oidc: ["+strings.Replace(issuerOfTests, "{", "{ca_file: '"+file+"', ", 1)+"]\n"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := loadIssuers(c, time.Now())
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want %q", file, err, want)
		case want == "" && (err != nil || len(got) != 1 || (got[0].TLS.RootCAs != nil) != (file != "")):
			t.Errorf("%q: %+v, error %v", file, got, err)
		}
		if _, err := LoadTokens(c); err == nil || !strings.Contains(err.Error(), `token "oidc:corp:olga"`) {
			t.Errorf("tokens: %v", err)
		}
	}
}

// TestPublishedAuthority: of the file of a provider's authorities, people who sign in are sent the certificates and nothing else, and
// only where there is something to sign in with.
func TestPublishedAuthority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pair := authority(t)
	for name, data := range map[string]string{"both.pem": "a note\n" + string(pair.Key) + string(pair.Cert), "large.pem": string(pair.Cert) + strings.Repeat("#", 16<<10)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(issuer string) ([]oidc.Issuer, error) {
		c, err := Parse(filepath.Join(dir, "c.yaml"), []byte("oidc: ["+issuer+"]\n"))
		if err != nil {
			t.Fatal(err)
		}
		return loadIssuers(c, time.Now())
	}
	file := func(name, issuer string) string { return strings.Replace(issuer, "{", "{ca_file: "+name+", ", 1) }
	got, err := load(file("both.pem", withLogin("{client_id: cli}")))
	if err != nil || len(got) != 1 || string(got[0].CA) != string(pair.Cert) {
		t.Errorf("published: %+v, %v; want the certificate alone", got, err)
	}
	if got, err = load(file("both.pem", issuerOfTests)); err != nil || len(got) != 1 || got[0].CA != nil {
		t.Errorf("without login: %+v, %v; want nothing published", got, err)
	}
	if _, err = load(file("large.pem", withLogin("{client_id: cli}"))); err == nil || !strings.Contains(err.Error(), "oidc.0.ca_file: ") || !strings.Contains(err.Error(), "people who sign in are sent it") {
		t.Errorf("a large file: %v", err)
	}
}

// TestWrongRoleIsOneMistake: a role that does not exist is reported once, whatever else the rule has.
func TestWrongRoleIsOneMistake(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"king", "''", "king, tenants: [acme]", "king, tenants_claim: org"} {
		_, err := Parse("c.yaml", []byte("oidc: ["+strings.Replace(issuerOfTests, "viewer", role, 1)+"]\n"))
		if err == nil || strings.Count(err.Error(), "oidc.0.") != 1 || strings.Count(err.Error(), "c.yaml:") != 1 {
			t.Errorf("%s: want one mistake: %v", role, err)
		}
	}
}
