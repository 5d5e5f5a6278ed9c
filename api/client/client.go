package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

const (
	// maxAnswer bounds an answer: a fabric of 40,000 ports with room.
	maxAnswer = 64 << 20
	// maxProblem bounds what is read of a refusal.
	maxProblem = 4 << 20

	defaultTimeout = 30 * time.Second
)

// Options say where the service is and which credential the client uses.
type Options struct {
	URL    string // https://HOST[:PORT]
	Socket string // instead of URL: path of the unix socket of a subnet manager
	CA     []byte // PEM; the only CAs trusted. Nil: the system's; empty: an error
	Token  string // operator or status token; empty for attestation
	Source Source // returns the token of each request, instead of Token; nil: Token is that of all
	// Certificate is shown as the credential, instead of Token and Source; nil: none is. The service refuses a request that has both.
	Certificate Certificate
	Timeout     time.Duration // of one request; 0: 30 seconds
	UserAgent   string
	// Reason says why requests that change something are sent, for the audit log: one line of at most v1.MaxReason characters. A request
	// whose body has a reason has that one. Empty: none.
	Reason      string
	Traceparent string // of each request, as W3C Trace Context has it; "": none
	// LocalAddress is that from which connections are made over TLS; zero: the system chooses one. A machine that has several is limited by each.
	LocalAddress netip.Addr
}

// Source returns the token of the next request, which may be another one than before. An error of it is that of the request.
type Source func(context.Context) (ib.SecretText, error)

// Client is safe for concurrent use.
type Client struct {
	base      string
	socket    string // path; empty: base is asked over TLS
	token     string
	source    Source // nil: token
	userAgent string
	reason    string
	trace     string // traceparent; "": none
	timeout   time.Duration
	tls       *tls.Config
	http      *http.Client
	proxy     func(*http.Request) (*url.URL, error)                                // the rule of the environment; a test has its own
	dial      func(ctx context.Context, network, address string) (net.Conn, error) // nil: as usual
}

// New checks o and returns a client. It does not connect yet.
func New(o Options) (*Client, error) {
	if o.Reason != "" {
		var err error
		if o.Reason, err = v1.CheckReason(o.Reason); err != nil {
			return nil, fmt.Errorf("reason: %w", err)
		}
	}
	if o.Socket != "" {
		return local(o), nil
	}
	base, err := baseURL(o.URL)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if o.CA != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("CA: no PEM certificate in it")
		}
	}
	if strings.ContainsAny(o.Token, " \r\n\t") {
		return nil, errors.New("token: want one word")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	c := &Client{base: base, token: o.Token, source: o.Source, userAgent: o.UserAgent, reason: o.Reason, trace: o.Traceparent, timeout: o.Timeout, tls: config, proxy: fromEnvironment}
	if o.LocalAddress.IsValid() {
		c.dial = (&net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(o.LocalAddress, 0))}).DialContext
	}
	if o.Certificate == nil {
		c.http = c.newHTTP()
		return c, nil
	}
	if o.Token != "" || o.Source != nil {
		return nil, errors.New("a client certificate and a token: want one of them")
	}
	c.http = c.showing(o.Certificate)
	return c, nil
}

// refuseRedirect keeps the token from being carried elsewhere. The service
// never redirects.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func baseURL(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", fmt.Errorf("service URL %q: %w", s, err)
	case u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("service URL %q: want https://HOST[:PORT]", s)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "", fmt.Errorf("service URL %q: want nothing after the port", s)
	}
	return "https://" + u.Host, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// WithToken returns a client with the same connections and another token.
func (c *Client) WithToken(token string) *Client {
	other := *c
	other.token, other.source = token, nil
	return &other
}

// WithSource returns a client with the same connections, whose tokens come from a source.
func (c *Client) WithSource(source Source) *Client {
	other := *c
	other.token, other.source = "", source
	return &other
}

// IfMatch returns a context in which a request is carried out only on an object of this version: Version or Epoch of
// what the service answered before, or AnyVersion. The error is a *v1.Problem with the status 412 if the object is of another
// one. Operations that take something away are refused with the status 428 without a version.
func IfMatch(ctx context.Context, version string) context.Context {
	return context.WithValue(ctx, matchKey{}, version)
}

type matchKey struct{}

// AnyVersion is the version for IfMatch that each object has: the request is for the object as it is when the request arrives.
const AnyVersion = "*"

// Named returns a context in which a request that changes something has this Idempotency-Key: 1 to 128 printable characters
// of ASCII. The same request with the same key changes nothing a second time and is answered as before.
func Named(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, nameKey{}, key)
}

