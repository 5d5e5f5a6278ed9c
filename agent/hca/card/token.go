package card

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

// session is one of the vendor's doors, on its way to being open.
type session struct {
	status    register.SessionStatus
	challenge [sha256.Size]byte
}

// sessionSeconds is the lifetime that a session, or a challenge, reports, in seconds. Nothing here counts them:
// ExpireSessions ends them.
const sessionSeconds = 600

// draw returns bytes that cannot be guessed without the seed.
func (c *Card) draw() [sha256.Size]byte {
	c.drawn++
	b := binary.BigEndian.AppendUint64([]byte("challenge"), c.o.Seed)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, c.drawn))
}

func (c *Card) readMTCQ(m register.MTCQ) (register.MTCQ, register.Status) {
	out := register.MTCQ{Token: m.Token}
	kind, ok := sessionOf(m.Token)
	// Files of settings answer challenges too, so that a key for them will do.
	signers := append(c.keys(SignsTokens), c.keys(SignsOEM)...)
	switch {
	case m.Token == register.RMCS || m.Token == register.RMDT:
		out.Status = register.ChallengeNotFromHere
	case !ok:
		out.Status = register.ChallengeNotSupported
	case len(signers) == 0:
		out.Status = register.ChallengeNoKey
	case c.session(kind).status == register.SessionActive:
		out.Status = register.ChallengeApplied
	default:
		s := &session{status: register.SessionChallenged, challenge: c.draw()}
		c.sessions[kind] = s
		out.KeyUUID, out.BaseMAC = signers[0].UUID, c.o.Identity.BaseMAC
		out.Challenge, out.FWVersion = s.challenge, c.running.component().Version
		copy(out.PSID[:], c.o.Identity.PSID)
	}
	return out, register.OK
}

// sessionOf is the session that a token opens.
func sessionOf(t register.Token) (register.Session, bool) {
	switch t {
	case register.CRCS:
		return register.SessionCRCS, true
	case register.CRDT:
		return register.SessionCRDT, true
	default:
		return 0, false
	}
}

func (c *Card) session(kind register.Session) session {
	if s, ok := c.sessions[kind]; ok {
		return *s
	}
	return session{status: register.SessionNone}
}

func (c *Card) readMDSR(m register.MDSR) (register.MDSR, register.Status) {
	if !slices.Contains(register.Sessions(), m.Type) {
		return m, register.BadParameter
	}
	m = register.MDSR{Type: m.Type, Status: c.session(m.Type).status}
	if m.Status == register.SessionActive || m.Status == register.SessionChallenged {
		m.TimeLeft = sessionSeconds
	}
	if m.Status == register.SessionActive {
		m.Info = register.InfoSessionActive
	}
	return m, register.OK
}

// writeMDSR ends a session, or all.
func (c *Card) writeMDSR(m register.MDSR) (register.MDSR, register.Status) {
	if !m.End {
		return c.readMDSR(m)
	}
	ended := false
	for kind, s := range c.sessions {
		if kind != m.Type && m.Type != register.AllSessions {
			continue
		}
		if s.status == register.SessionChallenged && c.o.Traits.KeepsChallenge {
			continue
		}
		ended = ended || s.status == register.SessionActive
		delete(c.sessions, kind)
	}
	if !ended {
		return register.MDSR{Type: m.Type, Status: register.SessionFailed, Info: register.InfoNoSession}, register.OK
	}
	return register.MDSR{Type: m.Type, Status: register.SessionEnded}, register.OK
}

// OpenSession opens a session without any checks, as if a host had applied a token.
func (c *Card) OpenSession(kind register.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[kind] = &session{status: register.SessionActive}
}

// ExpireSessions lets the time of all sessions and challenges pass.
func (c *Card) ExpireSessions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		switch s.status {
		case register.SessionActive:
			s.status = register.SessionTimedOut
		case register.SessionChallenged:
			s.status = register.SessionNotInstalled
		default: // over already
		}
	}
}

// judgeToken judges a token whose signature is right. A token that answers a challenge must name this card and the last
// challenge.
func (c *Card) judgeToken(id register.Component, f *nvconfig.File) (func(), register.MCCError) {
	kind, challenged := tokenOf(id)
	if challenged && !c.answers(kind, f) {
		return nil, register.RejectedNotApplicable
	}
	return func() { c.sessions[kind] = &session{status: register.SessionActive} }, register.MCCOK
}

// tokenOf is the session that a component opens, and whether it needs a
// challenge.
func tokenOf(id register.Component) (kind register.Session, challenged bool) {
	switch id {
	case register.CRCSToken:
		return register.SessionCRCS, true
	case register.CRDTToken:
		return register.SessionCRDT, true
	case register.DebugToken:
		return register.SessionDebug, false
	default:
		return register.SessionCS, false
	}
}

func (c *Card) answers(kind register.Session, f *nvconfig.File) bool {
	s := c.session(kind)
	if s.status != register.SessionChallenged {
		return false
	}
	all, err := f.Challenges()
	return err == nil && slices.Contains(all, nvconfig.NewChallenge(c.o.Identity.BaseMAC, s.challenge))
}

// settingsChallenge is the kind of challenge that files of settings answer: the one
// of tokens for customer support.
const settingsChallenge = register.SessionCRCS

// judgeBinding judges a file of settings by its binding (item file_device_unique). The file must name this card and the
// last challenge. The challenge is then used up, even if the file is refused.
func (c *Card) judgeBinding(f *nvconfig.File) register.MCCError {
	bound := f.Bound()
	switch {
	case !bound || c.o.Traits.IgnoresChallenges:
		return register.MCCOK
	case c.o.Traits.RefusesBound:
		return register.RejectedBadFormat
	case !c.answers(settingsChallenge, f):
		return register.RejectedNotApplicable
	}
	delete(c.sessions, settingsChallenge)
	return register.MCCOK
}
