package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ProxyError is a failure on the way to the service through a proxy. It has no
// credentials of the proxy.
type ProxyError struct {
	Proxy   string // scheme and host
	Service string // host and port
	// EndsTLS means that the peer behind the proxy is not the service. Most likely it is the proxy itself, which ends TLS
	// to inspect the traffic.
	EndsTLS bool
	Err     error
}

// Error implements error.
func (e *ProxyError) Error() string {
	if !e.EndsTLS {
		return fmt.Sprintf("reach the service at %s through the proxy %s: %v", e.Service, e.Proxy, e.Err)
	}
	return fmt.Sprintf("what answers for the service at %s behind the proxy %s is not the service%s; a proxy that ends TLS itself is refused: %v",
		e.Service, e.Proxy, shownBy(e.Err), e.Err)
}

// Unwrap returns the cause.
func (e *ProxyError) Unwrap() error { return e.Err }

// shownBy names the issuer of a certificate that was refused.
func shownBy(err error) string {
	v, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(v.UnverifiedCertificates) == 0 {
		return ""
	}
	const most = 100
	return fmt.Sprintf(": its certificate is by %.*q", most, v.UnverifiedCertificates[0].Issuer.String())
}

// errProxySetting replaces an error of the environment's proxy, which would show its
// credentials.
var errProxySetting = errors.New("the proxy that the environment names (HTTPS_PROXY) is not a URL such as http://HOST:PORT")

// fromEnvironment is the rule that every connection over TLS goes by: HTTPS_PROXY and
// NO_PROXY, as net/http reads them.
func fromEnvironment(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if err != nil || u != nil && !usable(u) {
		return nil, errProxySetting
	}
	return u, nil
}

// usable reports whether net/http can use a proxy. It parses a setting that is no URL as one whose host is the part before
// the first colon.
func usable(u *url.URL) bool {
	return slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) &&
		u.Hostname() != "" && !strings.HasSuffix(u.Host, ":")
}

// Proxy names the proxy that the service is reached through, without credentials; ""
// means that there is none.
func (c *Client) Proxy() (string, error) {
	u, err := c.proxyURL(context.Background())
	return plainProxy(u), err
}

func (c *Client) proxyURL(ctx context.Context) (*url.URL, error) {
	if c.socket != "" {
		return nil, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/", nil)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	return c.proxy(req)
}

// plainProxy returns a proxy's URL without its secret parts.
func plainProxy(u *url.URL) string {
	if u == nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// connected distinguishes a proxy that does not connect from a service that does not answer.
func connected(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return fmt.Errorf("the proxy refuses: %.100q; it wants other credentials than HTTPS_PROXY has (http://USER:PASSWORD@HOST:PORT)", answer.Status)
	default:
		return fmt.Errorf("the proxy refuses: %.100q", answer.Status)
	}
}

// throughProxy says of an error that it came up on the way through a proxy; nil means that
// there is none.
func (c *Client) throughProxy(proxy *url.URL, err error) error {
	if proxy == nil {
		return err
	}
	out := &ProxyError{Proxy: plainProxy(proxy), Service: c.address(), Err: err}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		return out // TLS to the service did not begin
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
		out.EndsTLS = !ok || invalid.Reason != x509.Expired // else a clock is wrong, or it was not renewed
	}
	return out
}
