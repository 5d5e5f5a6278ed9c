package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
)

// Certificate is the service's TLS certificate, replaced by Reload while
// connections go on.
type Certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

// LoadCertificate reads a PEM certificate chain and its private key.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	if err := c.Reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Reload reads the files again. On error the certificate in use stays.
func (c *Certificate) Reload() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("read TLS file %s: %w", pathErr.Path, pathErr.Err)
	}
	if err != nil {
		return fmt.Errorf("TLS certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	c.current.Store(&pair)
	return nil
}

// Config gives the server's TLS configuration: TLS 1.3 only, because channel
// binding needs it and every caller is ours.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	}
}
