package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"

	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// ErrChannelClosed is the error of a Channel whose connection has ended. The
// session is lost with it: open another channel and another session.
var ErrChannelClosed = errors.New("the connection this attestation was bound to has ended")

// Channel is one TLS connection to the service, for one attestation: the
// session and the evidence must come over the same connection, because the
// quote covers its TLS exporter value. It never reconnects.
type Channel struct {
	client  *Client
	http    *http.Client
	conn    *http.ClientConn
	binding []byte
	cert    *x509.Certificate
}

// OpenChannel connects to the service: through the proxy that the environment names, if
// any, by the rule that all other calls go by. TLS is with the service then, too: a proxy
// that ends it shows another certificate, which is a *ProxyError; and if that were of a
// trusted CA, evidence would still be bound to another connection than the service sees.
func (c *Client) OpenChannel(ctx context.Context) (*Channel, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	proxy, err := c.proxyURL(ctx)
	if err != nil {
		return nil, err
	}
	config := c.tls.Clone()
	config.NextProtos = []string{"http/1.1"}
	// With a proxy that is asked over TLS there are two handshakes, that with the service
	// last.
	var state tls.ConnectionState
	trace := &httptrace.ClientTrace{TLSHandshakeDone: func(s tls.ConnectionState, _ error) { state = s }}
	dialer := &http.Transport{TLSClientConfig: config, Proxy: http.ProxyURL(proxy), OnProxyConnectResponse: connected, DialContext: c.dial}
	conn, err := dialer.NewClientConn(httptrace.WithClientTrace(ctx, trace), "https", c.address())
	if err != nil && proxy != nil {
		return nil, c.throughProxy(proxy, err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the service at %s: %w", c.address(), err)
	}
	binding, err := state.ExportKeyingMaterial(attest.ExporterLabel, nil, attest.ExporterSize)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS exporter of the connection to %s: %w", c.address(), err)
	}
	return &Channel{
		client: c, conn: conn, binding: binding, cert: state.PeerCertificates[0],
		http: &http.Client{CheckRedirect: refuseRedirect, Transport: channelTrip{conn}},
	}, nil
}

// channelTrip sends requests over one connection alone.
type channelTrip struct{ conn *http.ClientConn }

// RoundTrip implements http.RoundTripper.
func (t channelTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.conn.Err() != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, ErrChannelClosed
	}
	return t.conn.RoundTrip(req)
}

// Binding returns the TLS exporter value of the connection (RFC 9266), 32 bytes.
func (ch *Channel) Binding() []byte { return ch.binding }

// OpenSession asks for a challenge.
func (ch *Channel) OpenSession(ctx context.Context, req *attest.SessionRequest) (*attest.Session, error) {
	return submit[attest.Session](ctx, ch, openSession, req)
}

// SubmitEvidence answers the challenge of session id. A refusal is a
// *v1.Problem with code evidence_refused; it does not say why.
func (ch *Channel) SubmitEvidence(ctx context.Context, id string, ev *attest.Evidence) (*v1.AttestResult, error) {
	return submit[v1.AttestResult](ctx, ch, submitEvidence, ev, id)
}

// SubmitSeal answers the seal of session id. It may go over another Channel than
// the evidence.
func (ch *Channel) SubmitSeal(ctx context.Context, id string, ev *attest.SealEvidence) (*v1.SealResult, error) {
	return submit[v1.SealResult](ctx, ch, submitSeal, ev, id)
}

// submit is ask over the channel.
func submit[Out any](ctx context.Context, ch *Channel, o operation, in any, operands ...string) (*Out, error) {
	var out Out
	return answer(&out, ch.client.call(ctx, ch.http, o.method(), o.path(operands), in, &out))
}

// RenewSeal asks for the seal of session id once more. The client's token is the
// status token that the session's evidence earned. A *v1.Problem with code
// v1.CodeSealClosed means that only a reboot helps.
func (c *Client) RenewSeal(ctx context.Context, id string) (*attest.Seal, error) {
	return ask[attest.Seal](ctx, c, renewSeal, nil, id)
}

// Close ends the connection.
func (ch *Channel) Close() error {
	if err := ch.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// AttestStatus returns the status of the host that holds the client's token, a status token, or its certificate.
func (c *Client) AttestStatus(ctx context.Context) (*v1.Host, error) {
	return ask[v1.Host](ctx, c, attestStatus, nil)
}

// Version says what the service runs.
func (c *Client) Version(ctx context.Context) (*v1.Version, error) {
	return ask[v1.Version](ctx, c, getVersion, nil)
}
