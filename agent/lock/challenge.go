package lock

import (
	"context"

	"portcullis/agent/hca/register"
)

// Challenge is what an adapter drew, so that a file can be good for it alone.
type Challenge struct {
	MAC   uint64 // base MAC, by which the file names the adapter
	PSID  string
	Nonce [32]byte
}

// What is drawn are challenges of tokens for customer support: of those that MTCQ
// knows the one nearest to settings. Which of them firmware holds a file of
// settings to is not published (hardware-test-plan H7).
const (
	drawnToken   = register.CRCS
	drawnSession = register.SessionCRCS
)

const challengeHint = "see whether the firmware knows challenges (mstconfig -d DEVICE token_supported); locks.binding of the service says what files must be bound to"

// Draw has the adapter draw a challenge. Until it is answered, Drop ends it or the
// firmware is reset, the adapter tells of a token session that has begun.
func (a *Adapter) Draw(ctx context.Context) (*Challenge, error) {
	no := func(format string, args ...any) (*Challenge, error) {
		return nil, fail(CodeChallenge, challengeHint, "adapter %s: draw a challenge: "+format, append([]any{a.Name}, args...)...)
	}
	if a.MAC == 0 {
		return no("its base MAC is not known, so no challenge is shown to be its own")
	}
	m, err := read(ctx, a, register.MTCQ{Token: drawnToken})
	psid := register.Text(m.PSID[:])
	switch {
	case err != nil:
		return no("%w", err)
	case m.Status != register.ChallengeOK:
		return no("%v", m.Status)
	case m.Token != drawnToken || m.Device != 0 || m.Version != 0:
		return no("it answered for token %d of device %d in form %d, asked were token %d, device 0, form 0", m.Token, m.Device, m.Version, drawnToken)
	case m.BaseMAC != a.MAC:
		return no("it is for %012x, the base MAC is %012x", m.BaseMAC, a.MAC)
	case psid != a.PSID:
		return no("it is for PSID %q, that of the adapter is %q", psid, a.PSID)
	case m.Challenge == [32]byte{}:
		return no("it is all zeros")
	}
	return &Challenge{MAC: m.BaseMAC, PSID: psid, Nonce: m.Challenge}, nil
}

// Drop ends what Draw began, unless a file answered it. That nothing is left of it is
// read back.
func (a *Adapter) Drop(ctx context.Context) error {
	m, err := read(ctx, a, register.MDSR{Type: drawnSession})
	if err == nil && !m.Clean() {
		// Whether it is refused or not, only what it is then counts.
		_, _ = write(ctx, a, register.MDSR{Type: drawnSession, End: true})
		m, err = read(ctx, a, register.MDSR{Type: drawnSession})
	}
	switch {
	case err != nil:
		return fail(CodeChallenge, "reset the adapter", "adapter %s: end of its challenge: %w", a.Name, err)
	case m.Type != drawnSession || !m.Clean():
		return fail(CodeChallenge, "reset the adapter", "adapter %s: what it drew does not end: MDSR of session %v tells status %d", a.Name, m.Type, m.Status)
	}
	return nil
}

// settled has nothing left of the challenge of an order: evidence of an adapter with
// a session begun is refused. Where it does not end, a reset ends it.
func (a *Adapter) settled(ctx context.Context, o *Order) error {
	if o.Challenge == nil || a.Drop(ctx) == nil {
		return nil
	}
	if err := a.Reset(ctx); err != nil {
		return a.noReset(err)
	}
	return a.Drop(ctx)
}
