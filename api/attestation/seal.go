package attestation

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"portcullis/api/attestation/session"
	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/lifecycle"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// attemptSeal is the reason by which refusals of unsigned seals are limited.
const attemptSeal attest.Reason = "seal-unsigned"

// SubmitSeal judges the seal quote of a session whose evidence was accepted. The challenge is used up by an answer that the
// host's TPM signed, accepted or not, and by nothing else: an unsigned seal takes no more than the id of the session.
// channel is the TLS exporter value of the connection it came over, which may be another one than that of the evidence. A
// sealed host can attest nothing more before it is rebooted, and only a sealed host is admitted. A seal that is not
// accepted is an *attest.Refusal.
func (s *Service) SubmitSeal(ctx context.Context, id string, channel []byte, source string, ev *attest.SealEvidence) (*v1.SealResult, error) {
	rec, err := s.awaitedSeal(ctx, id)
	if err != nil {
		return nil, err
	}
	d := denial{host: rec.Host, epoch: rec.Epoch, source: source, proven: hostrecord.ProvenNothing, attempt: attemptSeal}
	boot, answered, no := attest.VerifySeal(s.now(), rec.Challenge, channel, ev, s.o.Policy)
	if answered {
		d.proven, d.attempt = hostrecord.ProvenTPM, ""
		if err := s.consumeSeal(ctx, id, rec); err != nil {
			return nil, err
		}
	}
	if no != nil {
		if no.Code == attest.ReasonSeal || no.Code == attest.ReasonClock {
			s.giveUpSeal(ctx, id)
		}
		return nil, s.deny(ctx, d, no)
	}
	cert, no := s.certify(ctx, rec, channel, ev.HostKey)
	if no != nil {
		return nil, s.deny(ctx, d, no)
	}
	result, err := s.acceptSeal(ctx, rec, boot, cert)
	if errors.As(err, &no) {
		return nil, s.deny(ctx, d, no)
	}
	if err == nil {
		s.accepted.Add(1)
		result.Result = s.resultForHost(ctx, rec.Host)
	}
	return result, err
}

// giveUpSeal forgets what the seal of a session would be renewed from: the host's
// TPM has signed that it is in another state than when it quoted the evidence, and
// there is no way back. That it cannot be forgotten changes nothing: every other
// seal would be refused, too.
func (s *Service) giveUpSeal(ctx context.Context, id string) {
	err := s.update(ctx, func(tx *store.Tx) error {
		hostrecord.Unsealed().Delete(tx, session.Number(id))
		return nil
	})
	if err != nil {
		s.o.Log.Error("a seal that was refused could not be forgotten", "session", session.Number(id), "err", err)
	}
}

// noSeal refuses a seal that nothing waits for.
func noSeal() *attest.Refusal {
	return &attest.Refusal{Code: attest.ReasonSession, Detail: "there is no evidence to seal: unknown, expired or sealed"}
}

// awaitedSeal returns the challenge that a seal of the session answers.
func (s *Service) awaitedSeal(ctx context.Context, id string) (hostrecord.SealRecord, error) {
	if !session.ValidID(id) {
		return hostrecord.SealRecord{}, noSeal()
	}
	rec, err := hostrecord.Seals().Get(ctx, s.o.Store, session.Number(id))
	if errors.Is(err, store.ErrNotFound) || err == nil && rec.Value.Challenge.Session != id {
		return hostrecord.SealRecord{}, noSeal()
	}
	if err != nil {
		return hostrecord.SealRecord{}, refusal.Explain(err)
	}
	return rec.Value, nil
}

// AwaitsSeal refuses a session that waits for no seal, as SubmitSeal would.
func (s *Service) AwaitsSeal(ctx context.Context, id string) error {
	_, err := s.awaitedSeal(ctx, id)
	return err
}

// consumeSeal deletes the challenge that a seal answered. If several answers come, only one succeeds.
func (s *Service) consumeSeal(ctx context.Context, id string, answered hostrecord.SealRecord) error {
	return s.update(ctx, func(tx *store.Tx) error {
		rec, err := hostrecord.Seals().Get(ctx, tx, session.Number(id))
		if errors.Is(err, store.ErrNotFound) || err == nil && !bytes.Equal(rec.Value.Challenge.Nonce, answered.Challenge.Nonce) {
			return noSeal()
		}
		if err != nil {
			return err
		}
		hostrecord.Seals().Delete(tx, session.Number(id))
		return nil
	})
}

// acceptSeal records that the host was handed over, if its evidence still counts, and
// which certificate it holds, if any.
func (s *Service) acceptSeal(ctx context.Context, rec hostrecord.SealRecord, boot attest.Boot, cert *x509.Certificate) (*v1.SealResult, error) {
	var phase v1.Phase
	err := s.update(ctx, func(tx *store.Tx) error {
		f, err := s.read(ctx, tx, rec.Host)
		if err != nil {
			return err
		}
		life := f.rec.Life(f.now)
		life.Evidence = life.Evidence && f.rec.Evidence.Session == session.Number(rec.Challenge.Session)
		if lifecycle.Refuses(&life, lifecycle.Asked{Command: lifecycle.Seal, Late: f.rec.Epoch != rec.Epoch}) != "" {
			return &attest.Refusal{Code: ReasonChanged, Detail: "the evidence does not count any more: inventory, assignment or a newer session replaced it"}
		}
		history, err := store.Optional(Boots().Get(ctx, tx, rec.Challenge.EKDigest))
		if err != nil {
			return err
		}
		f.rec.Sealed = f.now
		hostrecord.Unsealed().Delete(tx, session.Number(rec.Challenge.Session))
		f.rec.Certificate = held(cert, &rec)
		if err := errors.Join(
			Boots().Put(tx, rec.Challenge.EKDigest, history.Seal(boot)),
			hostrecord.Records().Put(tx, rec.Host, f.rec),
			s.log(ctx, tx, &audit.Change{
				Actor: "agent:" + rec.Host, Action: "evidence.seal", Object: "host/" + rec.Host, Code: "ok",
				Detail: fmt.Sprintf("boot %d/%d: the host can attest nothing more until it is rebooted; EK %s, session %s%s",
					boot.Reset, boot.Restart, rec.Challenge.EKDigest, session.Number(rec.Challenge.Session), certified(cert)),
			}),
		); err != nil {
			return err
		}
		phase, err = s.o.Admission.Settle(ctx, tx, rec.Host)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &v1.SealResult{Host: rec.Host, Phase: phase}
	if cert != nil {
		out.Certificate = cert.Raw
	}
	return out, nil
}
