package agent

import (
	"bytes"
	"context"
	"errors"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

const rebootHint = "reboot the host into its provisioning image and run the agent again"

// handOver caps the agent PCR and shows the service that it is: from here on
// this boot can attest nothing more. There is no way back, so a network fault
// does not end it; the seal is sent again over another connection.
func (r *run) handOver(ctx context.Context, a *accepted) error {
	if a.result.Seal == nil {
		return failf(ClassRefused, "update the service", "the service accepted the evidence and asked for no hand-over")
	}
	open := attest.OpenPCRValue(a.m.Start, a.m.Digests)
	if err := r.state.save(handOverFile, handOver{Open: open, Session: a.session.ID, Token: a.result.StatusToken}); err != nil {
		return fail(ClassOther, "make room on the disk, or name another folder with --state-dir", err)
	}
	r.say("handing the host over")
	if err := a.keys.Extend(ctx, r.config.AgentPCR, attest.HandOverDigest()); err != nil {
		return fail(ClassTPM, rebootHint, err)
	}
	r.log.Info("agent PCR capped", "pcr", r.config.AgentPCR)
	var sealed *v1.SealResult
	err := r.retry(ctx, "the hand-over is not known to "+r.config.Service, func() (err error) {
		sealed, err = r.seal(ctx, a)
		return err
	}, isTransient)
	if err != nil && !r.knownAsSealed(ctx, a.result.StatusToken) {
		return handOverFailed(err, r.config)
	}
	if sealed != nil {
		a.result.Phase = sealed.Phase
	}
	return nil
}

// seal quotes with the second key, for one connection.
func (r *run) seal(ctx context.Context, a *accepted) (*v1.SealResult, error) {
	ch, err := r.client.OpenChannel(ctx)
	if err != nil {
		return nil, err
	}
	defer ch.Close()
	binding, err := r.binding(ch, a.session)
	if err != nil {
		return nil, err
	}
	q, err := a.pair.AK2.Quote(ctx, a.session.PCRs,
		attest.SealQualifyingData(a.session.ID, a.result.Seal.Nonce, a.m.last(), binding, a.pair.AK2.Name()))
	if err != nil {
		return nil, fail(ClassTPM, rebootHint, err)
	}
	return ch.SubmitSeal(ctx, a.session.ID, &attest.SealEvidence{Quote: q.Attest, Signature: q.Signature})
}

// knownAsSealed asks for the host's status: the answer to a seal that was
// accepted may have been lost.
func (r *run) knownAsSealed(ctx context.Context, token string) bool {
	c := r.client.WithToken(token)
	defer c.Close()
	h, err := c.AttestStatus(ctx)
	return err == nil && isSealed(h)
}

// isSealed reports that the service knows of the hand-over.
func isSealed(h *v1.Host) bool { return h.Status.Phase == v1.PhaseAdmitted || sealedGuard(h) == met }

type guardState int

const (
	absent guardState = iota
	unmetYet
	met
)

func sealedGuard(h *v1.Host) guardState {
	for _, g := range h.Status.Guards {
		switch {
		case g.Name == "sealed" && g.Met:
			return met
		case g.Name == "sealed":
			return unmetYet
		}
	}
	return absent
}

// handOverFailed says what is left to do once the register is capped.
func handOverFailed(err error, c *Config) error {
	e := explain(err, c)
	if ours, ok := errors.AsType[*Error](e); ok {
		return fail(ours.Class, rebootHint, ours.Err)
	}
	return e
}

// resume finds a hand-over of this boot that an earlier run began: what is left
// is to wait for the admission. It gives nil when there was none.
func (r *run) resume(ctx context.Context, read register) (*client.Client, error) {
	h, err := r.state.handOver()
	if err != nil {
		r.log.Warn("the record of a hand-over is lost", "error", err)
		return nil, nil
	}
	if h.Token == "" {
		return nil, nil
	}
	values, err := read.ReadPCRs(ctx, []int{r.config.AgentPCR})
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	if !bytes.Equal(values[0], attest.CappedPCRValue(h.Open)) {
		return nil, nil // another boot, or it was not capped
	}
	r.say("the host was handed over earlier in this boot")
	return r.client.WithToken(h.Token), nil
}
