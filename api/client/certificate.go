package client

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// Certificate returns the certificate that the next request is sent with, which may be another one than before. An error of it is that
// of the request.
type Certificate func() (*tls.Certificate, error)

// CertificateFiles returns the certificate that PEM files hold: its chain, its own first, and its private key. The files are read at the
// first call, and again when one of them has changed. While what they hold does not fit together, as between the writing of one and the
// other, the certificate of before stays, until it ends.
func CertificateFiles(cert, key string) Certificate {
	f := &certificateFiles{names: [2]string{cert, key}}
	return f.get
}

type certificateFiles struct {
	names [2]string

	mu   sync.Mutex
	seen [2]fileState
	held *tls.Certificate // nil: none was read yet
}

// fileState is by what another content of a file is noticed.
type fileState struct {
	at   time.Time
	size int64
}

func (f *certificateFiles) get() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now [2]fileState
	for n, name := range f.names {
		info, err := os.Stat(name)
		if err != nil {
			return f.orHeld(fmt.Errorf("read client certificate: %w", err))
		}
		now[n] = fileState{info.ModTime(), info.Size()}
	}
	if f.held != nil && now == f.seen {
		return f.held, nil
	}
	pair, err := tls.LoadX509KeyPair(f.names[0], f.names[1])
	if err != nil {
		return f.orHeld(fmt.Errorf("read client certificate %s with key %s: %w", f.names[0], f.names[1], err))
	}
	f.held, f.seen = &pair, now
	return f.held, nil
}

// orHeld returns the certificate of before while it is good, and else why there is none.
func (f *certificateFiles) orHeld(err error) (*tls.Certificate, error) {
	if f.held != nil && time.Now().Before(f.held.Leaf.NotAfter) {
		return f.held, nil
	}
	return nil, err
}

// rotating sends requests over connections that were made with the certificate of the moment: the service knows a connection by the
// certificate that it began with.
type rotating struct {
	next  Certificate
	fresh func(*tls.Certificate) *http.Transport

	mu      sync.Mutex
	leaf    []byte // DER of the certificate of current
	current *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (r *rotating) RoundTrip(req *http.Request) (*http.Response, error) {
	t, err := r.transport()
	if err != nil {
		if req.Body != nil {
			err = errors.Join(err, req.Body.Close())
		}
		return nil, err
	}
	return t.RoundTrip(req)
}

func (r *rotating) transport() (*http.Transport, error) {
	cert, err := r.next()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil || !bytes.Equal(r.leaf, cert.Certificate[0]) {
		if r.current != nil {
			r.current.CloseIdleConnections() // requests under way go on
		}
		r.leaf, r.current = cert.Certificate[0], r.fresh(cert)
	}
	return r.current, nil
}

// CloseIdleConnections has http.Client close those of this transport.
func (r *rotating) CloseIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil {
		r.current.CloseIdleConnections()
	}
}

// showing returns an HTTP client that shows the certificates of a source, whatever the service asks for: it says why it takes one no more.
func (c *Client) showing(source Certificate) *http.Client {
	return &http.Client{
		Transport: &rotating{next: source, fresh: func(cert *tls.Certificate) *http.Transport {
			config := c.tls.Clone()
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
			return c.transport(config)
		}},
		CheckRedirect: refuseRedirect,
	}
}
