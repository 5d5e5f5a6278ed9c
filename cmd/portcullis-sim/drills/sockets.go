package drills

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"portcullis/api/ca"
	"portcullis/api/servercert"
	"portcullis/fabricsm/drill"
)

// patience bounds a wait on a socket of this machine: only there time is that of the wall.
const patience = 5 * time.Second

// endpoint is a server with TLS on this machine, as an attacker has one, or a neighbour of the service.
type endpoint struct {
	URL   string
	roots *x509.CertPool
	pem   []byte // of the authority
	asked atomic.Int64
	opens atomic.Int64 // connections
	srv   *http.Server
}

// newEndpoint starts one. The parameter h answers; nil: nothing.
func newEndpoint(s *drill.Scene, h http.HandlerFunc) *endpoint {
	e := &endpoint{roots: x509.NewCertPool()}
	cert, authority := identityOf(s)
	e.pem = authority
	e.roots.AppendCertsFromPEM(authority)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.Must(err)
	e.URL = "https://" + l.Addr().String()
	e.srv = &http.Server{
		ReadHeaderTimeout: patience, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13},
		ConnState: func(_ net.Conn, st http.ConnState) {
			if st == http.StateNew {
				e.opens.Add(1)
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e.asked.Add(1)
			if h != nil {
				h(w, r)
			}
		}),
	}
	go func() { _ = e.srv.ServeTLS(l, "", "") }() // it ends with Close
	return e
}

func (e *endpoint) close() { _ = e.srv.Close() }

// identityOf makes an authority, and a certificate of it for this machine.
func identityOf(s *drill.Scene) (cert tls.Certificate, authority []byte) {
	root, err := ca.New("drill", time.Now())
	s.Must(err)
	pair, err := root.IssueServer([]string{"127.0.0.1", "localhost"}, time.Now())
	s.Must(err)
	cert, err = tls.X509KeyPair(pair.Cert, pair.Key)
	s.Must(err)
	return cert, authorityOf(s, root)
}

// authorityOf is the certificate of an authority as PEM.
func authorityOf(s *drill.Scene, root *ca.Authority) []byte {
	pair, err := root.PEM()
	s.Must(err)
	return pair.Cert
}

// served is the API of a site on a socket.
type served struct {
	addr string
	pem  []byte // of its authority
	stop func()
}

// listen serves the API of a site until stop is called.
func (v *site) listen() *served {
	s := v.scene
	root, err := ca.New("drill", time.Now())
	s.Must(err)
	pair, err := root.IssueServer([]string{"127.0.0.1"}, time.Now())
	s.Must(err)
	dir, err := os.MkdirTemp("", "drill-")
	s.Must(err)
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	s.Must(errors.Join(os.WriteFile(certFile, pair.Cert, 0o600), os.WriteFile(keyFile, pair.Key, 0o600)))
	cert, err := servercert.Load(certFile, keyFile)
	s.Must(errors.Join(err, os.RemoveAll(dir)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.Must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- v.api.Serve(ctx, l, cert) }()
	return &served{addr: l.Addr().String(), pem: authorityOf(s, root), stop: func() {
		cancel()
		s.Must(<-ended)
	}}
}

// dial opens a connection to the API that speaks HTTP/1.1.
func (d *served) dial(s *drill.Scene) *tls.Conn {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(d.pem)
	c, err := tls.Dial("tcp", d.addr, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13})
	s.Must(err)
	s.Must(c.SetDeadline(time.Now().Add(patience)))
	return c
}
