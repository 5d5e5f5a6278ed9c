// Package softagent attests hosts whose TPMs are in software to a real service, for benchmarks and for the search for faults.
package softagent

import (
	"context"
	"errors"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// Attest boots a host and attests it once: session, evidence and hand-over, over one connection. It is for one goroutine a host.
func Attest(ctx context.Context, c *client.Client, h *attesttest.Host) error {
	h.Reboot()
	h.Statement.CollectedAt = time.Now().UTC().Truncate(time.Second)
	if err := h.NewKeys(); err != nil {
		return err
	}
	ch, err := c.OpenChannel(ctx)
	if err != nil {
		return err
	}
	defer ch.Close()
	session, err := ch.OpenSession(ctx, h.Request())
	if err != nil {
		return err
	}
	evidence, err := h.Answer(session, ch.Binding())
	if err != nil {
		return err
	}
	result, err := ch.SubmitEvidence(ctx, session.ID, evidence)
	if err != nil {
		return err
	}
	return handOver(ctx, ch, h, session, result)
}

// handOver caps the register of the agent and shows that by a second quote.
func handOver(ctx context.Context, ch *client.Channel, h *attesttest.Host, s *attest.Session, r *v1.AttestResult) error {
	if r.Seal == nil {
		return errors.New("the evidence was accepted and no hand-over asked for")
	}
	seal, err := h.Seal(s, r.Seal, ch.Binding())
	if err != nil {
		return err
	}
	_, err = ch.SubmitSeal(ctx, s.ID, seal)
	return err
}
