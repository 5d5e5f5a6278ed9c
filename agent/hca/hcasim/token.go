package hcasim

import (
	"crypto/sha256"
	"slices"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

// session is one of the vendor's doors, on its way to being open.
type session struct {
	status    register.SessionStatus
	challenge [sha256.Size]byte
}

// sessions are all of them. They are volatile.
type sessions struct {
	mac    uint64 // of the card, which challenges name
	traits Traits
	dice   *dice
	all    map[register.Session]*session
}

// sessionSeconds is the lifetime that a session, or a challenge, reports, in seconds. Nothing here counts them:
// ExpireSessions ends them.
const sessionSeconds = 600

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
	case c.sessions.of(kind).status == register.SessionActive:
		out.Status = register.ChallengeApplied
	default:
		out.KeyUUID, out.BaseMAC = signers[0].UUID, c.o.Identity.BaseMAC
		out.Challenge, out.FWVersion = c.sessions.challenge(kind), c.chip.running.component().Version
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

func (ss *sessions) of(kind register.Session) session {
	if s, ok := ss.all[kind]; ok {
		return *s
	}
	return session{status: register.SessionNone}
}

// challenge draws a challenge, in the place of one that was not answered.
func (ss *sessions) challenge(kind register.Session) [sha256.Size]byte {
	s := &session{status: register.SessionChallenged, challenge: ss.dice.draw()}
	ss.all[kind] = s
	return s.challenge
}

func (ss *sessions) readMDSR(m register.MDSR) (register.MDSR, register.Status) {
	if !slices.Contains(register.Sessions(), m.Type) {
		return m, register.BadParameter
	}
	m = register.MDSR{Type: m.Type, Status: ss.of(m.Type).status}
	if m.Status == register.SessionActive || m.Status == register.SessionChallenged {
		m.TimeLeft = sessionSeconds
	}
	if m.Status == register.SessionActive {
		m.Info = register.InfoSessionActive
	}
	return m, register.OK
}

// writeMDSR ends a session, or all.
func (ss *sessions) writeMDSR(m register.MDSR) (register.MDSR, register.Status) {
	if !m.End {
		return ss.readMDSR(m)
	}
	ended := false
	for kind, s := range ss.all {
		if kind != m.Type && m.Type != register.AllSessions {
			continue
		}
		if s.status == register.SessionChallenged && ss.traits.KeepsChallenge {
			continue
		}
		ended = ended || s.status == register.SessionActive
		delete(ss.all, kind)
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
	c.sessions.all[kind] = &session{status: register.SessionActive}
}

// ExpireSessions lets the time of all sessions and challenges pass.
func (c *Card) ExpireSessions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions.all {
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
func (ss *sessions) judgeToken(id register.Component, f *nvconfig.File) (func(), register.MCCError) {
	kind, challenged := tokenOf(id)
	if challenged && !ss.answers(kind, f) {
		return nil, register.RejectedNotApplicable
	}
	return func() { ss.all[kind] = &session{status: register.SessionActive} }, register.MCCOK
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

func (ss *sessions) answers(kind register.Session, f *nvconfig.File) bool {
	s := ss.of(kind)
	if s.status != register.SessionChallenged {
		return false
	}
	all, err := f.Challenges()
	return err == nil && slices.Contains(all, nvconfig.NewChallenge(ss.mac, s.challenge))
}

// settingsChallenge is the kind of challenge that files of settings answer: the one
// of tokens for customer support.
const settingsChallenge = register.SessionCRCS

// judgeBinding judges a file of settings by its binding (item file_device_unique). The file must name this card and the
// last challenge. The challenge is then used up, even if the file is refused.
func (ss *sessions) judgeBinding(f *nvconfig.File) register.MCCError {
	bound := f.Bound()
	switch {
	case !bound || ss.traits.IgnoresChallenges:
		return register.MCCOK
	case ss.traits.RefusesBound:
		return register.RejectedBadFormat
	case !ss.answers(settingsChallenge, f):
		return register.RejectedNotApplicable
	}
	delete(ss.all, settingsChallenge)
	return register.MCCOK
}
