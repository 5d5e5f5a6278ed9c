package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/tpm"
)

// submit attests until the service accepts or refuses. Each attempt is a new
// connection and a new session: evidence is bound to both.
func (r *run) submit(ctx context.Context, dev *tpm.TPM, keys *tpm.Keys) (*v1.AttestResult, error) {
	var result *v1.AttestResult
	err := r.retry(ctx, "no verdict from "+r.config.Service, func() (err error) {
		result, err = r.attempt(ctx, dev, keys)
		return err
	}, isTransient)
	if err != nil {
		return nil, explain(err, r.config)
	}
	return result, nil
}

func (r *run) attempt(ctx context.Context, dev *tpm.TPM, keys *tpm.Keys) (*v1.AttestResult, error) {
	r.say("connecting to " + r.config.Service)
	ch, err := r.client.OpenChannel(ctx)
	if err != nil {
		return nil, err
	}
	defer ch.Close()
	// Only once the service answers is a statement measured: there are eight
	// in one boot.
	m, err := r.measure(ctx, dev, keys)
	if err != nil {
		return nil, err
	}
	r.say("asking for a challenge")
	s, err := ch.OpenSession(ctx, &attest.SessionRequest{
		Host: r.config.Host, EK: keys.Claim(), AKPublic: keys.AKPublic(),
	})
	if err != nil {
		return nil, err
	}
	ev, err := r.evidence(ctx, ch, s, m, keys)
	if err != nil {
		return nil, err
	}
	r.say("sending evidence")
	return ch.SubmitEvidence(ctx, s.ID, ev)
}

// evidence answers the challenge.
func (r *run) evidence(ctx context.Context, ch *client.Channel, s *attest.Session, m *measured, keys *tpm.Keys) (*attest.Evidence, error) {
	binding, err := r.binding(ch, s)
	if err != nil {
		return nil, err
	}
	secret, err := keys.Activate(ctx, s.CredentialBlob, s.EncryptedSecret)
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	sum := m.Digests[len(m.Digests)-1]
	q, err := keys.Quote(ctx, s.PCRs, attest.QualifyingData(s.ID, s.Nonce, sum, binding, keys.AKName()))
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	ev := &attest.Evidence{
		Statement: m.Statement, StatementDigests: m.Digests,
		Quote: q.Attest, Signature: q.Signature, PCRValues: q.Values,
	}
	ev.Proof = attest.Proof(secret, s.ID, ev)
	return ev, nil
}

// binding checks that the service's terms are ours before anything is signed.
func (r *run) binding(ch *client.Channel, s *attest.Session) ([]byte, error) {
	const hint = "make the agent's configuration agree with the service's attestation policy"
	if s.AgentPCR != r.config.AgentPCR {
		return nil, failf(ClassRefused, hint, "the service wants the statement in PCR %d, this agent measures into PCR %d", s.AgentPCR, r.config.AgentPCR)
	}
	switch {
	case len(s.PCRs) == 0 || len(s.PCRs) > 24 || s.PCRs[0] < 0 || s.PCRs[len(s.PCRs)-1] > 23:
		return nil, failf(ClassRefused, hint, "the service wants a quote over PCRs %v", s.PCRs)
	case s.Channel == attest.ChannelExporter:
		return ch.Binding(), nil
	case r.config.ChannelBinding == BindingOff:
		return nil, nil
	default:
		return nil, failf(ClassRefused, hint, "the service does not bind evidence to the connection, and channel_binding is %s", r.config.ChannelBinding)
	}
}

// isTransient reports whether another attempt may do better.
func isTransient(err error) bool {
	if _, ours := errors.AsType[*Error](err); ours || isUntrusted(err) {
		return false
	}
	if p, ok := errors.AsType[*v1.Problem](err); ok {
		return p.Status >= 500 || p.Status == http.StatusTooManyRequests || p.Status == http.StatusRequestTimeout
	}
	return true
}

// isUntrusted reports that somebody answers who is not the service.
func isUntrusted(err error) bool {
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	return verify || authority || name
}

// explain gives an error of the exchange its class.
func explain(err error, c *Config) error {
	if ours, ok := errors.AsType[*Error](err); ok {
		return ours
	}
	if isUntrusted(err) {
		return failf(ClassUntrusted, "check that "+c.CA+" is the CA of the service, and that the URL has the name in its certificate",
			"%s does not prove to be the service: %w", c.Service, err)
	}
	if p, ok := errors.AsType[*v1.Problem](err); ok && !isTransient(err) {
		return failf(ClassRefused, p.Hint, "the service refused host %s: %w", c.Host, p)
	}
	return failf(ClassUnreachable, "check the network, the URL and that portcullisd runs", "%s gave no verdict in time: %w", c.Service, err)
}
