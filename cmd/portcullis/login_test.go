package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/credential"
	"portcullis/api/oidc"
	"portcullis/cmd/portcullis/cli"
	"portcullis/packaging/testenv"
)

// person runs the command line for a reader of what it shows.
type person struct {
	t         *testing.T
	providers *testenv.Providers
	act       func(p *person, code string) // for each code that is shown
	stderr    bytes.Buffer
}

var shownCode = regexp.MustCompile(`enter the code (\S+)\n`)

// Write takes standard error, and acts on a code that is shown.
func (p *person) Write(b []byte) (int, error) {
	p.stderr.Write(b)
	if m := shownCode.FindSubmatch(b); m != nil {
		p.act(p, string(m[1]))
	}
	if from, to, ok := strings.Cut(string(b), "in a browser on this machine:\n"); ok && from != "" {
		p.visit(strings.TrimSpace(to))
	}
	return len(b), nil
}

// visit opens a page as a browser does.
func (p *person) visit(page string) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.providers.CA)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}}
	go func() {
		r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, page, nil)
		if err != nil {
			return
		}
		if resp, err := c.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}()
}

func approve(p *person, code string) { p.providers.Order("approve 0 %s", code) }

// portcullis runs a command that must end with an exit code, and returns its output and errors.
func (p *person) portcullis(exit int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	return p.within(p.t.Context(), exit, args...)
}

func (p *person) within(ctx context.Context, exit int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	var out bytes.Buffer
	p.stderr.Reset()
	if got := run(ctx, args, strings.NewReader(""), &out, p); got != exit {
		p.t.Fatalf("portcullis %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, exit, out.String(), p.stderr.String())
	}
	return out.String(), p.stderr.String()
}

func wantText(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s: %q lacks %q", what, text, w)
		}
	}
}

