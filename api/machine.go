package api

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"time"

	"portcullis/api/clientcert"
	"portcullis/api/credential"
	"portcullis/api/preauth"
	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// MachineVerifier verifies certificates by which clients authenticate in place of a token. Package api/clientcert implements it.
type MachineVerifier interface {
	// Authorities returns those whose certificates are accepted; none: no client is asked for one.
	Authorities() []clientcert.Authority
	// Judges reports whether a certificate is to be verified here. Those of hosts are not.
	Judges(leaf *x509.Certificate) bool
	// Known returns the owner of a certificate that was verified before. It does no work for others.
	Known(leaf *x509.Certificate, now time.Time) (credential.Principal, bool)
	// Authenticate returns the owner of a certificate, or a *clientcert.Refused.
	Authenticate(ctx context.Context, shown []*x509.Certificate, now time.Time, turn clientcert.Turn) (credential.Principal, error)
	// Verify is Authenticate without a turn, for one that was verified once.
	Verify(shown []*x509.Certificate, now time.Time) (credential.Principal, error)
}

// shownBy returns the certificates that came with the connection of a request, if they are judged as those of a machine; nil
// otherwise. Such a certificate is the credential of each request on the connection. It is verified for each of them, as the
// authorities are then: neither a certificate that ends nor one whose authority or rule was removed outlives that on an open connection.
func shownBy(s *Server, r *http.Request) []*x509.Certificate {
	if !ofMachine(s, r.TLS) {
		return nil
	}
	return r.TLS.PeerCertificates
}

// machineOf returns the owner of a certificate. One that is not known takes one of the slots that all requests without a credential
// share. A request with two credentials is refused: which of them an entry of the audit log should name would depend on a rule that
// its sender may not know. A browser sends a certificate of its user with what any page of the web has it request, unlike a token: what
// changes something is refused when another origin asked for it.
func machineOf(s *Server, r *http.Request, shown []*x509.Certificate) (credential.Principal, *problem.Problem) {
	who, err := s.machines.Authenticate(r.Context(), shown, time.Now(), func(ctx context.Context) (func(), bool) { return s.preauth.Enter(ctx, preauth.SourceOf(r.RemoteAddr)) })
	refused, ok := errors.AsType[*clientcert.Refused](err)
	switch {
	case err == nil && r.Header.Get("Authorization") != "":
		return credential.Principal{}, problem.New(http.StatusBadRequest, v1.CodeTwoCredentials,
			"the request has a client certificate and the header Authorization: it is of one credential", "send one of them: leave the header out, or connect without the certificate")
	case err == nil && new(http.CrossOriginProtection).Check(r) != nil:
		return credential.Principal{}, problem.New(http.StatusForbidden, v1.CodeForbidden, "a page of another origin had a browser send the request with a client certificate",
			"find out which page that is; send the request from another program than a browser")
	case err == nil:
		return who, nil
	case !ok:
		noteFault(r.Context(), err)
		return credential.Principal{}, problem.Internal()
	case refused.Busy:
		s.metrics.refused("work")
		return credential.Principal{}, problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, refused.Detail, refused.Hint)
	case refused.Forbidden:
		return credential.Principal{}, problem.New(http.StatusForbidden, v1.CodeForbidden, refused.Detail, refused.Hint)
	default:
		return credential.Principal{}, problem.New(http.StatusUnauthorized, v1.CodeUnauthenticated, "the client certificate is refused: "+refused.Detail, refused.Hint)
	}
}

// SetClientAuthorities notes that the authorities of client certificates were replaced: streams of those that are good no more end.
func (s *Server) SetClientAuthorities() { s.credentials.renew() }
