package lock

import (
	"context"
	"errors"
	"fmt"

	"portcullis/agent/hca/register"
)

// Challenge is what an adapter drew, so that a file can be good for it alone.
type Challenge struct {
	MAC   uint64 // base MAC, by which the file names the adapter
	PSID  string
	Nonce [32]byte
}

// Draw draws challenges of tokens for customer support. Among the tokens that MTCQ knows, this is the one nearest to
// settings. It is not published which challenge the firmware requires in a file of settings (hardware-test-plan H7).
const (
	drawnToken   = register.CRCS
	drawnSession = register.SessionCRCS
)

const challengeHint = "check that the firmware supports challenges (mstconfig -d DEVICE token_supported); locks.binding of the service says what files must be bound to"

// Draw has the adapter draw a challenge. Until the challenge is answered, Drop ends it or the firmware is reset, the
// adapter reports that a token session has begun.
func (a *Adapter) Draw(ctx context.Context) (*Challenge, error) {
	no := func(format string, args ...any) (*Challenge, error) {
		return nil, fail(CodeChallenge, challengeHint, "adapter %s: draw a challenge: "+format, append([]any{a.Name}, args...)...)
	}
	if a.MAC == 0 {
		return no("its base MAC is not known, so a challenge cannot be recognized as its own")
	}
	m, err := read(ctx, a, register.MTCQ{Token: drawnToken})
	if err != nil {
		_ = a.Drop(ctx) // it may have been done all the same
		return no("%w", err)
	}
	c, err := a.own(&m)
	if err == nil {
		return c, nil
	}
	if left := a.Drop(ctx); left != nil {
		return no("%w; %w", err, left)
	}
	return no("%w", err)
}

// own takes a challenge that is the adapter's own.
func (a *Adapter) own(m *register.MTCQ) (*Challenge, error) {
	psid := register.Text(m.PSID[:])
	switch {
	case m.Status != register.ChallengeOK:
		return nil, errors.New(m.Status.String())
	case m.Token != drawnToken || m.Device != 0 || m.Version != 0:
		return nil, fmt.Errorf("it answered for token %d of device %d in form %d, want token %d, device 0, form 0", m.Token, m.Device, m.Version, drawnToken)
	case m.BaseMAC != a.MAC:
		return nil, fmt.Errorf("it is for %012x, the base MAC is %012x", m.BaseMAC, a.MAC)
	case psid != a.PSID:
		return nil, fmt.Errorf("it is for PSID %q, that of the adapter is %q", psid, a.PSID)
	case m.Challenge == [32]byte{}:
		return nil, errors.New("it is all zeros")
	}
	return &Challenge{MAC: m.BaseMAC, PSID: psid, Nonce: m.Challenge}, nil
}

// Drop ends the session that Draw began, unless a file answered it. It reads back that no session is left. It does not end
// a session of a token that was applied, because evidence must report it.
func (a *Adapter) Drop(ctx context.Context) error {
	m, err := read(ctx, a, register.MDSR{Type: drawnSession})
	if err == nil && m.Status == register.SessionChallenged {
		// Whether it is refused or not, only what it is then counts.
		_, _ = write(ctx, a, register.MDSR{Type: drawnSession, End: true})
		m, err = read(ctx, a, register.MDSR{Type: drawnSession})
	}
	switch {
	case err != nil:
		return fail(CodeChallenge, "reset the adapter", "adapter %s: end of its challenge: %w", a.Name, err)
	case m.Type != drawnSession || !m.Clean():
		return fail(CodeChallenge, "reset the adapter", "adapter %s: its challenge does not end: MDSR of session %v reports status %d", a.Name, m.Type, m.Status)
	}
	return nil
}

// settled ends the challenge of an order, because evidence of an adapter with a session begun is refused. If the challenge
// does not end, a reset ends it.
func (a *Adapter) settled(ctx context.Context, o *Order) error {
	if o.Challenge == nil || a.Drop(ctx) == nil {
		return nil
	}
	if err := a.Reset(ctx); err != nil {
		return a.noReset(err)
	}
	return a.Drop(ctx)
}