// signInSite is a service that accepts the tokens of a provider of another project, and a home without anything in it.
func signInSite(t *testing.T) (*person, *apitest.Server) {
	t.Helper()
	providers := testenv.StartProviders(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(providers.CA)
	issuers := []oidc.Issuer{{
		Name: "corp", URL: providers.URLs[0], Audience: "portcullis-cli", TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, CA: providers.CA,
		Rules: []oidc.Rule{{Claim: "sub", Value: "id1", Role: credential.Viewer}}, Login: &oidc.Login{ClientID: "portcullis-cli"},
	}}
	v, err := oidc.New(issuers, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { v.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	backend := apitest.NewBackend()
	fill(backend)
	s := apitest.Start(t, backend, func(o *api.Options) { o.Verifier, o.Logins = v, api.LoginsOf(issuers) })
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	for _, name := range []string{cli.EnvService, cli.EnvCA, cli.EnvTokenFile, "PORTCULLIS_CONTEXT", "PORTCULLIS_SOCKET", "DISPLAY", "WAYLAND_DISPLAY"} {
		t.Setenv(name, "")
	}
	p := &person{t: t, providers: providers, act: approve}
	p.portcullis(0, "context", "add", "prod", "--service", s.URL, "--ca", s.CAFile)
	p.portcullis(0, "context", "use", "prod")
	return p, s
}

func sessionFile(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "portcullis", "sessions", name+".json")
}

// TestSignInFromTheCommandLine: a person signs in at a provider of another project with a code, and all commands use the session: its
// token is renewed, ends at the provider, and is revoked.
func TestSignInFromTheCommandLine(t *testing.T) {
	p, s := signInSite(t)
	_, text := p.portcullis(1, "whoami")
	wantText(t, "without a session", text, "no operator token was sent", "hint: sign in with portcullis login --context prod, or name a file with a known token")

	out, text := p.portcullis(0, "login")
	wantText(t, "login", out, "signed in for context prod as oidc:corp:id1, role viewer; token until ", ", then renewed")
	wantText(t, "login", text, "Sign in at "+p.providers.URLs[0]+", for the client portcullis-cli. The service names both.\n", "Open "+p.providers.URLs[0]+"/device in a browser", "The code ends at")
	out, _ = p.portcullis(0, "whoami")
	wantText(t, "whoami", out, "oidc:corp:id1", "identity provider corp", "SESSION", "then renewed while the provider allows it; signed in at ")
	out, _ = p.portcullis(0, "whoami", "-o", "json")
	var who struct {
		Name    string `json:"name"`
		Session struct {
			Issuer  string `json:"issuer"`
			Renewed bool   `json:"renewed"`
		} `json:"session"`
	}
	if err := json.Unmarshal([]byte(out), &who); err != nil || who.Name != "oidc:corp:id1" || who.Session.Issuer != p.providers.URLs[0] || !who.Session.Renewed {
		t.Errorf("whoami: %s, %v", out, err)
	}
	p.portcullis(0, "host", "list")
	for name, mode := range map[string]os.FileMode{sessionFile(t, "prod"): 0o600, filepath.Dir(sessionFile(t, "prod")): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want mode %o", name, info, err, mode)
		}
	}

	// A token that lives for a second is renewed for each command, and each renewal gets another refresh token.
	p.providers.Order("life 0 1")
	p.portcullis(0, "login")
	first := readFile(t, sessionFile(t, "prod"))
	p.providers.Order("life 0 3600")
	backdate(t, "prod")
	p.portcullis(0, "host", "list")
	if second := readFile(t, sessionFile(t, "prod")); second == first || strings.Contains(second, refreshOf(t, first)) {
		t.Error("the session was not renewed")
	}

	// Commands at once, as of several processes, renew it once: the provider refuses a refresh token that was used.
	backdate(t, "prod")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			var out, text bytes.Buffer
			if got := run(t.Context(), []string{"host", "list"}, strings.NewReader(""), &out, &text); got != 0 {
				t.Errorf("one of several commands: exit code %d: %s", got, text.String())
			}
		})
	}
	group.Wait()

	// An explicit file of a token wins, wherever it is named.
	p.portcullis(0, "context", "add", "file", "--service", s.URL, "--ca", s.CAFile, "--token-file", s.ViewerFile)
	writeSession(t, "file", readFile(t, sessionFile(t, "prod")))
	out, _ = p.portcullis(0, "--context", "file", "whoami")
	wantText(t, "a context with token_file", out, "vic", "token of the tokens file")
	_, text = p.portcullis(2, "--context", "file", "login")
	wantText(t, "login beside token_file", text, "the token in "+s.ViewerFile+" comes before a session of context file")
	for name, args := range map[string][]string{"option": {"--token-file", s.OperatorFile, "whoami"}, "environment": {"whoami"}} {
		if name == "environment" {
			t.Setenv(cli.EnvTokenFile, s.OperatorFile)
		}
		out, _ := p.portcullis(0, args...)
		wantText(t, name, out, "olga", "token of the tokens file")
		if strings.Contains(out, "SESSION") {
			t.Errorf("%s: a session is shown: %s", name, out)
		}
	}
	_, text = p.portcullis(2, "login")
	wantText(t, "login beside a token file", text, "comes before a session of context prod", "hint: leave out --token-file")
	t.Setenv(cli.EnvTokenFile, "")
	_, text = p.portcullis(2, "context", "remove", "prod")
	wantText(t, "context remove", text, "the context prod has a session", "hint: portcullis logout --context prod")

	// The provider ends the session: the token is good until its end, and then the person is sent to login.
	p.providers.Order("forget 0")
	backdate(t, "prod")
	_, text = p.portcullis(1, "--context", "prod", "host", "list")
	wantText(t, "an ended session", text, "the session of context prod has ended", "invalid_grant", "hint: portcullis login --context prod")
	_, text = p.portcullis(1, "host", "list")
	wantText(t, "an ended session, again", text, "the session of context prod has ended: its token ended at", "hint: portcullis login --context prod")

	p.portcullis(0, "login")
	refresh := refreshOf(t, readFile(t, sessionFile(t, "prod")))
	out, _ = p.portcullis(0, "logout")
	wantText(t, "logout", out, "signed out of context prod, and revoked at the provider corp")
	if _, err := os.Stat(sessionFile(t, "prod")); !os.IsNotExist(err) {
		t.Errorf("the session is there after logout: %v", err)
	}
	out, _ = p.portcullis(0, "logout", "-o", "json")
	wantText(t, "logout again", out, `"signed_out": false`)
	_, text = p.portcullis(1, "host", "list")
	wantText(t, "after logout", text, "no operator token was sent")

	// The revoked refresh token is of no use, wherever it was copied to.
	writeSession(t, "prod", strings.Replace(first, refreshOf(t, first), refresh, 1))
	backdate(t, "prod")
	_, text = p.portcullis(1, "host", "list")
	wantText(t, "a revoked refresh token", text, "invalid_grant")
	p.portcullis(0, "logout")
	p.portcullis(0, "context", "remove", "prod")
}

