package client_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/ca"
	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// connectProxy is an HTTP proxy that knows CONNECT and nothing else.
type connectProxy struct {
	url      *url.URL
	to       string                 // where everything is connected to
	asked    atomic.Int32           // CONNECTs
	want     string                 // credentials, USER:PASSWORD; "" none
	refuse   int                    // status of every answer, unless 0
	silent   bool                   // takes a CONNECT and does not answer
	endsTLS  *tls.Config            // shows this certificate itself, and looks into all
	lastHost atomic.Pointer[string] // that was asked for
}

// startProxy serves p until the test ends.
func startProxy(t *testing.T, p *connectProxy, s *apitest.Server) *connectProxy {
	t.Helper()
	if p.to == "" {
		p.to = strings.TrimPrefix(s.URL, "https://")
	}
	server := httptest.NewServer(p)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	p.url = u
	return p
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "CONNECT alone", http.StatusMethodNotAllowed)
		return
	}
	p.asked.Add(1)
	p.lastHost.Store(&r.Host)
	given := strings.TrimPrefix(r.Header.Get("Proxy-Authorization"), "Basic ")
	switch {
	case p.silent:
		<-r.Context().Done() // the client stops waiting, or the test ends
		return
	case p.refuse != 0:
		http.Error(w, "no", p.refuse)
		return
	case p.want != "" && given != base64.StdEncoding.EncodeToString([]byte(p.want)):
		w.Header().Set("Proxy-Authenticate", "Basic")
		http.Error(w, "who are you?", http.StatusProxyAuthRequired)
		return
	}
	p.connect(w)
}

