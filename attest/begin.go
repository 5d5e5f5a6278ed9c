package attest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"portcullis/attest/ek"
)

const (
	sessionIDSize = 16 // bytes, hexadecimal in the ID
	secretSize    = 32 // bytes, fits a SHA-256 named object's credential
	nonceSize     = 32
)

// Begin checks that the EK is the one inventory has for the host, that both AKs
// have exactly the template and the policies that follow from what was
// measured, and makes a credential that only the TPM holding EK and first AK can
// open. An error is always a *Refusal or an error of rnd.
func Begin(rnd io.Reader, now time.Time, req *SessionRequest, exp Expected, pol *Policy) (*Challenge, *Session, error) {
	if r := pol.check(); r != nil {
		return nil, nil, r
	}
	if r := req.check(exp); r != nil {
		return nil, nil, r
	}
	e, r := checkEK(now, &req.EK, exp, pol)
	if r != nil {
		return nil, nil, r
	}
	if r := req.checkMeasured(pol); r != nil {
		return nil, nil, r
	}
	pair, err := parsePair(req.AK1Public, req.AK2Public, pol.AgentPCR, OpenPCRValue(req.Start, req.StatementDigests))
	if err != nil {
		return nil, nil, refuse(ReasonAK, "%v", err)
	}
	return challenge(rnd, now, req, e, pair.open, pol)
}

// check refuses what is malformed or too large before any cryptography.
func (req *SessionRequest) check(exp Expected) *Refusal {
	if req == nil {
		return refuse(ReasonRequest, "no request")
	}
	if err := CheckHostID(req.Host); err != nil {
		return refuse(ReasonRequest, "%v", err)
	}
	if n := len(req.EK.Certificates); n > MaxCertificates {
		return refuse(ReasonRequest, "%d certificates, at most %d are read", n, MaxCertificates)
	}
	for i, c := range req.EK.Certificates {
		if len(c) > MaxCertificate {
			return refuse(ReasonRequest, "certificate %d has %d bytes, at most %d are read", i, len(c), MaxCertificate)
		}
	}
	if len(req.EK.Public) > MaxTPMStructure || len(req.AK1Public) > MaxTPMStructure || len(req.AK2Public) > MaxTPMStructure {
		return refuse(ReasonRequest, "public key of more than %d bytes", MaxTPMStructure)
	}
	if n := len(req.StatementDigests); n == 0 || n > MaxStatements {
		return refuse(ReasonRequest, "%d statements in one boot, want 1 to %d; reboot the host", n, MaxStatements)
	}
	for _, d := range req.StatementDigests {
		if len(d) != digestSize {
			return refuse(ReasonRequest, "statement digest of %d bytes, want %d", len(d), digestSize)
		}
	}
	if err := req.Start.check(); err != nil {
		return refuse(ReasonRequest, "%v", err)
	}
	if !slices.Contains(ek.Kinds(), ek.Kind(req.EK.Kind)) {
		return refuse(ReasonEKKind, "kind %q is not one of %v", clip(req.EK.Kind), ek.Kinds())
	}
	if req.Host != exp.Host {
		return refuse(ReasonHost, "the request is for host %q, not %q", req.Host, exp.Host)
	}
	return exp.check()
}

// checkMeasured refuses what would hide a hand-over among the statements: a
// capped register would then look like an open one.
func (req *SessionRequest) checkMeasured(pol *Policy) *Refusal {
	for i, d := range req.StatementDigests {
		if bytes.Equal(d, HandOverDigest()) {
			return refuse(ReasonAgentPCR, "statement %d of %d is the hand-over: the host was handed over in this boot; reboot it", i+1, len(req.StatementDigests))
		}
	}
	if len(pol.Starts) > 0 && !slices.Contains(pol.Starts, req.Start) {
		return refuse(ReasonStart, "agent %q of image %q is not one that the policy allows", clip(req.Start.Agent), clip(req.Start.Image))
	}
	return nil
}

func (s Start) check() error {
	var p problems
	p.when(s.Agent == "", "agent: empty")
	p.text("agent", s.Agent)
	p.text("image", s.Image)
	return p.err()
}

// checkEK finds the EK by the policy's mode and compares it with inventory.
func checkEK(now time.Time, claim *EKClaim, exp Expected, pol *Policy) (*ek.Endorsement, *Refusal) {
	trust := &ek.Trust{
		Roots: pol.Roots, Intermediates: pol.Intermediates, Denied: pol.Denied,
		IgnoreLeafExpiry: pol.Expiry == ExpiryIgnoreLeaf,
	}
	e, err := findEK(now, claim, trust, pol.Mode)
	if err != nil {
		return nil, ekRefusal(err)
	}
	pin := strings.ToLower(exp.EKDigest)
	switch {
	case pin == e.Digest:
		return e, nil
	case pin != "":
		return nil, refuse(ReasonEKPin, "the host's EK is %s, inventory has %s for host %q", e.Digest, pin, exp.Host)
	case pol.Mode == EKChainApprove:
		return nil, refuse(ReasonEKApprove, "EK %s of host %q has a valid chain; confirm it by adding its digest to inventory", e.Digest, exp.Host)
	default:
		return nil, refuse(ReasonEKPin, "inventory has no EK digest for host %q; the host's EK is %s", exp.Host, e.Digest)
	}
}

