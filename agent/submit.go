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

// submit attests until the service accepts or refuses, and then hands the host
// over. Each attempt is a new connection and a new session: evidence is bound to
// both.
func (r *run) submit(ctx context.Context, dev *tpm.TPM, keys *tpm.Keys) (*v1.AttestResult, error) {
	var result *v1.AttestResult
	err := r.retry(ctx, "no verdict from "+r.config.Service, func() error {
		a, err := r.attempt(ctx, dev, keys)
		if err == nil && a.result.LockTicket != "" {
			a, err = r.lockFirst(ctx, dev, keys, a)
		}
		if errors.Is(err, errOpened) {
			result = &v1.AttestResult{Host: r.config.Host, Phase: v1.PhaseAwaiting}
			return nil
		}
		if err != nil {
			return err
		}
		defer r.discard(ctx, a.pair)
		result = a.result
		if !r.goal.handsOver() {
			return nil
		}
		return r.handOver(ctx, dev, a)
	}, isTransient)
	switch {
	case err != nil:
		return nil, r.suspectProxy(explain(err, r.config))
	case r.goal == Opened && r.opened == 0:
		return nil, failf(ClassLock, "portcullis lock release GUID decides that an adapter leaves", "no adapter of host %s leaves by decision of the service", r.config.Host)
	}
	return result, nil
}

// accepted is evidence that the service accepted, and the keys it was made with.
type accepted struct {
	keys    *tpm.Keys
	pair    *tpm.Pair
	m       *measured
	session *attest.Session
	result  *v1.AttestResult
}

// attempt makes evidence and sends it. On error nothing is left in the TPM.
func (r *run) attempt(ctx context.Context, dev *tpm.TPM, keys *tpm.Keys) (*accepted, error) {
	if proxy, _ := r.client.Proxy(); proxy != "" {
		r.say("connecting to " + r.config.Service + " through the proxy " + proxy)
	} else {
		r.say("connecting to " + r.config.Service)
	}
	ch, err := r.connect(ctx)
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
	pair, err := keys.NewPair(ctx, r.config.AgentPCR, attest.OpenPCRValue(m.Start, m.Digests))
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	a := &accepted{keys: keys, pair: pair, m: m}
	if err := r.exchange(ctx, ch, a); err != nil {
		r.discard(ctx, pair)
		return nil, err
	}
	return a, nil
}

