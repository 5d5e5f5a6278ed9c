package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var loopback = Addresses{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// serverOf returns a server, and a target that is there.
func serverOf(t *testing.T, h http.HandlerFunc) (*httptest.Server, Target) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, Target{URL: s.URL + "/hook?token=hidden", Secret: secretOf(t, testSecret), Certificates: &tls.Config{RootCAs: roots}, Addresses: loopback}
}

func senderOf(t *testing.T, target Target) *Sender {
	t.Helper()
	s, err := NewSender(target)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSend(t *testing.T) {
	t.Parallel()
	at, secret := time.Unix(1764259200, 0), secretOf(t, testSecret)
	asked := make(chan *http.Request, 1)
	bodies := make(chan string, 1)
	_, target := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- r
		bodies <- string(body)
		w.WriteHeader(http.StatusAccepted)
	})
	if err := senderOf(t, target).Send(t.Context(), "evt-1", at, []byte(`{"id":"evt-1"}`)); err != nil {
		t.Fatal(err)
	}
	r, body := <-asked, <-bodies
	if body != `{"id":"evt-1"}` || r.Method != "POST" || r.URL.Path != "/hook" || r.Header.Get("Content-Type") != "application/cloudevents+json" {
		t.Errorf("%s %s of %s: %s", r.Method, r.URL, r.Header.Get("Content-Type"), body)
	}
	if r.Header.Get("webhook-id") != "evt-1" || r.Header.Get("webhook-timestamp") != "1764259200" || r.Header.Get("webhook-signature") != secret.Sign("evt-1", at, []byte(body)) {
		t.Errorf("headers %v", r.Header)
	}
}

func TestNotSent(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other, _ := serverOf(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/stolen", http.StatusPermanentRedirect)
	}
	_, target := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get(HeaderID) {
		case "redirect":
			redirect(w, r)
		case "gone":
			w.WriteHeader(http.StatusGone)
		case "headers":
			w.Header().Set("X-Fill", strings.Repeat("a", 128<<10))
		}
	})
	foreign, named, refusedAt := target, target, target
	foreign.Certificates = nil
	named.URL, named.Addresses = strings.Replace(target.URL, "127.0.0.1", "localhost", 1), Addresses{}
	refusedAt.Addresses = Addresses{}
	for _, tt := range []struct {
		name, id string
		target   Target
		want     string
	}{
		{"a redirect", "redirect", target, "answers 308, a redirect, which is not followed"},
		{"an error", "gone", target, "answers 410 Gone"},
		{"large headers", "headers", target, "exceeded"},
		{"a foreign certificate", "x", foreign, "certificate"},
		{"loopback", "x", refusedAt, "127.0.0.1 is loopback"},
		{"a name of loopback", "x", named, "is loopback"},
	} {
		err := senderOf(t, tt.target).Send(t.Context(), tt.id, time.Unix(1, 0), []byte("{}"))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "stolen") {
			t.Errorf("%s: %v, want %q and no part of a URL", tt.name, err, tt.want)
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests were redirected", n)
	}
}

// A huge answer is not read, and one that does not end ends no delivery: the server has the message by its status.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	sent := make(chan int64, 1)
	_, target := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		var n int64
		for chunk := make([]byte, 64<<10); ; {
			m, err := w.Write(chunk)
			if n += int64(m); err != nil || n > 256<<20 {
				sent <- n
				return
			}
		}
	})
	if err := senderOf(t, target).Send(t.Context(), "x", time.Unix(1, 0), []byte("{}")); err != nil {
		t.Error(err)
	}
	if n := <-sent; n > 64<<20 {
		t.Errorf("%d bytes of the answer were sent", n)
	}
}

// A server that does not answer is left when its time is over.
func TestSlowAnswers(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	_, target := serverOf(t, func(_ http.ResponseWriter, r *http.Request) { <-done })
	defer close(done)
	s := senderOf(t, target)
	if s.client.Timeout != sendTimeout {
		t.Errorf("a request may take %v", s.client.Timeout)
	}
	s.client.Timeout = 200 * time.Millisecond
	if err := s.Send(t.Context(), "x", time.Unix(1, 0), []byte("{}")); err == nil || !strings.Contains(err.Error(), "Timeout") && !strings.Contains(err.Error(), "deadline") {
		t.Errorf("%v", err)
	}
}

func TestAboutMessage(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{400: true, 422: true, 413: true, 401: false, 404: false, 410: false, 429: false, 500: false, 503: false, 308: false} {
		if got := AboutMessage(fmt.Errorf("send: %w", &AnswerError{status})); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
	if AboutMessage(io.EOF) {
		t.Error("an error of the connection is about the message")
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://siem.example/hook?x=1": true, "https://[2001:db8::1]:8443/": true, "http://siem.example/": false, "": false, "https:///x": false,
		"https://user:pw@siem.example/": false, "https://siem.example/#x": false, "https:siem.example": false, "file:///etc/passwd": false,
		"https://siem.example/" + strings.Repeat("a", 2048): false, "https://a b/": false,
	} {
		if err := CheckURL(url); (err == nil) != ok {
			t.Errorf("%.60q: %v", url, err)
		}
	}
	if _, err := NewSender(Target{URL: "https://siem.example/"}); err == nil {
		t.Error("there is a sender without a secret")
	}
}
