package apitest

import (
	"bytes"
	"context"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// SetStatusToken lets token read the status of host.
func (b *Backend) SetStatusToken(token, host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens[token] = host
}

// OpenSession implements api.Backend.
func (b *Backend) OpenSession(_ context.Context, req *attest.SessionRequest, _ string) (*attest.Session, error) {
	if b.OnSession == nil {
		return nil, &attest.Refusal{Code: attest.ReasonInventory, Detail: "secret reason of the session"}
	}
	return b.OnSession(req)
}

// AwaitsEvidence implements api.Backend.
func (b *Backend) AwaitsEvidence(context.Context, string) error { return nil }

// AwaitsSeal implements api.Backend.
func (b *Backend) AwaitsSeal(context.Context, string) error { return nil }

// SubmitEvidence implements api.Backend.
func (b *Backend) SubmitEvidence(_ context.Context, id string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error) {
	if b.OnEvidence == nil {
		return nil, &attest.Refusal{Code: attest.ReasonProof, Detail: "secret reason of the evidence"}
	}
	return b.OnEvidence(id, channel, ev)
}

// SubmitSeal implements api.Backend.
func (b *Backend) SubmitSeal(_ context.Context, id string, channel []byte, _ string, ev *attest.SealEvidence) (*v1.SealResult, error) {
	if b.OnSeal == nil {
		return nil, &attest.Refusal{Code: attest.ReasonSeal, Detail: "secret reason of the seal"}
	}
	return b.OnSeal(id, channel, ev)
}

// RenewSeal implements api.Backend: there is none.
func (b *Backend) RenewSeal(context.Context, string, string) (*attest.Seal, error) {
	return nil, &refusal.Error{Code: v1.CodeSealClosed, Status: refusal.Conflict, Detail: "no seal is awaited"}
}

// AttestationResult implements api.Backend: none is signed.
func (b *Backend) AttestationResult(context.Context, string, []byte) (*v1.AttestationResult, error) {
	return nil, &refusal.Error{Code: v1.CodeUnavailable, Status: refusal.Unavailable, Detail: "the service signs no attestation results", Hint: "give it a root"}
}

// HostStatusByToken implements api.Backend.
func (b *Backend) HostStatusByToken(ctx context.Context, token string) (*v1.Host, error) {
	b.mu.Lock()
	id, ok := b.tokens[token]
	b.mu.Unlock()
	if !ok {
		return nil, &refusal.Error{Code: "status_token", Status: refusal.Refused, Detail: "no such status token"}
	}
	return b.Host(ctx, id)
}

// HostStatusByCertificate implements api.Backend.
func (b *Backend) HostStatusByCertificate(ctx context.Context, host string, der []byte) (*v1.Host, error) {
	b.mu.Lock()
	holds := b.certificates[host]
	b.mu.Unlock()
	if holds == nil || !bytes.Equal(holds, der) {
		return nil, &refusal.Error{Code: "certificate_unknown", Status: refusal.Refused, Detail: "no such certificate"}
	}
	return b.Host(ctx, host)
}

// SetCertificate has a host hold a certificate (DER); nil: none.
func (b *Backend) SetCertificate(host string, der []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.certificates[host] = der
}
