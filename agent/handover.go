package agent

import (
	"context"
	"errors"
	"os"

	"portcullis/agent/hca"
	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/tpm"
)

const (
	rebootHint = "reboot the host into its provisioning image and run the agent again"
	goOnHint   = "run the agent again in this boot: it continues where it stopped"
	roomHint   = "make room on the disk, or name another folder with --state-dir"
)

// maxNonces is how often a run asks for another nonce of the seal.
const maxNonces = 4

// handOver caps the agent PCR and shows the service that it is: from here on
// this boot can attest nothing more. There is no way back, so neither a network
// fault nor the end of this program ends it: the seal is sent again over another
// connection, and by another run.
func (r *run) handOver(ctx context.Context, dev *tpm.TPM, a *accepted) error {
	if a.result.Seal == nil {
		return failf(ClassRefused, "update the service", "the service accepted the evidence, but did not ask for a hand-over")
	}
	h, err := r.begin(ctx, dev, a)
	if err != nil {
		return err
	}
	r.say("handing the host over")
	if err := a.keys.Extend(ctx, r.config.AgentPCR, attest.HandOverDigest()); err != nil {
		return fail(ClassTPM, goOnHint, err) // whether it was done, the next run sees
	}
	r.log.Info("agent PCR capped", "pcr", r.config.AgentPCR)
	// Neither is needed any more, and the TPM may have room for three objects.
	r.discard(ctx, a.pair.AK1)
	r.discard(ctx, a.keys)
	key := r.newHostKey(ctx, dev, h)
	defer key.close(ctx)
	phase, err := r.showCap(ctx, a.pair.AK2, key, h)
	if err != nil {
		return err
	}
	a.result.Phase = phase
	return nil
}

// begin writes down what is needed to go on once the register is capped.
func (r *run) begin(ctx context.Context, read register, a *accepted) (*handOver, error) {
	boot, err := read.Boot(ctx)
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	s, err := attest.ParseStatement(a.m.Statement)
	if err != nil {
		return nil, fail(ClassOther, "", err)
	}
	h := &handOver{
		Host: r.config.Host, EK: a.keys.EKDigest(), BootID: s.BootID, Reset: boot.Reset, Restart: boot.Restart,
		AgentPCR: r.config.AgentPCR, Open: attest.OpenPCRValue(a.m.Start, a.m.Digests), Statement: a.m.last(), Key: a.pair.AK2.Stored(),
		Session: a.session.ID, PCRs: a.session.PCRs, Channel: a.session.Channel,
		Nonce: a.result.Seal.Nonce, Expires: a.result.Seal.Expires, HostKey: a.result.Seal.HostKey, Token: statusToken(a.result.StatusToken),
	}
	if err := h.check(); err != nil {
		return nil, failf(ClassRefused, "update the service, or the agent", "the service sent an invalid hand-over: %w", err)
	}
	if err := r.state.save(handOverFile, h); err != nil {
		return nil, fail(ClassOther, roomHint, err)
	}
	return h, nil
}

// showCap sends the seal to the service and returns the phase that the service reports. A nonce that is used up or too old
// is replaced as long as the service replaces it.
func (r *run) showCap(ctx context.Context, ak2 *tpm.AK, key *hostKey, h *handOver) (v1.Phase, error) {
	c := r.client.WithToken(string(h.Token))
	defer c.Close()
	var refused error
	old := !r.now().Before(h.Expires)
	for nonces := 0; ; nonces++ {
		if !old || nonces > 0 { // whatever our clock says of a new one
			var sealed *v1.SealResult
			err := r.retry(ctx, "the hand-over is not known to "+r.config.Service, func() (err error) {
				sealed, err = r.seal(ctx, ak2, key, h)
				return err
			}, isTransient)
			if err == nil {
				key.keep(sealed.Certificate)
				return sealed.Phase, nil
			}
			if p, ok := errors.AsType[*v1.Problem](err); !ok || isTransient(p) {
				return "", r.notShown(err)
			}
			refused = err
			// The answer to a seal that was accepted may have been lost.
			if host, err := c.AttestStatus(ctx); err == nil && isSealed(host) {
				return host.Status.Phase, nil
			}
		}
		if nonces == maxNonces {
			return "", failf(ClassReboot, rebootHint, "the service refused the hand-over of host %s with %d nonces: %w", h.Host, nonces, refused)
		}
		if err := r.renew(ctx, c, h); err != nil {
			return "", err
		}
	}
}

// seal quotes with the second key, for one connection.
func (r *run) seal(ctx context.Context, ak2 *tpm.AK, key *hostKey, h *handOver) (*v1.SealResult, error) {
	ch, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer ch.Close()
	binding, err := r.bindingFor(ch, h.Channel)
	if err != nil {
		return nil, err
	}
	q, err := ak2.Quote(ctx, h.PCRs, attest.SealQualifyingData(h.Session, h.Nonce, h.Statement, binding, ak2.Name()))
	if err != nil {
		return nil, fail(ClassTPM, goOnHint, err)
	}
	return ch.SubmitSeal(ctx, h.Session, &attest.SealEvidence{
		Quote: q.Attest, Signature: q.Signature, HostKey: key.certify(ctx, ak2, h, binding),
	})
}

// renew asks for another nonce.
func (r *run) renew(ctx context.Context, c *client.Client, h *handOver) error {
	r.say("asking for another nonce of the hand-over")
	var next *attest.Seal
	err := r.retry(ctx, "no nonce from "+r.config.Service, func() (err error) {
		next, err = c.RenewSeal(ctx, h.Session)
		return err
	}, isTransient)
	if err != nil {
		return r.notShown(err)
	}
	h.Nonce, h.Expires, h.HostKey = next.Nonce, next.Expires, next.HostKey
	if err := h.check(); err != nil {
		return failf(ClassRefused, "update the service, or the agent", "the service sent an invalid nonce: %w", err)
	}
	if err := r.state.save(handOverFile, h); err != nil {
		r.log.Warn("the nonce is not stored; another run would ask for one more", "error", err)
	}
	return nil
}

