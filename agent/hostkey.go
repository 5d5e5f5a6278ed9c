package agent

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/tpm"
)

// certified is a key of the host and its certificate, as kept in the state folder. The
// TPM that made it alone can use it, and only in the boot of the hand-over.
type certified struct {
	Host        string        `json:"host"`
	Key         tpm.StoredKey `json:"key"`
	Certificate []byte        `json:"certificate"` // DER
}

// hostKey is a key to be certified with the hand-over, or nil if there is none. No fault of it ends a hand-over: without a
// certificate the host has its status token.
type hostKey struct {
	*tpm.HostKey
	r    *run
	host string
}

// newHostKey makes a key for a hand-over whose register is capped, if the service
// certifies one.
func (r *run) newHostKey(ctx context.Context, dev *tpm.TPM, h *handOver) *hostKey {
	if !h.HostKey || !r.config.Certificate {
		return nil
	}
	if err := os.Remove(filepath.Join(r.state.dir, hostKeyFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.log.Warn("a key of an earlier hand-over is left", "error", err)
	}
	k, err := dev.NewHostKey(ctx, h.AgentPCR, attest.CappedPCRValue(h.Open))
	if err != nil {
		r.log.Warn("this host asks for no certificate", "error", err)
		return nil
	}
	return &hostKey{k, r, h.Host}
}

func (k *hostKey) close(ctx context.Context) {
	if k != nil {
		k.r.discard(ctx, k.HostKey)
	}
}

// certify has the second key certify the host's, for one nonce and connection.
func (k *hostKey) certify(ctx context.Context, ak2 *tpm.AK, h *handOver, binding []byte) *attest.HostKey {
	if k == nil {
		return nil
	}
	c, err := ak2.Certify(ctx, k.HostKey, attest.HostKeyQualifyingData(h.Session, h.Nonce, h.Statement, binding, k.Name()))
	if err == nil {
		holder := sha256.Sum256(attest.HostKeyHolder(h.Session, h.Nonce, h.Statement, binding, k.Name()))
		var signature []byte
		if signature, err = k.Sign(ctx, holder[:]); err == nil {
			return &attest.HostKey{Public: k.Stored().Public, Certify: c.Attest, CertifySignature: c.Signature, Holder: signature}
		}
	}
	k.r.log.Warn("this host asks for no certificate", "error", err)
	return nil
}

// keep writes the certificate down, if there is one.
func (k *hostKey) keep(certificate []byte) {
	if k == nil || len(certificate) == 0 {
		return
	}
	c := &certified{Host: k.host, Key: k.Stored(), Certificate: certificate}
	parsed, err := x509.ParseCertificate(certificate)
	if err == nil {
		err = k.r.state.save(hostKeyFile, c)
	}
	if err != nil {
		k.r.log.Warn("the certificate is not stored", "error", err)
		return
	}
	k.r.log.Info("certificate of this host", "until", parsed.NotAfter.UTC())
}

// certified returns the stored certificate of a host, or nil if there is none that is valid at now.
func (s *stateDir) certified(host string, now time.Time) (*certified, error) {
	var c *certified
	if err := s.load(hostKeyFile, &c); err != nil || c == nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(c.Certificate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", filepath.Join(s.dir, hostKeyFile), errGarbled, err)
	}
	if host != "" && c.Host != host || !now.Before(cert.NotAfter) {
		return nil, nil
	}
	return c, nil
}

// client shows the certificate on each connection, which takes the TPM for a moment. It
// does so until ctx ends.
func (c *certified) client(ctx context.Context, base *client.Client, device string) (*client.Client, error) {
	signer, err := tpm.NewSigner(ctx, device, c.Key)
	if err != nil {
		return nil, err
	}
	return base.WithCertificate(tls.Certificate{
		Certificate: [][]byte{c.Certificate}, PrivateKey: signer,
		SupportedSignatureAlgorithms: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
	}), nil
}

// ownStatus reads this host's status: with its certificate as long as that is taken,
// else with its status token.
type ownStatus struct {
	r               *run
	certified       *client.Client // nil: none, or it is not taken any more
	token           *client.Client
	withCertificate bool // it was taken
}

// withCertificate adds the certificate that was kept, if there is one, to a client that
// has the status token.
func (r *run) withCertificate(ctx context.Context, token *client.Client) *ownStatus {
	s := &ownStatus{r: r, token: token}
	c, err := r.state.certified(r.config.Host, r.now())
	if err == nil && c != nil && r.config.Certificate {
		s.certified, err = c.client(ctx, r.client, r.config.TPM)
	}
	if err != nil {
		r.log.Warn("the certificate of this host is not used", "error", err)
	}
	return s
}

func (s *ownStatus) read(ctx context.Context) (*v1.Host, error) {
	if s.certified == nil {
		return s.token.AttestStatus(ctx)
	}
	h, why := s.certified.AttestStatus(ctx)
	if why == nil {
		if !s.withCertificate {
			s.withCertificate = true
			s.r.log.Info("the service takes the certificate of this host")
		}
		return h, nil
	}
	h, err := s.token.AttestStatus(ctx)
	if err == nil { // so it is not the network
		s.r.log.Warn("the service does not take the certificate of this host; its status token is used", "error", why)
		s.certified.Close()
		s.certified = nil
	}
	return h, err
}

func (s *ownStatus) close() {
	s.token.Close()
	if s.certified != nil {
		s.certified.Close()
	}
}

// statusTimeout bounds what Status waits for the service and the TPM.
const statusTimeout = 15 * time.Second

// Status asks the service for the state of this host, with the certificate that the host got at its hand-over. It returns
// nil if there is no certificate that could still be valid, or no service to ask.
func Status(ctx context.Context, c *Config, version string) (*v1.Host, error) {
	if c.Service == "" || c.CA == "" || !c.Certificate {
		return nil, nil
	}
	s := &stateDir{dir: c.StateDir}
	kept, err := s.certified(c.Host, time.Now())
	if err != nil {
		return nil, fail(ClassOther, s.hint(err), err)
	}
	if kept == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	base, err := newClient(c, version, "")
	if err != nil {
		return nil, err
	}
	defer base.Close()
	own, err := kept.client(ctx, base, c.TPM)
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	defer own.Close()
	h, err := own.AttestStatus(ctx)
	if err != nil {
		return nil, explain(err, c)
	}
	return h, nil
}

// Withdrawn says why a host is not on its way to its cluster, nil if it is there or on
// the way.
func Withdrawn(h *v1.Host) error {
	switch h.Status.Phase {
	case v1.PhaseAdmitted, v1.PhaseVerified, v1.PhaseGranting:
		return nil
	default:
		return failf(ClassRefused, "assign the host again, then "+rebootHint,
			"the service withdrew host %s: it is now %s: %s", h.ID, h.Status.Phase, unmet(h))
	}
}
