package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/refusal"
)

// raw is a connection of HTTP/1.1 from an address, on which requests are sent byte by byte.
type raw struct {
	t    *testing.T
	conn *tls.Conn
	in   *bufio.Reader
}

func dialRaw(t *testing.T, s *apitest.Server, from string) *raw {
	t.Helper()
	pem, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := tls.DialWithDialer(&d, "tcp", strings.TrimPrefix(s.URL, "https://"), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, ServerName: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &raw{t, conn, bufio.NewReader(conn)}
}

func (r *raw) send(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.conn, text); err != nil {
		r.t.Fatal(err)
	}
}

// status returns the status of the next answer, which must come within a time that is much
// less than a body may take to arrive.
func (r *raw) status() int {
	r.t.Helper()
	if err := r.conn.SetReadDeadline(time.Now().Add(8 * time.Second)); err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.ReadResponse(r.in, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func head(method, path string, length int, more ...string) string {
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", length)}, more...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// noTickets is a LockKeeper that knows no ticket.
type noTickets struct{ api.LockKeeper }

func (noTickets) AwaitsOrders(context.Context, string) error {
	return refusal.New(refusal.Refused, "ticket_unknown", "attest again", "the ticket is not known")
}

func (noTickets) AwaitsReport(context.Context, string) error {
	return refusal.New(refusal.Refused, "ticket_unknown", "attest again", "the ticket is not known")
}

// TestRefusedBeforeTheBody: evidence for an unknown session, orders without a ticket or for an unknown one, and a body that
// is too large, are refused before the body has come.
func TestRefusedBeforeTheBody(t *testing.T) {
	t.Parallel()
	b := apitest.NewSite(t)
	s := apitest.Start(t, b, func(o *api.Options) { o.Locks = noTickets{} })
	bare := apitest.Start(t, b)
	id := strings.Repeat("0", 32)
	const ticket = "Authorization: Bearer guessed"
	for _, tt := range []struct {
		server       *apitest.Server
		method, path string
		length, want int
		more         []string
	}{
		{s, "PUT", "/v1/attest/sessions/" + id + "/evidence", 1 << 20, http.StatusForbidden, nil},
		{s, "PUT", "/v1/attest/sessions/" + id + "/seal", 16 << 10, http.StatusForbidden, nil},
		{s, "POST", "/v1/attest/sessions", 1 << 20, http.StatusRequestEntityTooLarge, nil},
		{s, "POST", "/v1/attest/locks", 1 << 20, http.StatusForbidden, []string{ticket}},
		{s, "POST", "/v1/attest/locks", 1 << 20, http.StatusUnauthorized, nil},
		{s, "POST", "/v1/attest/locks/report", 16 << 10, http.StatusUnauthorized, nil},
		{s, "POST", "/v1/attest/locks/report", 16 << 10, http.StatusForbidden, []string{ticket}},
		{bare, "POST", "/v1/attest/locks", 1 << 20, http.StatusServiceUnavailable, nil},
	} {
		r := dialRaw(t, tt.server, "127.0.0.1")
		r.send(head(tt.method, tt.path, tt.length, tt.more...))
		if got := r.status(); got != tt.want {
			t.Errorf("%s %s with %d bytes to come: %d, want %d", tt.method, tt.path, tt.length, got, tt.want)
		}
	}
}

// TestBodiesOfStrangersAreBounded: a source holds so many bytes of bodies that have not come to
// their end, and others are served meanwhile.
func TestBodiesOfStrangersAreBounded(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, apitest.NewSite(t))
	const each, most = 128 << 10, 6 // 6 of 128 KiB: a quarter of what is free of 4 MiB then
	for i := range most {
		r := dialRaw(t, s, "127.0.0.1")
		r.send(head("POST", "/v1/attest/sessions", each, "Expect: 100-continue"))
		if got := r.status(); got != http.StatusContinue {
			t.Fatalf("body %d: %d, want that it is asked for", i+1, got)
		}
	}
	r := dialRaw(t, s, "127.0.0.1")
	r.send(head("POST", "/v1/attest/sessions", each))
	if got := r.status(); got != http.StatusServiceUnavailable {
		t.Errorf("one body more: %d, want 503", got)
	}
	other := dialRaw(t, s, "127.0.0.2")
	other.send(head("POST", "/v1/attest/sessions", 2) + "{}")
	if got := other.status(); got == http.StatusServiceUnavailable || got >= 500 {
		t.Errorf("another source: %d", got)
	}
}

// TestBrokenBodies: a body that is malformed is the fault of its sender, with a credential or
// without.
func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, apitest.NewSite(t))
	const chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
	for _, tt := range []struct{ name, request string }{
		{"without a credential", "POST /v1/attest/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\n" + chunked + "\r\nzz\r\n{}\r\n0\r\n\r\n"},
		{"with one", "POST /v1/tenants HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + s.Operator + "\r\n" + chunked + "\r\nzz\r\n{}\r\n0\r\n\r\n"},
	} {
		r := dialRaw(t, s, "127.0.0.1")
		r.send(tt.request)
		if got := r.status(); got != http.StatusBadRequest {
			t.Errorf("a malformed chunk %s: %d, want 400", tt.name, got)
		}
	}
}

// TestBodiesOfManyValues: a body without a credential that has many values is refused before it is explained what is wrong
// with each.
func TestBodiesOfManyValues(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, apitest.NewSite(t))
	body := `{"host":"h1","x":[` + strings.Repeat("0,", 300) + `0]}`
	r := dialRaw(t, s, "127.0.0.1")
	r.send(head("POST", "/v1/attest/sessions", len(body)) + body)
	if got := r.status(); got != http.StatusBadRequest {
		t.Errorf("a body of 300 values: %d, want 400", got)
	}
}

// TestSmuggled: with a Content-Length and chunks in one request, a proxy may see the next one elsewhere. The connection
// ends with the answer, whatever that is, so that the bytes that follow are no request.
func TestSmuggled(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, apitest.NewSite(t))
	const next = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
	for _, tt := range []struct {
		name, body string
		want       int
	}{
		{"malformed", "zz\r\n{}\r\n0\r\n\r\n", http.StatusBadRequest},
		{"well formed", "2\r\n{}\r\n0\r\n\r\n", http.StatusUnprocessableEntity},
		{"empty", "0\r\n\r\n", http.StatusBadRequest},
	} {
		for _, path := range []string{"/v1/tenants", "/v1/nowhere"} {
			want := tt.want
			if path == "/v1/nowhere" {
				want = http.StatusNotFound
			}
			r := dialRaw(t, s, "127.0.0.1")
			r.send("POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + s.Operator +
				"\r\nContent-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + tt.body + next)
			if err := r.conn.SetReadDeadline(time.Now().Add(8 * time.Second)); err != nil {
				t.Fatal(err)
			}
			all, err := io.ReadAll(r.in)
			text := string(all)
			if err != nil || strings.Count(text, "HTTP/1.1 ") != 1 || !strings.HasPrefix(text, fmt.Sprintf("HTTP/1.1 %d ", want)) || !strings.Contains(text, "Connection: close\r\n") {
				t.Errorf("%s at %s: %v, want one answer %d and the end:\n%s", tt.name, path, err, want, text)
			}
		}
	}
	r := dialRaw(t, s, "127.0.0.1")
	r.send(next + next)
	if a, b := r.status(), r.status(); a != http.StatusOK || b != http.StatusOK {
		t.Errorf("two requests on one connection: %d, %d", a, b)
	}
}