var errNoCertificate = errors.New("the TPM sent no EK certificate, and the policy demands a chain")

// findEK takes the EK from its certificate; only where inventory's pin alone
// decides may the host send the bare key.
func findEK(now time.Time, claim *EKClaim, trust *ek.Trust, mode EKMode) (*ek.Endorsement, error) {
	kind := ek.Kind(claim.Kind)
	if mode != EKPinned {
		if len(claim.Certificates) == 0 {
			return nil, errNoCertificate
		}
		return trust.Check(now, kind, claim.Certificates)
	}
	var e *ek.Endorsement
	var err error
	if len(claim.Public) > 0 || len(claim.Certificates) == 0 {
		e, err = ek.FromKey(kind, claim.Public)
	} else {
		e, err = ek.FromCertificate(kind, claim.Certificates[0])
	}
	if err != nil {
		return nil, err
	}
	return e, trust.CheckDenied(e)
}

// ClaimedEK returns the digest of the EK that a claim is about under the policy, or "" if the claim cannot be read.
// Inventory would pin this digest. ClaimedEK checks nothing.
func (p *Policy) ClaimedEK(claim *EKClaim) string {
	var e *ek.Endorsement
	err := errNoCertificate
	switch bare := p.Mode == EKPinned && (len(claim.Public) > 0 || len(claim.Certificates) == 0); {
	case bare && len(claim.Public) <= MaxTPMStructure:
		e, err = ek.FromKey(ek.Kind(claim.Kind), claim.Public)
	case !bare && len(claim.Certificates) > 0 && len(claim.Certificates[0]) <= MaxCertificate:
		e, err = ek.FromCertificate(ek.Kind(claim.Kind), claim.Certificates[0])
	}
	if err != nil {
		return ""
	}
	return e.Digest
}

// ekRefusal returns the reason for an error of package ek.
func ekRefusal(err error) *Refusal {
	for _, c := range []struct {
		class error
		code  Reason
	}{
		{errNoCertificate, ReasonEKMissing},
		{ek.ErrKind, ReasonEKKind},
		{ek.ErrParse, ReasonEKParse},
		{ek.ErrWeak, ReasonEKWeak},
		{ek.ErrUsage, ReasonEKUsage},
		{ek.ErrExpired, ReasonEKExpired},
		{ek.ErrRevoked, ReasonEKRevoked},
	} {
		if errors.Is(err, c.class) {
			return refuse(c.code, "%v", err)
		}
	}
	return refuse(ReasonEKChain, "%v", err)
}

func challenge(rnd io.Reader, now time.Time, req *SessionRequest, e *ek.Endorsement, ak1 *attestationKey, pol *Policy) (*Challenge, *Session, error) {
	random := make([]byte, sessionIDSize+secretSize+nonceSize)
	if _, err := io.ReadFull(rnd, random); err != nil {
		return nil, nil, fmt.Errorf("attestation session: random bytes: %w", err)
	}
	id, random := random[:sessionIDSize], random[sessionIDSize:]
	secret, nonce := random[:secretSize:secretSize], random[secretSize:]
	blob, seed, err := e.Credential(rnd, ak1.name, secret)
	if err != nil {
		return nil, nil, fmt.Errorf("attestation session: %w", err)
	}
	ch := &Challenge{
		ID: hex.EncodeToString(id), Host: req.Host,
		Issued: now.UTC(), Expires: now.Add(pol.SessionLife).UTC(),
		Secret: secret, Nonce: nonce,
		EKDigest: e.Digest, EKNotes: e.Notes, EKName: e.Name, TPM: e.Model, Issuers: e.Issuers,
		Start: req.Start, StatementDigests: req.StatementDigests, AK1Public: req.AK1Public, AK2Public: req.AK2Public,
		PCRs: pol.quoted(), AgentPCR: pol.AgentPCR, Channel: pol.Channel,
	}
	return ch, &Session{
		ID: ch.ID, CredentialBlob: blob, EncryptedSecret: seed, Nonce: nonce,
		PCRs: ch.PCRs, AgentPCR: ch.AgentPCR, Channel: ch.Channel, Expires: ch.Expires,
	}, nil
}
