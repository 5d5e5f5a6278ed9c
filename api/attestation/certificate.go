package attestation

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"portcullis/api/attestation/session"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// Certifier issues certificates for keys of hosts. Package api/hostca implements it.
type Certifier interface {
	Issue(ctx context.Context, host string, key *ecdsa.PublicKey) (*x509.Certificate, error)
}

// certify checks the key that came with a seal, and returns its certificate. It returns nil where none was requested or the
// service issues none. A valid host that gets no certificate is admitted all the same: it still has its status token.
func (s *Service) certify(ctx context.Context, rec hostrecord.SealRecord, channel []byte, k *attest.HostKey) (*x509.Certificate, *attest.Refusal) {
	if k == nil || s.o.Certifier == nil {
		return nil, nil
	}
	key, no := attest.VerifyHostKey(rec.Challenge, channel, k)
	if no != nil {
		return nil, no
	}
	cert, err := s.o.Certifier.Issue(ctx, rec.Host, key)
	if err != nil {
		s.o.Log.Error("a host gets no certificate", "host", rec.Host, "err", err)
		return nil, nil
	}
	return cert, nil
}

// offering says in a challenge whether its seal may bring a key.
func (s *Service) offering(seal *attest.Seal) *attest.Seal {
	if seal != nil {
		seal.HostKey = s.o.Certifier != nil
	}
	return seal
}

// held is how a certificate is kept.
func held(c *x509.Certificate, rec *hostrecord.SealRecord) *hostrecord.Certificate {
	if c == nil {
		return nil
	}
	return &hostrecord.Certificate{SHA256: certificateDigest(c.Raw), Session: session.Number(rec.Challenge.Session), Epoch: rec.Epoch, Until: c.NotAfter.UTC()}
}

// certified describes a certificate for the audit log.
func certified(c *x509.Certificate) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("; certificate %x until %s", c.SerialNumber, c.NotAfter.UTC().Format(time.RFC3339))
}

func certificateDigest(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// HostStatusByCertificate returns a host to a caller that holds the key of its certificate, given as DER. The caller has
// verified that the certificate is one of the service's for that host, and that it is in force. The host's record names the
// certificate that counts. It stops counting with the assignment or the evidence that it was issued for, by a newer
// certificate, while the host is held, while its evidence is too old, or when its EK is denied.
func (s *Service) HostStatusByCertificate(ctx context.Context, host string, der []byte) (*v1.Host, error) {
	unknown := refusal.New(refusal.Refused, "certificate_unknown", "attest again to get a new one", "the certificate does not count any more, or was replaced by a newer one")
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	f, err := s.o.Admission.Look(ctx, snap, host)
	if refusal.IsKind(err, refusal.NotFound) || errors.Is(err, store.ErrNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, refusal.Explain(err)
	}
	if !f.Record.Holds(certificateDigest(der), f.Now) || !onItsWay(f.Phase) || s.o.Policy.Denied[strings.ToLower(f.Host.EK)] {
		return nil, unknown
	}
	return f.Shown, nil
}

// onItsWay reports whether evidence of a host counts: it is not too old, and nothing took it back.
func onItsWay(p v1.Phase) bool {
	return p == v1.PhaseVerified || p == v1.PhaseGranting || p == v1.PhaseAdmitted
}
