package outgoing

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Fault{
		"https://h": None, "https://h/a?b=c": None, "https://h:8443/": None, "https://[2001:db8::1]:1/": None,
		"http://127.0.0.1:9093": None, "http://[::1]/x": None, "HTTPS://H/": None,
		"": Form, "h": Form, "https://": Form, "https:h": Form, "https:///a": Form, "ftp://h": Form, "//h": Form, "https://h:": Form,
		"https://h:0": Form, "https://h:65536": Form, "https://h:x": Form, "https://h#a": Form, "https://h/#": Form, "https://h/%zz": Form,
		"https://" + strings.Repeat("h", 2048): Form,
		"https://u@h":                          Password, "https://u:p@h": Password, "http://u:p@h": Password,
		"http://h": Plain, "http://localhost": Plain, "http://10.0.0.1": Plain, "http://127.0.0.1.example.org": Plain,
	} {
		u, got := Judge(text)
		if got != want || (u == nil) != (want == Form) {
			t.Errorf("%.60q: %v, %d, want %d", text, u, got, want)
		}
	}
}

// A client ends a request in time, and does not follow where a redirect leads.
func TestClient(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/there":
			followed.Store(true)
		case "/headers":
			w.Header().Set("X", strings.Repeat("x", 2*maxHeaders))
		default:
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(s.Close)
	c := Client(&http.Transport{DisableKeepAlives: true}, time.Minute)
	resp, err := c.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || followed.Load() {
		t.Errorf("the answer is %d, and it was followed: %v", resp.StatusCode, followed.Load())
	}
	if resp, err := c.Get(s.URL + "/headers"); err == nil {
		resp.Body.Close()
		t.Error("headers of any size are read")
	}
}

// What a caller sets stays, and what it does not is bounded.
func TestBounds(t *testing.T) {
	t.Parallel()

	tr := &http.Transport{TLSHandshakeTimeout: time.Second}
	if c := Client(tr, time.Minute); c.Timeout != time.Minute || tr.TLSHandshakeTimeout != time.Second || tr.ResponseHeaderTimeout != time.Minute {
		t.Errorf("%v, %v, %v", c.Timeout, tr.TLSHandshakeTimeout, tr.ResponseHeaderTimeout)
	}
	tr = &http.Transport{}
	if Client(tr, time.Minute); tr.TLSHandshakeTimeout != time.Minute {
		t.Errorf("%v", tr.TLSHandshakeTimeout)
	}
}
