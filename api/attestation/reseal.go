package attestation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portcullis/api/attestation/session"
	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// maxRenewals is how often a seal is asked for again. Each is used up by one
// attempt, or grows old.
const maxRenewals = 32

// RenewSeal asks once more for the seal of a session whose evidence was accepted: the answer to the last challenge did not
// come, came too late, or was lost on its way through a service that ended. token is the status token that the evidence
// earned.
//
// It grants nothing that the first challenge did not. The seal must show the same facts: AK2, which signs only while the
// agent's PCR is capped, in the boot of the evidence and with its registers. So the evidence must still count, its
// provisioning window be open, and no seal of it have been accepted. A challenge that is still good is returned again;
// otherwise the error is a *refusal.Error of kind Conflict with code v1.CodeSealClosed, after which only a reboot helps.
func (s *Service) RenewSeal(ctx context.Context, token, id string) (*attest.Seal, error) {
	ref, err := hostrecord.Tokens().Get(ctx, s.o.Store, hashToken(token))
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknownToken()
	}
	if err != nil {
		return nil, refusal.Explain(err)
	}
	var out *attest.Seal
	var lease store.Lease // only cleans up
	err = s.update(ctx, func(tx *store.Tx) error {
		next, err := s.nextSeal(ctx, tx, ref.Value.Host, hashToken(token), id)
		if err != nil {
			return err
		}
		out = next.seal
		if next.record == nil {
			return nil
		}
		if lease == 0 { // not before: a host may ask as often as it likes
			if lease, err = s.o.Store.NewLease(ctx, s.o.Policy.SealLife+time.Minute); err != nil {
				return err
			}
		}
		return s.keepSeal(ctx, tx, id, next, lease)
	})
	if refusal.IsKind(err, refusal.Conflict) {
		s.o.Log.Info("seal not renewed", "host", ref.Value.Host, "session", refusal.Clip(id), "err", err)
	}
	return s.offering(out), err
}

// nextSeal is what a host is asked for again.
type nextSeal struct {
	seal   *attest.Seal
	record *hostrecord.SealRecord // nil: the last one is still good
	host   *View
}

func (s *Service) nextSeal(ctx context.Context, tx *store.Tx, host, token, id string) (nextSeal, error) {
	f, err := s.o.Admission.Look(ctx, tx, host)
	if err != nil {
		return nextSeal{}, err
	}
	if f.Record.Token != token { // a newer one replaced it since
		return nextSeal{}, unknownToken()
	}
	if why := notSealable(f, id); why != "" {
		return nextSeal{}, sealClosed(host, why)
	}
	first, err := hostrecord.Unsealed().Get(ctx, tx, session.Number(id))
	if errors.Is(err, store.ErrNotFound) || err == nil && (first.Value.Epoch != f.Record.Epoch || first.Value.Challenge.Session != id) {
		return nextSeal{}, sealClosed(host, "what its seal must show is not known any more")
	}
	if err != nil {
		return nextSeal{}, err
	}
	last, err := store.Optional(hostrecord.Seals().Get(ctx, tx, session.Number(id)))
	if err != nil {
		return nextSeal{}, err
	}
	if c := last.Challenge; c != nil && f.Now.Before(c.Expires.Add(-s.o.Policy.SealLife/2)) {
		return nextSeal{seal: c.Seal()}, nil
	}
	if f.Record.Evidence.Renewals >= maxRenewals {
		return nextSeal{}, sealClosed(host, fmt.Sprintf("its seal was asked for %d times", maxRenewals))
	}
	out := nextSeal{record: &first.Value, host: f}
	if out.record.Challenge, out.seal, err = first.Value.Challenge.Renew(s.o.Rand, f.Now, s.o.Policy); err != nil {
		return nextSeal{}, &refusal.Error{Code: "internal", Status: refusal.Internal, Detail: err.Error(), Err: err}
	}
	return out, nil
}

// keepSeal records the requested seal, and counts it.
func (s *Service) keepSeal(ctx context.Context, tx *store.Tx, id string, next nextSeal, lease store.Lease) error {
	host, rec := next.host.Host.ID, *next.host.Record
	ev := *rec.Evidence
	ev.Renewals++
	rec.Evidence = &ev
	return errors.Join(
		hostrecord.Seals().PutLeased(tx, session.Number(id), *next.record, lease),
		hostrecord.Records().Put(tx, host, rec),
		s.log(ctx, tx, &audit.Change{
			Actor: "agent:" + host, Action: "evidence.seal-nonce", Object: "host/" + host, Code: "ok",
			Detail: fmt.Sprintf("the seal of session %s is asked for again (%d of %d)", session.Number(id), ev.Renewals, maxRenewals),
		}),
	)
}

// notSealable says why evidence of a session can not be sealed any more, "" if it
// can.
func notSealable(f *View, id string) string {
	switch {
	case f.Record.Evidence == nil || f.Record.Evidence.Session != session.Number(id):
		return "its evidence does not count any more"
	case !f.Record.Sealed.IsZero():
		return "it is sealed"
	}
	if why := f.Record.WindowClosed(f.Now); why != "" {
		return why
	}
	return f.Lacks
}

func sealClosed(host, why string) *refusal.Error {
	return refusal.New(refusal.Conflict, v1.CodeSealClosed, "reboot the host into its provisioning image and attest again",
		"the evidence of host %s can not be sealed any more: %s", host, why)
}
