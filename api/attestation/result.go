package attestation

import (
	"context"
	"time"

	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/result"
	"portcullis/fabricsm/ib"
)

// Results signs attestation results. Package api/results implements it.
type Results interface {
	// Sign fills in the issuer of the claims and when they expire, at until at the latest, and returns the token. Refusals
	// are *refusal.Error.
	Sign(ctx context.Context, c *result.Claims, until time.Time) (string, error)
}

// AttestationResult returns a signed token about where a host stands, made now from what is recorded. Evidence that expired
// or was voided does not count in it, nor does that of a host that is held. A tenant gets no more than the host itself, and
// nothing of the audit log. nonce is the relying party's, nil for none.
func (s *Service) AttestationResult(ctx context.Context, host string, nonce []byte) (*v1.AttestationResult, error) {
	if s.o.Results == nil {
		return nil, refusal.New(refusal.Unavailable, v1.CodeUnavailable, "name a root for their keys (results.root) and start it again",
			"the service signs no attestation results")
	}
	if n := len(nonce); n != 0 && (n < result.MinNonce || n > result.MaxNonce) {
		return nil, refusal.New(refusal.Invalid, "nonce_size", "draw 32 random bytes", "nonce of %d bytes: want %d to %d", n, result.MinNonce, result.MaxNonce)
	}
	c, until, err := s.appraise(ctx, host)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	if tenancy.Confined(ctx) {
		c.ForHost()
		c.Audit = nil // its growth is that of all tenants
	}
	if len(nonce) > 0 {
		c.Nonce = nonce
	}
	token, err := s.o.Results.Sign(ctx, c, until)
	if err != nil {
		return nil, err
	}
	return &v1.AttestationResult{
		Host: c.Subject, Result: token, Status: c.Status.String(), State: string(c.Host.State), Expires: time.Unix(c.Expires, 0).UTC(),
	}, nil
}

// resultForHost returns the token for a host's own agent, "" if there is none: accepted evidence stays accepted although
// there is no signer.
func (s *Service) resultForHost(ctx context.Context, host string) string {
	if s.o.Results == nil {
		return ""
	}
	c, until, err := s.appraise(ctx, host)
	token := ""
	if err == nil {
		c.ForHost()
		token, err = s.o.Results.Sign(ctx, c, until)
	}
	if err != nil {
		s.o.Log.Error("an attestation result could not be signed; the host has its answer without one", "host", host, "err", err)
		return ""
	}
	return token
}

// Appraise returns the claims about hosts as of now, of which no result is signed. A host that does not exist, or that
// the credential has nothing to do with, is left out.
func (s *Service) Appraise(ctx context.Context, hosts []string) (map[string]*result.Claims, error) {
	snap, own, err := s.sight(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out := make(map[string]*result.Claims, len(hosts))
	for _, id := range hosts {
		if out[id] != nil || !own.HasHost(id) {
			continue
		}
		a, err := s.appraiser(ctx, snap, id)
		if refusal.IsKind(err, refusal.NotFound) {
			continue
		}
		if err != nil {
			return nil, refusal.Explain(err)
		}
		out[id] = a.claims()
	}
	return out, nil
}

// sight returns the records as of now, and what of them the credential has.
func (s *Service) sight(ctx context.Context) (store.Snapshot, *tenancy.Owned, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return snap, nil, err
	}
	own, err := tenancy.OwnedBy(ctx, snap)
	return snap, own, err
}

// appraiser reads what is recorded about a host.
func (s *Service) appraiser(ctx context.Context, snap store.Snapshot, id string) (*appraiser, error) {
	f, err := s.o.Admission.Look(ctx, snap, id)
	if err != nil {
		return nil, err
	}
	a := &appraiser{host: f, policy: s.o.Policy, evidenceAge: s.o.EvidenceAge}
	if a.verdict, err = store.Optional(hostrecord.Verdicts().Get(ctx, snap, id)); err != nil {
		return nil, err
	}
	return a, s.standing(ctx, snap, a)
}

// appraise returns the claims about a host as of now, and the time until which they count.
func (s *Service) appraise(ctx context.Context, id string) (*result.Claims, time.Time, error) {
	snap, own, err := s.sight(ctx)
	if err == nil && !own.HasHost(id) {
		err = inventory.NoHost(id)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	a, err := s.appraiser(ctx, snap, id)
	if err != nil {
		return nil, time.Time{}, err
	}
	f := a.host
	until := f.Now.Add(result.MaxLife)
	if ev := f.Record.Evidence; ev != nil && !f.Record.Admitted {
		if end := ev.Time.Add(s.o.EvidenceAge); a.counts() && end.Before(until) {
			until = end
		}
	}
	c := a.claims()
	end, err := audit.Latest(ctx, snap)
	if err == nil && end.Seq > 0 {
		c.Audit = &result.Audit{Hash: end.Hash, Seq: end.Seq, Branch: end.Branch}
	}
	return c, until, err
}

// standing reads what evidence that was accepted rests on, as it is now.
func (s *Service) standing(ctx context.Context, r store.Reader, a *appraiser) error {
	if a.host.Record.Evidence == nil {
		return nil
	}
	exp, err := s.expect(ctx, r, a.host.Host)
	if err != nil {
		return err
	}
	a.judged = s.o.Locks != nil
	a.locks = map[ib.GUID]attest.ExpectedLock{}
	for _, h := range exp.HCAs {
		a.locks[h.NodeGUID] = h.Lock
	}
	refs, err := s.referencesOf(ctx, r, a.host.Record.Evidence.Reference)
	a.trusted = err == nil && refs.Standing(a.host.Record.Evidence.Reference) == ""
	return err
}