func (p *connectProxy) connect(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var service net.Conn
	if p.endsTLS != nil {
		conn = tls.Server(conn, p.endsTLS)
		service, err = tls.Dial("tcp", p.to, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	} else {
		service, err = net.Dial("tcp", p.to)
	}
	if err != nil {
		return
	}
	defer service.Close()
	go func() { defer conn.Close(); defer service.Close(); _, _ = io.Copy(service, conn) }()
	_, _ = io.Copy(conn, service)
}

// ending returns TLS settings of a proxy that ends TLS, with a certificate for a loopback address by a CA of its own, and
// that CA.
func ending(t *testing.T) (*tls.Config, []byte) {
	t.Helper()
	root, err := ca.New("Looks Into Everything", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := root.IssueServer([]string{"127.0.0.1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := root.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}, pem.Cert
}

// attesting is a service that awaits evidence of the host h1, and what the spy sees of it.
func attesting(t *testing.T) (*apitest.Server, *apitest.Site, *spy) {
	t.Helper()
	b, spy := apitest.NewSite(t), new(spy)
	b.Register("h1")
	b.Join("h1")
	return apitest.Start(t, b, spy.between), b, spy
}

// submit boots the host h1 and sends its evidence over a channel.
func submit(t *testing.T, b *apitest.Site, ch *client.Channel) error {
	t.Helper()
	host := b.Boot("h1")
	session, err := ch.OpenSession(t.Context(), host.Request())
	if err != nil {
		t.Fatal(err)
	}
	ev, err := host.Answer(session, ch.Binding())
	if err != nil {
		t.Fatal(err)
	}
	_, err = ch.SubmitEvidence(t.Context(), session.ID, ev)
	return err
}

// TestChannelGoesThroughProxy: TLS is with the service, so the binding is the one that the
// service sees; the proxy is asked for the service by name, once, with its credentials.
func TestChannelGoesThroughProxy(t *testing.T) {
	s, b, spy := attesting(t)
	p := startProxy(t, &connectProxy{want: "fabric:s3cret"}, s)
	c := connect(t, s, s.Viewer)
	with := *p.url
	with.User = url.UserPassword("fabric", "s3cret")
	c.GoThrough(&with)

	ch, err := c.OpenChannel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	if _, _, err := ch.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := submit(t, b, ch); err != nil {
		t.Fatal(err)
	}
	if len(spy.seen) != attest.ExporterSize || !bytes.Equal(spy.seen, ch.Binding()) {
		t.Errorf("the service saw channel %x, the client has %x; want the same 32 bytes", spy.seen, ch.Binding())
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("the proxy was asked %d times, want once for the channel", n)
	}
	if host := *p.lastHost.Load(); host != strings.TrimPrefix(s.URL, "https://") {
		t.Errorf("the proxy was asked for %s, want %s", host, s.URL)
	}
	if _, err := c.Hosts().All(t.Context()); err != nil || p.asked.Load() != 2 {
		t.Errorf("another call: %v, and the proxy was asked %d times; want the same way", err, p.asked.Load())
	}
	if name, err := c.Proxy(); err != nil || name != p.url.String() {
		t.Errorf("Proxy = %q, %v; want %s", name, err, p.url)
	}
}

// TestProxyThatDoesNotConnect: each is an error that names the proxy and the cause, and
// never its credentials.
func TestProxyThatDoesNotConnect(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t))
	end, _ := ending(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, tt := range []struct {
		name  string
		proxy *connectProxy
		to    string // URL of a proxy in place of proxy
		want  string
		ends  bool // it learns that the proxy ends TLS
		late  bool
	}{
		{name: "refuses", proxy: &connectProxy{refuse: http.StatusForbidden}, want: `the proxy refuses: "403 Forbidden"`},
		{name: "is down behind", proxy: &connectProxy{refuse: http.StatusBadGateway}, want: `"502 Bad Gateway"`},
		{name: "wants other credentials", proxy: &connectProxy{want: "other:one"}, want: "it wants other credentials than HTTPS_PROXY has"},
		{name: "hangs", proxy: &connectProxy{silent: true}, want: "deadline exceeded", late: true},
		{name: "connects to nothing", proxy: &connectProxy{to: "127.0.0.1:1"}, want: "through the proxy"},
		{name: "ends TLS", proxy: &connectProxy{endsTLS: end}, want: "a proxy that ends TLS itself is refused", ends: true},
		{name: "is not there", to: gone.URL, want: "connection refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			with := url.URL{Scheme: "http", Host: strings.TrimPrefix(tt.to, "http://")}
			if tt.to == "" {
				with = *startProxy(t, tt.proxy, s).url
			}
			with.User = url.UserPassword("fabric", "s3cret")
			for call, f := range map[string]func(context.Context, *client.Client) error{
				"channel": func(ctx context.Context, c *client.Client) error { _, err := c.OpenChannel(ctx); return err },
				"call":    func(ctx context.Context, c *client.Client) error { _, err := c.Hosts().All(ctx); return err },
			} {
				o := client.Options{URL: s.URL, CA: readFile(t, s.CAFile), Token: s.Viewer}
				if tt.late {
					o.Timeout = 200 * time.Millisecond
				}
				c, err := client.New(o)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.GoThrough(&with)
				err = f(t.Context(), c)
				e, ok := errors.AsType[*client.ProxyError](err)
				if !ok || e.EndsTLS != tt.ends || e.Proxy != "http://"+with.Host {
					t.Errorf("%s: %#v, want an error of the proxy that says it ends TLS: %t", call, err, tt.ends)
					continue
				}
				if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), with.Host) {
					t.Errorf("%s: %v; want %q and the proxy's address", call, err, tt.want)
				}
				if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "fabric:") {
					t.Errorf("%s: %v shows credentials", call, err)
				}
				if tt.ends && !strings.Contains(err.Error(), "Looks Into Everything") {
					t.Errorf("%s: %v does not name who issued the certificate", call, err)
				}
				if tt.late && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v, want the deadline's error", call, err)
				}
			}
		})
	}
}

// TestProxyThatEndsTLSUnderATrustedCA: nothing shows the client that it is not the
// service, but the binding of its connection is not the one that the service sees, which refuses the evidence.
func TestProxyThatEndsTLSUnderATrustedCA(t *testing.T) {
	s, b, spy := attesting(t)
	end, pem := ending(t)
	p := startProxy(t, &connectProxy{endsTLS: end}, s)
	c, err := client.New(client.Options{URL: s.URL, CA: pem})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.GoThrough(p.url)
	ch, err := c.OpenChannel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	err = submit(t, b, ch)
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Code != v1.CodeEvidenceRefused {
		t.Errorf("evidence is answered with %v, want it refused", err)
	}
	if len(spy.seen) != attest.ExporterSize || bytes.Equal(spy.seen, ch.Binding()) {
		t.Errorf("the service saw channel %x, the client has %x; want two connections", spy.seen, ch.Binding())
	}
}

