package anchor

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
)

const secret = "0123456789abcdef"

// site is a web server that keeps anchors.
type site struct {
	*httptest.Server
	status int
	bodies []string
	sums   []string
	answer string // to a GET
}

func newWebSite(t *testing.T) *site {
	t.Helper()
	s := &site{status: http.StatusNoContent}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			s.bodies, s.sums = append(s.bodies, string(body)), append(s.sums, r.Header.Get(SignatureHeader))
			if s.status == http.StatusFound {
				w.Header().Set("Location", s.URL+"/elsewhere")
			}
		}
		w.WriteHeader(s.status)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, s.answer)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) hook(t *testing.T, trusted bool) *Webhook {
	t.Helper()
	roots := x509.NewCertPool()
	if trusted {
		roots.AddCert(s.Certificate())
	}
	w, err := NewWebhook(WebhookOptions{
		URL: s.URL + "/anchors?token=hidden", TLS: &tls.Config{RootCAs: roots}, Secret: ib.NewSecretText(secret), Reads: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWebhook(t *testing.T) {
	s := newWebSite(t)
	w := s.hook(t, true)
	if err := w.Write(t.Context(), at(7)); err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(s.bodies[0]))
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); s.sums[0] != want {
		t.Errorf("signed with %q, want %q", s.sums[0], want)
	}
	wantAnchor(t, strings.TrimSuffix(s.bodies[0], "\n"), at(7))
	if got := w.Name(); got != "webhook:"+s.URL+"/anchors" {
		t.Errorf("name %q", got)
	}
	for _, status := range []int{http.StatusFound, http.StatusForbidden, http.StatusInternalServerError} {
		s.status = status
		if err := w.Write(t.Context(), at(8)); err == nil {
			t.Errorf("no error after status %d", status)
		}
	}
	if len(s.bodies) != 4 {
		t.Errorf("%d requests, want 4: redirects are not followed", len(s.bodies))
	}
	if err := s.hook(t, false).Write(t.Context(), at(9)); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("a server that no CA knows: %v, want an error without the query", err)
	}
}

func TestWebhookRead(t *testing.T) {
	s := newWebSite(t)
	w := s.hook(t, true)
	line, err := at(7).Line()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		status int
		answer string
		want   []uint64
		err    bool
	}{
		{"none", http.StatusNoContent, "", nil, false},
		{"not known", http.StatusNotFound, "", nil, false},
		{"one", http.StatusOK, string(line), []uint64{7}, false},
		{"without an end", http.StatusOK, strings.TrimSpace(string(line)), []uint64{7}, false},
		{"empty", http.StatusOK, "", nil, false},
		{"two, and one that is none", http.StatusOK, string(line) + "x\n" + string(line), []uint64{7, 7}, true},
		{"refused", http.StatusForbidden, string(line), nil, true},
		{"too much", http.StatusOK, strings.Repeat(string(line), maxAnchors/len(line)+1), nil, true},
	} {
		s.status, s.answer = tt.status, tt.answer
		got, err := w.Read(t.Context())
		if (err != nil) != tt.err || !slices.Equal(seqs(got), tt.want) {
			t.Errorf("%s: %d anchors, %v; want %v", tt.name, len(got), err, tt.want)
		}
	}
	w.o.Reads = false
	s.status, s.answer = http.StatusOK, string(line)
	if got, err := w.Read(t.Context()); err != nil || got != nil {
		t.Errorf("read %v, %v, though it is not to be asked", got, err)
	}
}

func TestCheckURL(t *testing.T) {
	for _, bad := range []string{"", "http://h/", "https://", "https:h", "https://u:p@h/", "https://h/#x", "file:///x"} {
		if CheckURL(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if err := CheckURL("https://h:8443/a?b=c"); err != nil {
		t.Error(err)
	}
}
