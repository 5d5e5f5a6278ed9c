package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"portcullis/attest"
	"portcullis/attest/eventlog"
	"portcullis/attest/tpm"
)

// tpmTime bounds the look at the TPM; making a key takes some seconds on a slow one.
const tpmTime = time.Minute

// bootPCRs are those that firmware measures the boot into.
var bootPCRs = []int{0, 1, 2, 3, 4, 5, 6, 7}

func (d *doctor) tpm(ctx context.Context, log *eventlog.Log, busy bool) {
	var rest []string
	if log != nil {
		rest = []string{checkEventLog}
	}
	if busy && strings.HasPrefix(d.config.TPM, "unix:") {
		// It has no resource manager: a process that opens it removes the keys of others.
		d.skip("another agent uses the TPM", append(rest, checkTPM, checkPCR)...)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tpmTime)
	defer cancel()
	dev, err := tpm.Open(ctx, d.config.TPM)
	if err != nil {
		d.failed(checkTPM, fail(ClassTPM, tpmHint(err), err))
		d.skip("the TPM cannot be opened", append(rest, checkPCR)...)
		return
	}
	defer dev.Close()
	d.endorsement(ctx, dev)
	d.agentPCR(ctx, dev)
	if log != nil {
		d.boot(ctx, dev, log)
	}
}

// tpmHint is for errors that do not say themselves what to do.
func tpmHint(err error) string {
	if errors.Is(err, tpm.ErrBroken) || errors.Is(err, context.DeadlineExceeded) {
		return "power-cycle the host, and replace the TPM if that does not help"
	}
	return ""
}

func (d *doctor) endorsement(ctx context.Context, dev *tpm.TPM) {
	keys, err := dev.NewKeys(ctx)
	if err != nil {
		d.failed(checkTPM, fail(ClassTPM, tpmHint(err), err))
		return
	}
	kind, digest, certified := keys.Claim().Kind, keys.EKDigest(), keys.HasCertificate()
	switch err := keys.Close(ctx); {
	case err != nil:
		d.failed(checkTPM, fail(ClassTPM, tpmHint(err), err))
	case !certified:
		d.warn(checkTPM, "pin the EK in the host's inventory", "the TPM has no EK certificate; its EK is %s (%s)", digest, kind)
	default:
		d.ok(checkTPM, "EK %s (%s), with certificate", digest, kind)
	}
}

// agentPCR looks whether a run can measure into its register, or go on waiting.
func (d *doctor) agentPCR(ctx context.Context, dev register) {
	if _, err := dev.ReadPCRs(ctx, []int{d.config.AgentPCR}); err != nil {
		d.failed(checkPCR, fail(ClassTPM, tpmHint(err), err))
		return
	}
	r := d.reader()
	switch h, err := r.cappedBefore(ctx, dev); {
	case err != nil:
		d.failed(checkPCR, err)
		return
	case h != nil:
		d.ok(checkPCR, "PCR %d: the host was handed over in this boot; a run continues where it stopped", d.config.AgentPCR)
		return
	}
	image, err := d.config.image()
	if err != nil {
		d.skip("the image is not known", checkPCR)
		return
	}
	m, started, err := r.recall(ctx, dev, attest.Start{Agent: d.version, Image: image})
	switch {
	case err != nil:
		d.failed(checkPCR, err)
	case len(m.Digests) == attest.MaxStatements:
		d.warn(checkPCR, "reboot the host if an adapter changed since", "PCR %d holds %d statements, the limit for one boot", d.config.AgentPCR, len(m.Digests))
	case !started:
		d.ok(checkPCR, "PCR %d is not extended yet", d.config.AgentPCR)
	default:
		d.ok(checkPCR, "PCR %d holds %d statements of this agent", d.config.AgentPCR, len(m.Digests))
	}
}

// boot looks whether the log is that of this boot.
func (d *doctor) boot(ctx context.Context, dev register, log *eventlog.Log) {
	values, err := dev.ReadPCRs(ctx, bootPCRs)
	if err != nil {
		d.failed(checkEventLog, fail(ClassTPM, tpmHint(err), err))
		return
	}
	quoted := make([]eventlog.Quoted, len(values))
	for i, v := range values {
		quoted[i].PCR = bootPCRs[i]
		copy(quoted[i].Value[:], v)
	}
	if err := log.Match(quoted); err != nil {
		d.failed(checkEventLog, fail(ClassOther, "reboot the host; if that does not help, update its firmware", err))
		return
	}
	d.ok(checkEventLog, "%d events, and they match the TPM", len(log.Events))
}