// connect opens a connection that stays. Whether the service is ready is asked
// for the asking's sake: it closes a connection that no request came over within
// seconds, and to read adapters and make keys may take longer than that, while
// one that was used once is kept for minutes.
func (r *run) connect(ctx context.Context) (*client.Channel, error) {
	ch, err := r.client.OpenChannel(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err := ch.Hello(ctx); err != nil {
		ch.Close()
		return nil, err
	}
	return ch, nil
}

// loaded is what takes a place in the TPM.
type loaded interface {
	Close(ctx context.Context) error
}

// discard flushes keys.
func (r *run) discard(ctx context.Context, keys loaded) {
	if err := keys.Close(ctx); err != nil {
		r.log.Warn("keys left in the TPM", "error", err)
	}
}

// exchange opens a session and answers it.
func (r *run) exchange(ctx context.Context, ch *client.Channel, a *accepted) (err error) {
	r.say("asking for a challenge")
	a.session, err = ch.OpenSession(ctx, &attest.SessionRequest{
		Host: r.config.Host, EK: a.keys.Claim(), Start: a.m.Start, StatementDigests: a.m.Digests,
		AK1Public: a.pair.AK1.Public(), AK2Public: a.pair.AK2.Public(), Locks: r.config.LockAdapters && r.goal.locks(),
	})
	if err != nil {
		return err
	}
	ev, err := r.evidence(ctx, ch, a)
	if err != nil {
		return err
	}
	r.say("sending evidence")
	a.result, err = ch.SubmitEvidence(ctx, a.session.ID, ev)
	return err
}

// evidence answers the challenge.
func (r *run) evidence(ctx context.Context, ch *client.Channel, a *accepted) (*attest.Evidence, error) {
	s := a.session
	binding, err := r.binding(ch, s)
	if err != nil {
		return nil, err
	}
	secret, err := a.pair.AK1.Activate(ctx, s.CredentialBlob, s.EncryptedSecret)
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	qualifying := attest.QualifyingData(s.ID, s.Nonce, a.m.last(), binding, a.pair.AK1.Name())
	q, err := a.pair.AK1.Quote(ctx, s.PCRs, qualifying)
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	c, err := a.pair.AK1.Certify(ctx, a.pair.AK2, qualifying)
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	log, err := r.config.eventLog()
	if err != nil {
		return nil, err
	}
	if len(log) == 0 {
		r.log.Warn("the kernel shows no event log of the firmware; the service will probably not trust this boot", "file", r.config.eventLogPath())
	}
	ev := &attest.Evidence{
		EventLog: log, Statement: a.m.Statement, Quote: q.Attest, Signature: q.Signature, PCRValues: q.Values,
		Certify: c.Attest, CertifySignature: c.Signature,
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
	if len(s.PCRs) == 0 || len(s.PCRs) > 24 || s.PCRs[0] < 0 || s.PCRs[len(s.PCRs)-1] > 23 {
		return nil, failf(ClassRefused, hint, "the service wants a quote over PCRs %v", s.PCRs)
	}
	return r.bindingFor(ch, s.Channel)
}

// bindingFor returns the binding that the service wants, if this agent agrees.
func (r *run) bindingFor(ch *client.Channel, channel string) ([]byte, error) {
	const hint = "make the agent's configuration agree with the service's attestation policy"
	switch {
	case channel == attest.ChannelExporter:
		return ch.Binding(), nil
	case r.config.ChannelBinding == BindingOff:
		return nil, nil
	default:
		return nil, failf(ClassRefused, hint, "the service does not bind evidence to the connection, and channel_binding is %s", r.config.ChannelBinding)
	}
}

// suspectProxy adds to the hint of a refusal: a proxy that ends TLS, under a CA that this
// host trusts, leaves evidence bound to another connection than the service sees.
func (r *run) suspectProxy(err error) error {
	e, ok := errors.AsType[*Error](err)
	if proxy, _ := r.client.Proxy(); ok && e.Class == ClassRefused && proxy != "" {
		hint := "if the service names the reason nonce, check that the proxy " + proxy + " does not end TLS"
		if e.Hint != "" {
			hint = e.Hint + "; " + hint
		}
		return fail(e.Class, hint, e.Err)
	}
	return err
}

// isTransient reports whether another attempt may do better.
func isTransient(err error) bool {
	if _, ours := errors.AsType[*Error](err); ours {
		return false
	}
	if isUntrusted(err) {
		return isOfAnotherTime(err) // a host's clock may be set only after a while
	}
	if p, ok := errors.AsType[*v1.Problem](err); ok {
		return p.Status >= 500 || p.Status == http.StatusTooManyRequests || p.Status == http.StatusRequestTimeout
	}
	return true
}

// isUntrusted reports whether the answer came from a server that is not the service.
func isUntrusted(err error) bool {
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	return verify || authority || name
}

// isOfAnotherTime reports a certificate that is not valid now, or a clock that is
// wrong.
func isOfAnotherTime(err error) bool {
	c, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && c.Reason == x509.Expired
}

// explain returns an error of the exchange with its class.
func explain(err error, conf *Config) error {
	if ours, ok := errors.AsType[*Error](err); ok {
		return ours
	}
	if isOfAnotherTime(err) {
		return failf(ClassUntrusted, "compare this host's clock with the service's, and check that the service's certificate is renewed in time",
			"%s does not prove that it is the service: %w", conf.Service, err)
	}
	proxy, proxied := errors.AsType[*client.ProxyError](err)
	if proxied && proxy.EndsTLS {
		return failf(ClassUntrusted, "configure the proxy to pass TLS to "+proxy.Service+" unchanged, or name it in NO_PROXY; if it does, check that "+conf.CA+" is the CA of the service",
			"%s is not reached: %w", conf.Service, err)
	}
	if isUntrusted(err) && !proxied {
		return failf(ClassUntrusted, "check that "+conf.CA+" is the CA of the service, and that the URL has the name in its certificate",
			"%s does not prove that it is the service: %w", conf.Service, err)
	}
	if p, ok := errors.AsType[*v1.Problem](err); ok && !isTransient(err) {
		return failf(ClassRefused, p.Hint, "the service refused host %s: %w", conf.Host, p)
	}
	if proxied && isUntrusted(err) {
		return failf(ClassUntrusted, "set HTTPS_PROXY to a proxy without TLS of its own (http://HOST:PORT): "+conf.CA+" is the only CA that is trusted",
			"the proxy of HTTPS_PROXY does not prove its identity: %w", err)
	}
	if proxied {
		return failf(ClassUnreachable, "check HTTPS_PROXY and NO_PROXY, and that the proxy connects to "+proxy.Service, "%s sent no verdict in time: %w", conf.Service, err)
	}
	return failf(ClassUnreachable, "check the network, the URL and that portcullisd runs", "%s sent no verdict in time: %w", conf.Service, err)
}
