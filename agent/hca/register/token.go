package register

import "fmt"

// MTCQ asks for a challenge that a token must answer. It starts what may
// become a session.
type MTCQ struct {
	Device       uint16          `reg:"0x00.0,12"`
	Status       ChallengeStatus `reg:"0x00.16,8"`
	Token        Token           `reg:"0x00.24,8"` // token_opcode
	KeyUUID      [16]byte        `reg:"0x04"`
	BaseMAC      uint64          `reg:"0x14.0,64"`
	PSID         [16]byte        `reg:"0x1C"`
	FWVersionTop uint8           `reg:"0x2C.0,8"`
	FWVersion    uint32          `reg:"0x30.0,32"`
	Session      uint16          `reg:"0x44.0,16"`
	Version      uint8           `reg:"0x44.24,8"` // of the challenge's form
	Challenge    [32]byte        `reg:"0x48"`
	Ratchet      uint64          `reg:"0x68.0,64"`
}

// ID implements Layout.
func (MTCQ) ID() ID { return IDMTCQ }

// Size implements Sized.
func (MTCQ) Size() int { return 0x70 }

// ChallengeStatus is the result of a request for a challenge.
type ChallengeStatus uint8

// Statuses of a challenge.
const (
	ChallengeOK           ChallengeStatus = 0
	ChallengeApplied      ChallengeStatus = 1 // a token of this kind is in effect
	ChallengeNotSupported ChallengeStatus = 2
	ChallengeNoKey        ChallengeStatus = 3 // no public key may sign what would answer it
	ChallengeNotFromHere  ChallengeStatus = 4 // of a local token from afar, or the other way round
	ChallengeExpired      ChallengeStatus = 5 // the time to apply the token is over
)

func (s ChallengeStatus) String() string {
	switch s {
	case ChallengeOK:
		return "ok"
	case ChallengeApplied:
		return "a token is in effect already"
	case ChallengeNotSupported:
		return "such tokens are not supported"
	case ChallengeNoKey:
		return "no key is configured"
	case ChallengeNotFromHere:
		return "not by this interface"
	case ChallengeExpired:
		return "the time to apply a token is over"
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Token is a kind of token, as MTCQ numbers them.
type Token uint8

// Kinds of tokens for challenges.
const (
	RMCS Token = 0 // remote customer support
	RMDT Token = 1 // remote debug
	CRCS Token = 2 // challenge and response, customer support
	CRDT Token = 3 // challenge and response, debug
	MTDT Token = 5
	FRC  Token = 6 // factory recustomization
)

// Session is a kind of token, as MDSR numbers them.
type Session uint8

// Kinds of tokens for sessions.
const (
	SessionCS    Session = 0
	SessionDebug Session = 1
	SessionFRC   Session = 2
	SessionRMCS  Session = 3
	SessionRMDT  Session = 4
	SessionCRCS  Session = 5
	SessionCRDT  Session = 6
	SessionMTFA  Session = 8
	AllSessions  Session = 0xFF // only to end them
)

// Sessions are all kinds that one can ask for.
func Sessions() []Session {
	return []Session{SessionCS, SessionDebug, SessionFRC, SessionRMCS, SessionRMDT, SessionCRCS, SessionCRDT, SessionMTFA}
}

func (s Session) String() string {
	switch s {
	case SessionCS:
		return "CS"
	case SessionDebug:
		return "debug"
	case SessionFRC:
		return "FRC"
	case SessionRMCS:
		return "RMCS"
	case SessionRMDT:
		return "RMDT"
	case SessionCRCS:
		return "CRCS"
	case SessionCRDT:
		return "CRDT"
	case SessionMTFA:
		return "MTFA"
	case AllSessions:
		return "all"
	}
	return fmt.Sprintf("session type %d", uint8(s))
}

// SessionStatus is how a token session stands.
type SessionStatus uint8

// Session statuses.
const (
	SessionEnded        SessionStatus = 0 // the session was ended, or see Info
	SessionFailed       SessionStatus = 1 // see Info
	SessionActive       SessionStatus = 2
	SessionNone         SessionStatus = 3 // no token applied
	SessionChallenged   SessionStatus = 4 // a challenge is out
	SessionNotInstalled SessionStatus = 5 // a challenge was not answered in time
	SessionTimedOut     SessionStatus = 6
)

// Clean reports a status in which no token is, or can become, effective
// without another challenge.
func (s SessionStatus) Clean() bool {
	return s == SessionNone || s == SessionNotInstalled || s == SessionTimedOut
}

// Infos of sessions (additional_info).
const (
	InfoNone          = 0
	InfoNoSession     = 1
	InfoNotSecured    = 2
	InfoCannotEnd     = 3
	InfoHostForbidden = 4
	InfoSessionActive = 5
	InfoDebugFirmware = 6
)

// MDSR shows a token session, and ends it.
type MDSR struct {
	Status   SessionStatus `reg:"0x00.0,4"`
	Info     uint8         `reg:"0x00.8,6"` // additional_info
	Type     Session       `reg:"0x00.24,8"`
	End      bool          `reg:"0x04.31,1"`
	TimeLeft uint32        `reg:"0x08.0,32"` // seconds
}

// Clean reports an answer by which no token is effective, nor can become so
// without another challenge. Status 0 says so only with its reason.
func (m MDSR) Clean() bool {
	return m.Status.Clean() || m.Status == SessionEnded && m.Info == InfoNoSession
}

// ID implements Layout.
func (MDSR) ID() ID { return IDMDSR }

// Size implements Sized.
func (MDSR) Size() int { return 0x30 }
