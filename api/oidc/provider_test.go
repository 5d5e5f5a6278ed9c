package oidc

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestReadsOverHTTPS: keys come over HTTPS from a server that the CA file proves, without redirects, and within bounds.
func TestReadsOverHTTPS(t *testing.T) {
	t.Parallel()
	a := ecSigner(t, "a")
	keys := string(set(t, a))
	answers := map[string]func(http.ResponseWriter, string){
		"/good/meta": func(w http.ResponseWriter, base string) {
			fmt.Fprintf(w, `{"issuer":"%s/good","jwks_uri":"%s/keys"}`, base, base)
		},
		"/other/meta": func(w http.ResponseWriter, base string) {
			fmt.Fprintf(w, `{"issuer":"%s/good","jwks_uri":"%s/keys"}`, base, base)
		},
		"/plain/meta": func(w http.ResponseWriter, base string) {
			fmt.Fprintf(w, `{"issuer":"%s/plain","jwks_uri":"http://x/keys"}`, base)
		},
		"/large/meta": func(w http.ResponseWriter, base string) {
			fmt.Fprintf(w, `{"issuer":"%s/large","jwks_uri":"%s/large"}`, base, base)
		},
		"/away/meta": func(w http.ResponseWriter, base string) {
			fmt.Fprintf(w, `{"issuer":"%s/away","jwks_uri":"%s/moved"}`, base, base)
		},
		"/broken/meta":   func(w http.ResponseWriter, _ string) { fmt.Fprint(w, `<html>`) },
		"/fat/meta":      func(w http.ResponseWriter, _ string) { fmt.Fprint(w, strings.Repeat(" ", maxMetadata+1)) },
		"/keys":          func(w http.ResponseWriter, _ string) { fmt.Fprint(w, keys) },
		"/large":         func(w http.ResponseWriter, _ string) { fmt.Fprint(w, strings.Repeat(" ", maxKeySet), keys) },
		"/moved":         func(w http.ResponseWriter, base string) { w.Header().Set("Location", base+"/keys"); w.WriteHeader(302) },
		"/forbidden/met": nil,
	}
	var base string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[strings.Replace(r.URL.Path, ".well-known/openid-configuration", "meta", 1)]
		if answer == nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		answer(w, base)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.StartTLS()
	defer server.Close()
	base = server.URL
	trusted := server.Client().Transport.(*http.Transport).TLSClientConfig
	for path, wrong := range map[string]string{
		"good": "", "other": "of the issuer", "plain": "want https", "large": "more than", "away": "302",
		"broken": "metadata", "fat": "more than", "forbidden": "403",
	} {
		i := corp()
		i.URL, i.TLS = base+"/"+path, trusted
		if err := readOnce(t, i); (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: error %v, want %q", path, err, wrong)
		}
	}
	i := corp()
	i.URL, i.TLS = base+"/good", &tls.Config{MinVersion: tls.VersionTLS12}
	if err := readOnce(t, i); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server of another CA: %v", err)
	}
}

func readOnce(t *testing.T, i Issuer) error {
	t.Helper()
	v, err := New([]Issuer{i}, slog.New(slog.DiscardHandler), atStart)
	if err != nil {
		t.Fatal(err)
	}
	return v.providers[i.URL].refresh(t.Context())
}