// TestSignInByOtherWays: with a browser on this machine; for a service without a context; and what is refused.
func TestSignInByOtherWays(t *testing.T) {
	p, s := signInSite(t)
	out, text := p.portcullis(0, "login", "--browser")
	wantText(t, "login --browser", out, "signed in for context prod as oidc:corp:id1")
	wantText(t, "login --browser", text, p.providers.URLs[0]+"/authorize?")
	p.portcullis(0, "host", "list")

	// A session of a context is for its service alone, and that of a service for that one.
	_, text = p.portcullis(1, "--service", s.URL, "--ca", s.CAFile, "whoami")
	wantText(t, "another connection", text, "no operator token was sent", "hint: sign in with portcullis login --service "+s.URL)
	out, _ = p.portcullis(0, "--service", s.URL+"/", "--ca", s.CAFile, "login")
	wantText(t, "login --service", out, "signed in for service "+s.URL+" as oidc:corp:id1")
	out, _ = p.portcullis(0, "--service", s.URL, "--ca", s.CAFile, "whoami")
	wantText(t, "whoami --service", out, "oidc:corp:id1")
	p.portcullis(0, "--service", s.URL, "--ca", s.CAFile, "logout")

	// A session that is not for the service of its context is not sent there.
	file := readFile(t, sessionFile(t, "prod"))
	writeSession(t, "prod", strings.Replace(file, s.URL, "https://other.test", 1))
	_, text = p.portcullis(1, "whoami")
	wantText(t, "a session for another service", text, "it is for https://other.test, and not for "+s.URL, "hint: portcullis login --context prod")
	writeSession(t, "prod", file)
	if err := os.Chmod(sessionFile(t, "prod"), 0o640); err != nil {
		t.Fatal(err)
	}
	_, text = p.portcullis(1, "whoami")
	wantText(t, "a session that others may read", text, "has mode 0640, and others may use it; run: chmod 600 ")
	_, text = p.portcullis(1, "login")
	wantText(t, "login beside it", text, "has mode 0640, and others may use it; run: chmod 600 ")
	if strings.Contains(text, "enter the code") {
		t.Errorf("a person signs in, and the session can't be kept: %s", text)
	}
	out, _ = p.portcullis(0, "logout")
	wantText(t, "logout of what others may read", out, "signed out of context prod, and revoked at the provider corp")

	// Another sign-in of the same person revokes nothing: many providers would end the new session with the earlier one.
	p.portcullis(0, "login")
	file = readFile(t, sessionFile(t, "prod"))
	p.portcullis(0, "login")
	writeSession(t, "prod", file)
	backdate(t, "prod")
	p.portcullis(0, "host", "list")
	p.portcullis(0, "logout")

	_, text = p.portcullis(2, "login", "--provider", "other")
	wantText(t, "another provider", text, `the service has no identity provider "other"`, "choose one with --provider: corp")
	_, text = p.portcullis(1, "login", "--provider-ca", s.CAFile)
	wantText(t, "another authority", text, "certificate", "hint: the certificate of the provider is not of an authority that is believed here: name its CA with --provider-ca FILE")
	_, text = p.portcullis(2, "--socket", "s", "login")
	wantText(t, "a subnet manager", text, "asks for no credential")
	p.act = func(p *person, code string) { p.providers.Order("deny 0 %s", code) }
	_, text = p.portcullis(1, "login")
	wantText(t, "denied", text, "access_denied", "hint: the request was denied at the provider")
	ctx, interrupt := context.WithCancel(t.Context())
	p.act = func(*person, string) { interrupt() }
	_, text = p.within(ctx, 1, "login")
	wantText(t, "interrupted", text, "portcullis: login: interrupted: nothing was signed in\n")
	if _, err := os.Stat(sessionFile(t, "prod")); !os.IsNotExist(err) {
		t.Errorf("a session is there: %v", err)
	}
}

// TestServiceWithoutSignIn: a service that names no provider says so.
func TestServiceWithoutSignIn(t *testing.T) {
	s := apitest.Start(t, apitest.NewBackend())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv(cli.EnvTokenFile, "")
	p := &person{t: t}
	_, text := p.portcullis(1, "login", "--service", s.URL, "--ca", s.CAFile)
	wantText(t, "login", text, "the service names no identity provider for people who sign in", "hint: have its operator add login: {client_id: ...}")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeSession(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(sessionFile(t, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var (
	refreshMember = regexp.MustCompile(`"refresh_token":"([^"]+)"`)
	expiresMember = regexp.MustCompile(`"expires":"[^"]+"`)
)

func refreshOf(t *testing.T, file string) string {
	t.Helper()
	m := refreshMember.FindStringSubmatch(file)
	if m == nil {
		t.Fatal("the session has no refresh token")
	}
	return m[1]
}

// backdate has the token of a session be over, as far as the file says.
func backdate(t *testing.T, name string) {
	t.Helper()
	writeSession(t, name, expiresMember.ReplaceAllString(readFile(t, sessionFile(t, name)), `"expires":"2026-01-01T00:00:00Z"`))
}
