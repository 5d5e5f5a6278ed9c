package signin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/packaging/testenv"
)

// settingsOf returns the public client of a provider of another project.
func settingsOf(p *testenv.Providers) Settings {
	return Settings{Issuer: p.URLs[0], ClientID: "portcullis-cli", Scopes: []string{"openid", "offline_access"}, UseID: true, CA: p.CA}
}

// browser returns what opens a URL as a browser would: it follows redirects, and reports the last page.
func browser(t *testing.T, ca []byte) func(url string) (int, string) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}}
	return func(url string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return 0, err.Error()
		}
		resp, err := c.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err.Error()
		}
		return resp.StatusCode, string(body)
	}
}

// TestRealProvider: a provider of another project signs a person in by both ways, renews the session with another refresh token each time,
// and takes it back.
func TestRealProvider(t *testing.T) {
	t.Parallel()
	real := testenv.StartProviders(t)
	p, err := Discover(t.Context(), settingsOf(real))
	if err != nil {
		t.Fatal(err)
	}
	var shown Code
	byDevice, err := p.Device(t.Context(), func(c *Code) {
		shown = *c
		real.Order("approve 0 %s", c.Code)
	})
	if err != nil {
		t.Fatal(err)
	}
	if shown.URL != real.URLs[0]+"/device" || !strings.Contains(shown.Complete, shown.Code) || !shown.Expires.After(time.Now()) {
		t.Errorf("shown: %+v", shown)
	}
	open := browser(t, real.CA)
	page := make(chan string, 1)
	byBrowser, err := p.Browser(t.Context(), func(url string) {
		go func() {
			_, text := open(url)
			page <- text
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := <-page; !strings.Contains(text, "The answer of the identity provider has arrived") {
		t.Errorf("the page says %q", text)
	}
	for name, tokens := range map[string]*Tokens{"device": byDevice, "browser": byBrowser} {
		if tokens.Subject != "id1" || tokens.Refresh.IsZero() || time.Until(tokens.Expires) > time.Hour || time.Until(tokens.Expires) < 50*time.Minute || tokens.Begins.IsZero() {
			t.Errorf("%s: %+v", name, tokens)
		}
		c, ok := readClaims(tokens.Bearer.Reveal())
		if !ok || c.Issuer != real.URLs[0] || !c.Audience.Contains("portcullis-cli") {
			t.Errorf("%s: %+v", name, c)
		}
		renewed, err := p.Renew(t.Context(), tokens)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if renewed.Refresh.IsZero() || renewed.Refresh.Equal(tokens.Refresh) || renewed.Subject != "id1" {
			t.Errorf("%s renewed: %+v; want another refresh token", name, renewed)
		}
		wantOver(t, name+", a used refresh token", func() error { _, err := p.Renew(t.Context(), tokens); return err })
		again, err := p.Renew(t.Context(), renewed)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if ok, err := p.Revoke(t.Context(), again); !ok || err != nil {
			t.Errorf("%s: revoke: %v, %v", name, ok, err)
		}
		wantOver(t, name+", revoked", func() error { _, err := p.Renew(t.Context(), again); return err })
	}
	_, err = p.Device(t.Context(), func(c *Code) { real.Order("deny 0 %s", c.Code) })
	wantError(t, "denied", err, "access_denied", "the request was denied at the provider")

	// The access token of this client is a JWT, too.
	s := settingsOf(real)
	s.UseID = false
	if p, err = Discover(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	tokens, err := p.Device(t.Context(), func(c *Code) { real.Order("approve 0 %s", c.Code) })
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Until(tokens.Expires); d > 5*time.Minute || d < 4*time.Minute {
		t.Errorf("the access token ends in %v, want 5 minutes", d)
	}
}

// TestRealProviderRefuses: what the provider refuses is reported with its reason, and with a cure.
func TestRealProviderRefuses(t *testing.T) {
	t.Parallel()
	real := testenv.StartProviders(t)
	fail := func(*Code) { t.Error("a code is shown") }
	for name, tt := range map[string]struct {
		edit         func(*Settings)
		detail, hint string
	}{
		"another spelling of the issuer": {func(s *Settings) { s.Issuer += "/" }, "is of the issuer", "just as the provider does"},
		"another authority":              {func(s *Settings) { s.CA = nil }, "certificate", "--provider-ca FILE"},
		"an unknown client":              {func(s *Settings) { s.ClientID = "stranger" }, "sign in with a code: the identity provider answers", ""},
		"a client without device codes":  {func(s *Settings) { s.Issuer, s.ClientID = real.URLs[1], "service" }, "sign in with a code: the identity provider answers", ""},
	} {
		s := settingsOf(real)
		tt.edit(&s)
		p, err := Discover(t.Context(), s)
		if err == nil {
			_, err = p.Device(t.Context(), fail)
		}
		wantError(t, name, err, tt.detail, tt.hint)
	}
	// A person who breaks off is not shown an error of the network.
	p, err := Discover(t.Context(), settingsOf(real))
	if err != nil {
		t.Fatal(err)
	}
	for name, way := range map[string]func(context.Context, func()) error{
		"device": func(ctx context.Context, end func()) error {
			_, err := p.Device(ctx, func(*Code) { end() })
			return err
		},
		"browser": func(ctx context.Context, end func()) error {
			_, err := p.Browser(ctx, func(string) { end() })
			return err
		},
	} {
		ctx, end := context.WithCancel(t.Context())
		if err := way(ctx, end); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%s broken off: %v", name, err)
		}
	}
}

func wantError(t *testing.T, name string, err error, detail, hint string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || !strings.Contains(e.Detail, detail) || !strings.Contains(e.Hint, hint) || e.Hint == "" {
		t.Errorf("%s: %#v, want %q, %q", name, err, detail, hint)
	}
}

func wantOver(t *testing.T, name string, try func() error) {
	t.Helper()
	if e, ok := errors.AsType[*Error](try()); !ok || !e.Over {
		t.Errorf("%s: %v, want the end of the session", name, try())
	}
}

func secret(text string) ib.SecretText { return ib.NewSecretText(text) }
