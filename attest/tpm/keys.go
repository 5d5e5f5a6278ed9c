package tpm

import (
	"context"
	"errors"

	"portcullis/attest"
	"portcullis/attest/ek"
)

// Keys are the EK, loaded, and the keys made below it.
type Keys struct {
	t      *TPM
	ek     *endorsement
	closed bool
}

// NewKeys creates the EK, the best of the given kinds or of all: one with a
// certificate before one without. Close must be called.
func (t *TPM) NewKeys(ctx context.Context, kinds ...ek.Kind) (*Keys, error) {
	if len(kinds) == 0 {
		kinds = ek.Kinds()
	}
	e, err := t.endorse(ctx, kinds)
	if err != nil {
		return nil, err
	}
	return &Keys{t: t, ek: e}, nil
}

// Claim names the EK to the service.
func (k *Keys) Claim() attest.EKClaim { return k.ek.claim }

// EKDigest is how inventory names this TPM: hex SHA-256 of the EK's
// SubjectPublicKeyInfo.
func (k *Keys) EKDigest() string { return k.ek.digest }

// HasCertificate reports whether the TPM holds a certificate for the EK.
func (k *Keys) HasCertificate() bool { return len(k.ek.claim.Certificates) > 0 }

// Close flushes the EK, once. It works after the caller's context has ended.
func (k *Keys) Close(ctx context.Context) error {
	if k.closed {
		return nil
	}
	k.closed = true
	return k.t.flush(context.WithoutCancel(ctx), k.ek.handle)
}

// Pair is the two attestation keys of a session: AK1 signs while the agent PCR
// holds what was measured, AK2 once it was capped.
type Pair struct {
	AK1, AK2 *AK
}

// NewPair creates both keys for the present or future value of the register.
func (k *Keys) NewPair(ctx context.Context, agentPCR int, open []byte) (*Pair, error) {
	one, err := k.NewAK(ctx, agentPCR, open)
	if err != nil {
		return nil, err
	}
	two, err := k.NewAK(ctx, agentPCR, attest.CappedPCRValue(open))
	if err != nil {
		return nil, errors.Join(err, one.Close(ctx))
	}
	return &Pair{AK1: one, AK2: two}, nil
}

// Close flushes both keys.
func (p *Pair) Close(ctx context.Context) error {
	return errors.Join(p.AK1.Close(ctx), p.AK2.Close(ctx))
}