// TestProxyOverTLS: the proxy is asked over TLS, and the binding is that of the service's
// connection inside.
func TestProxyOverTLS(t *testing.T) {
	s, b, spy := attesting(t)
	end, pem := ending(t)
	p := &connectProxy{to: strings.TrimPrefix(s.URL, "https://")}
	server := httptest.NewUnstartedServer(p)
	server.TLS, server.Config.ErrorLog = end, log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: s.URL, CA: append(readFile(t, s.CAFile), pem...)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.GoThrough(u)
	ch, err := c.OpenChannel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	if err := submit(t, b, ch); err != nil || !bytes.Equal(spy.seen, ch.Binding()) {
		t.Errorf("the service saw channel %x, the client has %x: %v", spy.seen, ch.Binding(), err)
	}

	c.Close()
	if c, err = client.New(client.Options{URL: s.URL, CA: readFile(t, s.CAFile)}); err != nil {
		t.Fatal(err)
	}
	c.GoThrough(u)
	_, err = c.OpenChannel(t.Context())
	if e, ok := errors.AsType[*client.ProxyError](err); !ok || e.EndsTLS || !strings.Contains(err.Error(), "proxyconnect") {
		t.Errorf("a proxy of an unknown CA: %v, want an error about the proxy itself", err)
	}
}

// TestProxyOfTheEnvironment runs this test's program again with HTTPS_PROXY, which is read
// once in a process: calls and channels follow the same rule.
func TestProxyOfTheEnvironment(t *testing.T) {
	if service := os.Getenv("PROXY_TEST_SERVICE"); service != "" {
		askTwice(t, service)
		return
	}
	s := apitest.Start(t, apitest.NewSite(t), func(o *api.Options) { o.ChannelBinding = api.ChannelRequired })
	p := startProxy(t, &connectProxy{}, s)
	_, port, err := net.SplitHostPort(p.to)
	if err != nil {
		t.Fatal(err)
	}
	service := "https://portcullis.test:" + port // only the proxy resolves it
	for _, tt := range []struct {
		name, proxy, noProxy string
		asked                int32
		want                 string // in the output, twice: of a call and of a channel
	}{
		{"named", p.url.String(), "", 2, "service reached"},
		{"not for the service", p.url.String(), "portcullis.test", 0, "no such host"},
		{"not for the service's port", p.url.String(), "portcullis.test:" + port, 0, "no such host"},
		{"not for another port", p.url.String(), "portcullis.test:1", 2, "service reached"},
		{"without its scheme", "fabric:s3cret@a b:3128", "", 0, "is not a URL such as"},
		{"with a space", "http://fabric:s3cret@a b:3128", "", 0, "is not a URL such as"},
		{"of another kind", "ftp://fabric:s3cret@proxy:3128", "", 0, "is not a URL such as"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.asked.Store(0)
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxyOfTheEnvironment$", "-test.v")
			cmd.Env = append(os.Environ(), "HTTPS_PROXY="+tt.proxy, "NO_PROXY="+tt.noProxy, "https_proxy=", "no_proxy=",
				"PROXY_TEST_SERVICE="+service, "PROXY_TEST_CA="+s.CAFile, "PROXY_TEST_TOKEN="+s.Viewer)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			said := 0
			for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
				if strings.Contains(lines.Text(), tt.want) {
					said++
				}
			}
			if said != 2 || p.asked.Load() != tt.asked || strings.Contains(string(out), "s3cret") {
				t.Errorf("the proxy was asked %d times, want %d; want %q twice, and no credentials:\n%s", p.asked.Load(), tt.asked, tt.want, out)
			}
		})
	}
}

// askTwice is what the program does that has a proxy in its environment.
func askTwice(t *testing.T, service string) {
	t.Helper()
	c, err := client.New(client.Options{URL: service, CA: readFile(t, os.Getenv("PROXY_TEST_CA")), Token: os.Getenv("PROXY_TEST_TOKEN")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tell := func(err error) {
		if err != nil {
			t.Log(err)
			return
		}
		t.Log("service reached")
	}
	_, err = c.Hosts().All(t.Context())
	tell(err)
	ch, err := c.OpenChannel(t.Context())
	if err == nil {
		_, _, err = ch.Hello(t.Context())
		ch.Close()
	}
	tell(err)
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
