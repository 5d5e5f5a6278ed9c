package pinned

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestTo: a server whose certificate has the pinned public key is asked, and no other. Connections are kept for few servers.
func TestTo(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer srv.Close()
	pin := sha256.Sum256(srv.Certificate().RawSubjectPublicKeyInfo)
	var p Transports
	ask := func(pin []byte) (int, error) {
		c := http.Client{Transport: p.To(srv.Listener.Addr().String(), pin, time.Minute)}
		resp, err := c.Get(srv.URL)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if status, err := ask(pin[:]); err != nil || status != http.StatusTeapot {
		t.Errorf("the pinned server: %d, %v", status, err)
	}
	for _, other := range [][]byte{make([]byte, sha256.Size), pin[:16], nil} {
		if _, err := ask(other); err == nil || !strings.Contains(err.Error(), "another public key") {
			t.Errorf("pin %x: %v", other, err)
		}
	}
	first := p.To("a:1", pin[:], time.Minute)
	if p.To("a:1", pin[:], time.Minute) != first || p.To("a:2", pin[:], time.Minute) == first || p.To("a:1", pin[:16], time.Minute) == first {
		t.Error("connections are kept by server and pin")
	}
	for i := range 4 * mostServers {
		p.To(fmt.Sprint("b:", i), pin[:], time.Minute)
	}
	if len(p.cached) > mostServers {
		t.Errorf("connections to %d servers are kept", len(p.cached))
	}
}