type nameKey struct{}

// Because returns a context in which requests that change something have this reason, for the audit log, instead of that of the client. It is
// as Options.Reason; one that is not is refused by the service. A request whose body has a reason has that one.
func Because(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, reasonKey{}, reason)
}

type reasonKey struct{}

// reasonOf returns the reason of a request for its header, "" for none: one that only reads has none, and one whose body has
// a reason has that.
func (c *Client) reasonOf(ctx context.Context, method string, in any) string {
	given, ok := ctx.Value(reasonKey{}).(string)
	if !ok {
		given = c.reason
	}
	if given == "" || method == http.MethodGet {
		return ""
	}
	body := reflect.Indirect(reflect.ValueOf(in))
	if body.Kind() == reflect.Struct {
		if own := body.FieldByName("Reason"); own.Kind() == reflect.String && own.String() != "" {
			return ""
		}
	}
	return given
}

// WithCertificate returns a client with connections of its own that shows a certificate, and no token.
func (c *Client) WithCertificate(cert tls.Certificate) *Client {
	other := *c
	other.token, other.source = "", nil
	other.tls = c.tls.Clone()
	other.tls.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if err := asked.SupportsCertificate(&cert); err != nil {
			return &tls.Certificate{}, nil // none: the service takes it no more, and says so
		}
		return &cert, nil
	}
	other.http = other.newHTTP()
	return &other
}

func (c *Client) newHTTP() *http.Client {
	return &http.Client{Transport: c.transport(c.tls), CheckRedirect: refuseRedirect}
}

func (c *Client) transport(config *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true, Proxy: c.proxy, OnProxyConnectResponse: connected, DialContext: c.dial,
	}
}

// address returns host and port of the service.
func (c *Client) address() string {
	host := strings.TrimPrefix(c.base, "https://")
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "443")
	}
	return host
}

// call sends one request through h and decodes the answer into out, unless out
// is nil.
func (c *Client) call(ctx context.Context, h *http.Client, method, path string, in, out any) error {
	match, _ := ctx.Value(matchKey{}).(string)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	resp, err := c.sendMatching(ctx, h, method, path, match, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	// Read to the end, so that the connection can carry the next request.
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	return nil
}

// send sends one request and returns the response when it is a success.
func (c *Client) send(ctx context.Context, h *http.Client, method, path string) (*http.Response, error) {
	return c.sendMatching(ctx, h, method, path, "", nil)
}

// sendMatching is send with If-Match, unless that is empty.
func (c *Client) sendMatching(ctx context.Context, h *http.Client, method, path, match string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the body of %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if in != nil {
		req.Header.Set("Content-Type", bodyType(method))
	}
	if err := c.authenticate(req); err != nil {
		return nil, err
	}
	switch match {
	case "":
	case AnyVersion:
		req.Header.Set("If-Match", match)
	default:
		req.Header.Set("If-Match", `"`+match+`"`)
	}
	if name, _ := ctx.Value(nameKey{}).(string); name != "" && method != http.MethodGet {
		req.Header.Set("Idempotency-Key", name)
	}
	if why := c.reasonOf(ctx, method, in); why != "" {
		req.Header.Set(v1.ReasonHeader, v1.EncodeReason(why))
	}
	if c.userAgent != "" {
		req.Header.Set("User-Agent", c.userAgent)
	}
	if c.trace != "" {
		req.Header.Set("Traceparent", c.trace)
	}
	resp, err := h.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the method and URL would only repeat what is known
		}
		if proxy, _ := c.proxyURL(ctx); h == c.http && proxy != nil {
			return nil, c.throughProxy(proxy, err)
		}
		return nil, fmt.Errorf("ask %s: %w", c.asked(), err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readProblem(resp)
}

// bodyType is the Content-Type of the bodies of a method.
func bodyType(method string) string {
	if method == http.MethodPatch {
		return "application/merge-patch+json"
	}
	return "application/json"
}

// authenticate puts the token of the client into a request.
func (c *Client) authenticate(req *http.Request) error {
	token := c.token
	if c.source != nil {
		given, err := c.source(req.Context())
		if err != nil {
			return err
		}
		token = given.Reveal()
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// readProblem decodes a refusal. An answer that is not a problem document
// comes from something else than the service, for example a proxy.
func readProblem(resp *http.Response) error {
	var p v1.Problem
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil || p.Code == "" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		return fmt.Errorf("ask the service: %s, and the answer is not a Portcullis problem document", resp.Status)
	}
	p.Status = resp.StatusCode
	return &p
}
