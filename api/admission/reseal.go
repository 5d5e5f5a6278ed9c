package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// maxRenewals is how often a seal is asked for again. Each is used up by one
// attempt, or grows old.
const maxRenewals = 32

// RenewSeal asks once more for the seal of a session whose evidence was accepted:
// the answer to the last challenge did not come, came too late, or was lost on its
// way through a service that ended. token is the status token that the evidence
// earned.
//
// It grants nothing that the first challenge did not. What the seal must show
// stays the same: AK2, which signs only while the agent's PCR is capped, in the
// boot of the evidence and with its registers. So the evidence must still count,
// its provisioning window be open, and no seal of it have been accepted. One that
// is still good is given again; otherwise it is an *Error of kind Conflict with
// code v1.CodeSealClosed, after which only a reboot helps.
func (s *Service) RenewSeal(ctx context.Context, token, session string) (*attest.Seal, error) {
	ref, err := tokens().Get(ctx, s.o.Store, hashToken(token))
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknownToken()
	}
	if err != nil {
		return nil, explain(err)
	}
	lease, err := s.o.Store.NewLease(ctx, s.o.Policy.SealLife+time.Minute) // only cleans up
	if err != nil {
		return nil, explain(err)
	}
	var out *attest.Seal
	err = s.update(ctx, func(tx *store.Tx) (err error) {
		out, err = s.renewSeal(ctx, tx, ref.Value.Host, hashToken(token), session, lease)
		return err
	})
	if IsKind(err, Conflict) {
		s.o.Log.Info("seal not renewed", "host", ref.Value.Host, "session", clip(session), "err", err)
	}
	return s.offering(out), err
}

func (s *Service) renewSeal(ctx context.Context, tx *store.Tx, host, token, session string, lease store.Lease) (*attest.Seal, error) {
	f, err := s.gather(ctx, tx, host)
	if err != nil {
		return nil, err
	}
	if f.rec.Token != token { // a newer one replaced it since
		return nil, unknownToken()
	}
	if why := notSealable(f, session); why != "" {
		return nil, sealClosed(host, why)
	}
	first, err := unsealed().Get(ctx, tx, session)
	if errors.Is(err, store.ErrNotFound) || err == nil && first.Value.Epoch != f.rec.Epoch {
		return nil, sealClosed(host, "what its seal must show is not known any more")
	}
	if err != nil {
		return nil, err
	}
	last, err := optional(seals().Get(ctx, tx, session))
	if err != nil {
		return nil, err
	}
	if c := last.Challenge; c != nil && f.now.Before(c.Expires.Add(-s.o.Policy.SealLife/2)) {
		return c.Seal(), nil
	}
	if f.rec.Evidence.Renewals >= maxRenewals {
		return nil, sealClosed(host, fmt.Sprintf("its seal was asked for %d times", maxRenewals))
	}
	next := first.Value
	var seal *attest.Seal
	if next.Challenge, seal, err = first.Value.Challenge.Renew(s.o.Rand, f.now, s.o.Policy); err != nil {
		return nil, &Error{Code: "internal", Status: Internal, Detail: err.Error(), Err: err}
	}
	ev := *f.rec.Evidence
	ev.Renewals++
	f.rec.Evidence = &ev
	return seal, errors.Join(
		seals().PutLeased(tx, session, next, lease),
		Records().Put(tx, host, f.rec),
		s.log(ctx, tx, change{
			actor: "agent:" + host, action: "evidence.seal-nonce", object: "host/" + host, code: "ok",
			detail: fmt.Sprintf("the seal of session %s is asked for again (%d of %d)", session, ev.Renewals, maxRenewals),
		}),
	)
}

// notSealable says why evidence of a session can not be sealed any more, "" if it
// can.
func notSealable(f *facts, session string) string {
	switch {
	case f.rec.Evidence == nil || f.rec.Evidence.Session != session:
		return "its evidence does not count any more"
	case !f.rec.Sealed.IsZero():
		return "it is sealed"
	}
	if why := windowClosed(f.rec, f.now); why != "" {
		return why
	}
	return checkAttested(f)
}

func sealClosed(host, why string) *Error {
	return refusal(Conflict, v1.CodeSealClosed, "reboot the host into its provisioning image and attest again",
		"the evidence of host %s can not be sealed any more: %s", host, why)
}
