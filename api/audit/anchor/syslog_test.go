package anchor

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit/chain"
)

const inTime = 10 * time.Second

// next waits for what a receiver got.
func next(t *testing.T, got <-chan string) string {
	t.Helper()
	select {
	case s := <-got:
		return s
	case <-time.After(inTime):
		t.Fatal("the receiver got nothing")
		return ""
	}
}

// receive takes connections as a system log does over TCP: it reads a length and as many bytes, until the other end
// closes, and closes.
func receive(t *testing.T, l net.Listener) <-chan string {
	t.Helper()
	got := make(chan string, 10)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(c)
			for {
				var n int
				if _, err := fmt.Fscanf(in, "%d ", &n); err != nil {
					break
				}
				msg := make([]byte, n)
				if _, err := io.ReadFull(in, msg); err != nil {
					break
				}
				got <- string(msg)
			}
			c.Close()
		}
	}()
	return got
}

func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newSyslog(t *testing.T, where string) *Syslog {
	t.Helper()
	s, err := ParseSyslog(where)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantAnchor requires a line from which verify reads the anchor.
func wantAnchor(t *testing.T, line string, want *chain.Anchor) {
	t.Helper()
	got, err := chain.ReadAnchors(strings.NewReader(line + "\n"))
	if err != nil || len(got) != 1 || got[0] != *want {
		t.Errorf("%q reads as %+v, %v; want %+v", line, got, err, want)
	}
}

func TestSyslogOnThisMachine(t *testing.T) {
	for _, network := range []string{"unixgram", "unix"} {
		t.Run(network, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			got := make(chan string, 1)
			var conn io.ReadCloser
			if network == "unixgram" {
				c, err := net.ListenUnixgram(network, &net.UnixAddr{Name: path, Net: network})
				if err != nil {
					t.Fatal(err)
				}
				conn = c
				go func() {
					buf := make([]byte, 8192)
					n, _ := c.Read(buf)
					got <- string(buf[:n])
				}()
			} else {
				l, err := net.Listen(network, path)
				if err != nil {
					t.Fatal(err)
				}
				conn = readCloser{l}
				go func() {
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					line, _ := bufio.NewReader(c).ReadString('\n')
					got <- strings.TrimSuffix(line, "\n")
				}()
			}
			defer conn.Close()
			if err := newSyslog(t, "unix:"+path).Write(t.Context(), at(7)); err != nil {
				t.Fatal(err)
			}
			line := next(t, got)
			if !regexp.MustCompile(`^<109>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d portcullisd\[\d+\]: portcullis-anchor \{`).MatchString(line) {
				t.Errorf("message %q", line)
			}
			wantAnchor(t, line, at(7))
		})
	}
}

// readCloser closes a listener.
type readCloser struct{ net.Listener }

func (readCloser) Read([]byte) (int, error) { return 0, io.EOF }

var rfc5424 = regexp.MustCompile(`^<109>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z \S+ portcullisd \d+ anchor - portcullis-anchor \{`)

func TestSyslogOverTCP(t *testing.T) {
	l := listenTCP(t)
	got := receive(t, l)
	s := newSyslog(t, "tcp://"+l.Addr().String())
	for _, seq := range []uint64{7, 8} {
		if err := s.Write(t.Context(), at(seq)); err != nil {
			t.Fatal(err)
		}
		line := next(t, got)
		if !rfc5424.MatchString(line) {
			t.Errorf("message %q", line)
		}
		wantAnchor(t, line, at(seq))
	}
	l.Close()
	if err := s.Write(t.Context(), at(9)); err == nil {
		t.Error("no error without a receiver")
	}
}

func TestSyslogOverTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1
	defer web.Close()
	l := listenTCP(t)
	got := receive(t, tls.NewListener(l, &tls.Config{Certificates: web.TLS.Certificates}))
	s := newSyslog(t, "tls://"+l.Addr().String())
	roots := x509.NewCertPool()
	s.SetTLS(&tls.Config{RootCAs: roots})
	if err := s.Write(t.Context(), at(7)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a receiver that no CA knows: %v", err)
	}
	roots.AddCert(web.Certificate())
	if err := s.Write(t.Context(), at(8)); err != nil {
		t.Fatal(err)
	}
	line := next(t, got)
	if !rfc5424.MatchString(line) {
		t.Errorf("message %q", line)
	}
	wantAnchor(t, line, at(8))
}

// A receiver that resets the connection did not take the message.
func TestSyslogReset(t *testing.T) {
	l := listenTCP(t)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // closing resets
		}
		_, _ = c.Read(make([]byte, 1))
		c.Close()
	}()
	if err := newSyslog(t, "tcp://"+l.Addr().String()).Write(t.Context(), at(7)); err == nil {
		t.Error("no error")
	}
}

func TestParseSyslogRefuses(t *testing.T) {
	for where, want := range map[string]string{
		"": "want unix:", "udp://log:514": "lost", "log:514": "want unix:", "tcp://log": "HOST:PORT", "tls://:6514": "HOST:PORT",
		"unix:log": "absolute", "tcp://u:p@log:514": "nothing more", "tls://log:6514/x": "nothing more", "tcp://log:99999": "want",
		"unix://host/dev/log": "absolute",
	} {
		if s, err := ParseSyslog(where); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSyslog(%q) = %+v, %v; want an error with %q", where, s, err, want)
		}
	}
}
