package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/preauth"
	"portcullis/api/problem"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// HostAuthority knows the certificates of hosts. Package api/hostca implements it.
// Errors and actors are as those of Backend.
type HostAuthority interface {
	// Pool returns the authorities whose certificates count now. It is called for each connection of any client, so it
	// takes some seconds at most, and writes to the log itself what hindered it.
	Pool(ctx context.Context) (*x509.CertPool, error)
	// Identify verifies a certificate and returns the host that it names. The Backend decides whether the host still holds
	// it.
	Identify(ctx context.Context, c *x509.Certificate) (host string, err error)

	Authorities(ctx context.Context) (*v1.HostAuthorities, error)
	Rotate(ctx context.Context, actor string, in v1.AuthorityRotation) (*v1.HostAuthorities, error)
}

// askForCertificate makes the listener ask for a certificate of a host or of a machine: as the authorities are when the connection
// comes, so that no rotation and no reload needs a restart. Where there are none, no client is asked. The certificate is not judged
// here. That is done for each request, so that neither a certificate that ends nor one that is revoked outlives it on an open
// connection. Sessions with certificates are not resumed: the thief of a ticket could do so without the key.
func (s *Server) askForCertificate(base *tls.Config) *tls.Config {
	if s.hosts == nil && s.machines == nil {
		return base
	}
	base.SessionTicketsDisabled = s.hosts != nil
	asking := base.Clone()
	asking.SessionTicketsDisabled = true
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := askedOf(s, hello)
		if errors.Is(err, preauth.ErrNoTurn) {
			return nil, err
		}
		if pool == nil {
			return nil, nil // as base, which asks for none: a client without a certificate is served
		}
		c := asking.Clone()
		c.ClientAuth, c.ClientCAs = tls.RequestClientCert, pool
		return c, nil
	}
	return base
}

// askedOf returns the authorities that a client is asked for certificates of: it and its user see by them whether one of its own is
// meant. Nil: there are none.
func askedOf(s *Server, hello *tls.ClientHelloInfo) (pool *x509.CertPool, err error) {
	if s.hosts != nil {
		if pool, err = poolOf(s.hosts, hello); err != nil {
			pool = nil
			s.log.DebugContext(hello.Context(), "no host is asked for its certificate", "err", err)
		}
	}
	if s.machines == nil {
		return pool, err
	}
	for _, a := range s.machines.Authorities() {
		if pool == nil {
			pool = x509.NewCertPool()
		}
		for _, c := range a.Roots {
			pool.AddCert(c)
		}
	}
	return pool, err
}

// poolOf returns the authorities of certificates of hosts. Reading them may wait for the store: the connection holds no turn
// meanwhile.
func poolOf(hosts HostAuthority, hello *tls.ClientHelloInfo) (pool *x509.CertPool, err error) {
	if ended := preauth.Pause(hello.Conn, func() { pool, err = hosts.Pool(hello.Context()) }); ended != nil {
		return nil, ended
	}
	return pool, err
}

// peer is the host at the other end of a connection, by its certificate.
type peer struct {
	host string
	cert *x509.Certificate
}

type peerKey struct{}

// peerOf returns the host that showed its certificate for this request; zero: none did.
func peerOf(ctx context.Context) peer {
	p, _ := ctx.Value(peerKey{}).(peer)
	return p
}

// certified finds out which host's certificate came with the connection, if one did. One that
// is not in force and a host's opens nothing, whatever else is sent. That of a machine is left to ownerOf.
func (s *Server) certified(ctx context.Context, state *tls.ConnectionState) (peer, *problem.Problem) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return peer{}, nil
	}
	if s.hosts == nil {
		return peer{}, unknownCertificate()
	}
	cert := state.PeerCertificates[0]
	host, err := s.hosts.Identify(ctx, cert)
	switch {
	case refusal.IsKind(err, refusal.Refused):
		return peer{}, unknownCertificate()
	case err != nil:
		p, fault := problem.OfHost(err)
		noteFault(ctx, fault)
		return peer{}, p
	}
	return peer{host, cert}, nil
}

func unknownCertificate() *problem.Problem {
	return problem.New(http.StatusUnauthorized, v1.CodeUnauthenticated,
		"the client certificate is not one of a host of this service that is in force",
		"connect without one; accepted evidence earns a host its own")
}

// mayAs refuses what a host may not do with its certificate, which is everything but to
// read its own status.
func (p peer) mayAs(a access) *problem.Problem {
	if p.cert == nil || a == accessStatus || a == accessPublic {
		return nil
	}
	return problem.New(http.StatusForbidden, v1.CodeForbidden,
		"the certificate of host "+p.host+" reads the status of this host and does nothing else",
		"connect without a client certificate")
}

// admitPeer checks the certificate of a request, if it came with one, for a route.
func (s *Server) admitPeer(ctx context.Context, a access) (peer, *problem.Problem) {
	if a == accessPublic || a.asksCredential() && ofMachine(s, noteOf(ctx).tls) {
		return peer{}, nil
	}
	p, refused := s.certified(ctx, noteOf(ctx).tls)
	if refused == nil {
		refused = p.mayAs(a)
	}
	return p, refused
}

// ofMachine reports whether the certificate of a connection is judged as that of a machine.
func ofMachine(s *Server, state *tls.ConnectionState) bool {
	return s.machines != nil && state != nil && len(state.PeerCertificates) > 0 && s.machines.Judges(state.PeerCertificates[0])
}

type (
	authoritiesOutput struct{ Body *v1.HostAuthorities }
	rotateInput       struct{ Body v1.AuthorityRotation }
)

func (s *Server) hostAuthorityRoutes(a huma.API) {
	none := problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable,
		"the service issues no certificates for hosts", "name a root for their authority (host_certificates.ca_root) and start it again")
	register(s, a, operation{
		id: "list-host-authorities", method: http.MethodGet, path: "/v1/host-authority", tag: "hosts",
		summary: "List the authorities that certificates of hosts come from, for relying parties", access: accessView,
	}, func(ctx context.Context, _ *struct{}) (*authoritiesOutput, error) {
		if s.hosts == nil {
			return nil, none
		}
		all, err := s.hosts.Authorities(ctx)
		return &authoritiesOutput{all}, err
	})
	register(s, a, operation{
		id: "rotate-host-authority", method: http.MethodPost, path: "/v1/host-authority/rotate", tag: "hosts",
		summary: "Make the next authority for certificates of hosts; those of before stay valid, unless it is to be at once", access: accessOperate,
	}, func(ctx context.Context, in *rotateInput) (*authoritiesOutput, error) {
		if s.hosts == nil {
			return nil, none
		}
		all, err := s.hosts.Rotate(ctx, actor(ctx), in.Body)
		return &authoritiesOutput{all}, err
	})
}
