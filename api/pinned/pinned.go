// Package pinned makes connections to servers of which one public key is believed, and no authority.
package pinned

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"net/http"
	"sync"
	"time"
)

// mostServers bounds the servers with connections that are kept.
const mostServers = 16

// Transports keeps connections to servers. The zero value has none. Methods are safe for concurrent use.
type Transports struct {
	mu     sync.Mutex
	cached map[string]*http.Transport // by address and public key
}

// To returns a transport to a server, as HOST:PORT, which believes the one public key whose SHA-256 is pin, and waits so long for the
// header of an answer. The first call for a server and a pin says how long.
func (p *Transports) To(server string, pin []byte, wait time.Duration) http.RoundTripper {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := server + " " + string(pin)
	if t := p.cached[key]; t != nil {
		return t
	}
	if p.cached == nil || len(p.cached) >= mostServers {
		for _, t := range p.cached {
			t.CloseIdleConnections()
		}
		p.cached = map[string]*http.Transport{}
	}
	t := &http.Transport{
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13,
			// The key is compared below with what the instance wrote into the store, which
			// only instances can write to.
			InsecureSkipVerify: true,
			VerifyConnection:   func(s tls.ConnectionState) error { return check(s, pin) },
		},
		TLSHandshakeTimeout: 5 * time.Second, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 8, ResponseHeaderTimeout: wait,
	}
	p.cached[key] = t
	return t
}

// check returns an error unless the public key of a server's certificate has a SHA-256.
func check(s tls.ConnectionState, pin []byte) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("it shows no certificate")
	}
	have := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo)
	if subtle.ConstantTimeCompare(have[:], pin) != 1 {
		return errors.New("its certificate has another public key than it recorded: look whether another program listens there")
	}
	return nil
}