// notShown says what is left to do once the register is capped, and the service does
// not know it.
func (r *run) notShown(err error) error {
	if p, ok := errors.AsType[*v1.Problem](err); ok && !isTransient(p) {
		return failf(ClassReboot, rebootHint, "host %s was handed over in this boot, and the service no longer accepts its hand-over: %w", r.config.Host, p)
	}
	e, ok := errors.AsType[*Error](explain(err, r.config))
	if !ok {
		return err
	}
	switch {
	case errors.Is(err, tpm.ErrPolicy):
		return fail(ClassReboot, rebootHint, e.Err)
	case e.Class == ClassUnreachable:
		return fail(e.Class, e.Hint+"; then "+goOnHint, e.Err)
	default:
		return e
	}
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
		case g.Name == v1.GuardSealed && g.Met:
			return met
		case g.Name == v1.GuardSealed:
			return unmetYet
		}
	}
	return absent
}

// goOn finds a hand-over that an earlier run began in this boot, and completes it. Afterwards only the wait for the
// admission is left. It returns a nil client when the register is not capped.
func (r *run) goOn(ctx context.Context, dev *tpm.TPM) (_ *client.Client, phase v1.Phase, err error) {
	h, err := r.cappedBefore(ctx, dev)
	if err != nil || h == nil {
		return nil, "", err
	}
	if !r.goal.handsOver() {
		return nil, "", failf(ClassReboot, rebootHint, "host %s was handed over in this boot: nothing more can be attested, or locked", h.Host)
	}
	r.say("the host was handed over earlier in this boot")
	r.ready()
	c := r.client.WithToken(string(h.Token))
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	var host *v1.Host
	err = r.retry(ctx, "no status from "+r.config.Service, func() (err error) {
		host, err = c.AttestStatus(ctx)
		return err
	}, isTransient)
	switch {
	case err != nil:
		return nil, "", r.notShown(err)
	case isSealed(host):
		return c, host.Status.Phase, nil
	}
	if phase, err = r.sealAgain(ctx, dev, h); err != nil {
		return nil, "", err
	}
	r.log.Info("host handed over", "host", h.Host, "phase", phase)
	return c, phase, nil
}

// sealAgain loads the second key of a hand-over, and shows the service the cap.
func (r *run) sealAgain(ctx context.Context, dev *tpm.TPM, h *handOver) (v1.Phase, error) {
	keys, err := dev.NewKeys(ctx)
	if err != nil {
		return "", fail(ClassTPM, goOnHint, err)
	}
	defer r.discard(ctx, keys)
	if keys.EKDigest() != h.EK {
		return "", failf(ClassReboot, rebootHint, "the hand-over of this boot is of a host with EK %s, this TPM has EK %s", h.EK, keys.EKDigest())
	}
	ak2, err := keys.LoadAK(ctx, h.Key, h.AgentPCR, attest.CappedPCRValue(h.Open))
	if errors.Is(err, tpm.ErrStoredAK) {
		return "", fail(ClassReboot, rebootHint, err)
	}
	if err != nil {
		return "", fail(ClassTPM, goOnHint, err)
	}
	defer r.discard(ctx, ak2)
	r.discard(ctx, keys) // the TPM may have room for three objects
	key := r.newHostKey(ctx, dev, h)
	defer key.close(ctx)
	return r.showCap(ctx, ak2, key, h)
}

// cappedBefore returns the hand-over that left the register as it is, or nil if the register is not capped. A capped
// register without a record of this boot and host to continue with is an error.
func (r *run) cappedBefore(ctx context.Context, read register) (*handOver, error) {
	h, err := r.state.handOver()
	lost := errors.Is(err, errGarbled)
	if err != nil && !lost {
		return nil, fail(ClassOther, r.state.hint(err), err)
	}
	values, e := read.ReadPCRs(ctx, []int{r.config.AgentPCR})
	if e != nil {
		return nil, fail(ClassTPM, "", e)
	}
	if !h.capped(values[0]) {
		err := r.cappedUnknown(values[0], err)
		r.capped = err != nil
		return nil, err
	}
	r.capped = true
	if h.Host != r.config.Host {
		return nil, failf(ClassUsage, "set host to "+h.Host+", or "+rebootHint, "this boot was handed over as that of host %s, but the configuration names host %s", h.Host, r.config.Host)
	}
	boot, err := read.Boot(ctx)
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	id, err := hca.BootID(r.config.Procfs)
	if err != nil {
		return nil, fail(ClassOther, "check that --procfs is where the kernel shows its boot", err)
	}
	if err := h.sameBoot(id, boot); err != nil {
		return nil, failf(ClassReboot, rebootHint, "host %s was handed over, and this can no longer be proven: %w", h.Host, err)
	}
	return h, nil
}

// cappedUnknown is the error of a register that was capped after what this agent
// measured, and no record of it; nil if it was not.
func (r *run) cappedUnknown(value []byte, why error) error {
	m, err := r.state.measured()
	if err == nil && len(m.Digests) > 0 && len(m.Digests) <= attest.MaxStatements {
		h := &handOver{Open: attest.OpenPCRValue(m.Start, m.Digests)}
		if h.capped(value) {
			if why == nil {
				why = os.ErrNotExist
			}
			return failf(ClassReboot, rebootHint, "the host was handed over in this boot, but its record is lost: %w", why)
		}
	}
	if why != nil {
		r.log.Warn("the record of a hand-over is lost", "error", why)
	}
	return nil
}
