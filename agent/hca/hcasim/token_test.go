package hcasim

import (
	"encoding/binary"
	"testing"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

// token makes one of the vendor, that answers a challenge if there is one.
func (l lab) token(item uint32, challenge *register.MTCQ) []byte {
	l.Helper()
	psid, err := nvconfig.ForPSID(testPSID, "")
	if err != nil {
		l.Fatal(err)
	}
	a := nvconfig.FileItemAddress(item)
	size := 4
	if layout, ok := nvconfig.LayoutOf(a); ok {
		size = layout.Size
	}
	items := []nvconfig.Item{nvconfig.OEMItem(a, make([]byte, size)), psid}
	if challenge != nil {
		c := nvconfig.Challenge{Nonce: challenge.Challenge}
		binary.BigEndian.PutUint64(c.Device[:], challenge.BaseMAC)
		unique, err := nvconfig.ForChallenges(c)
		if err != nil {
			l.Fatal(err)
		}
		items = append(items, unique)
	}
	return l.signed(items, vendorKey(l.T), vendorUUID)
}

const (
	csTokenItem    = 7
	debugTokenItem = 5
)

func (l lab) session(kind register.Session, want register.SessionStatus) {
	l.Helper()
	if m := get(l, register.MDSR{Type: kind}); m.Status != want {
		l.Errorf("session %v: status %d, want %d", kind, m.Status, want)
	}
}

// A token that answers a challenge opens a session once, here, and until the
// next boot.
func TestChallenge(t *testing.T) {
	l := open(t)
	for _, kind := range register.Sessions() {
		l.session(kind, register.SessionNone)
	}
	early := get(open(t), register.MTCQ{Token: register.CRCS})
	l.refused(register.CRCSToken, l.token(csTokenItem, &early), register.RejectedNotApplicable)
	first := get(l, register.MTCQ{Token: register.CRCS})
	if register.Text(first.PSID[:]) != testPSID || first.KeyUUID != [16]byte(vendorUUID) || first.Status != register.ChallengeOK {
		t.Errorf("challenge %+v", first)
	}
	l.session(register.SessionCRCS, register.SessionChallenged)
	second := get(l, register.MTCQ{Token: register.CRCS})
	if first.Challenge == second.Challenge {
		t.Error("the same challenge twice")
	}
	l.refused(register.CRCSToken, l.token(csTokenItem, &first), register.RejectedNotApplicable)
	other := second
	other.BaseMAC++
	l.refused(register.CRCSToken, l.token(csTokenItem, &other), register.RejectedNotApplicable)
	answer := l.token(csTokenItem, &second)
	l.refused(register.CRDTToken, answer, register.RejectedNotApplicable)
	l.mustUpload(register.CRCSToken, answer)
	l.session(register.SessionCRCS, register.SessionActive)
	if m := get(l, register.MTCQ{Token: register.CRCS}); m.Status != register.ChallengeApplied {
		t.Errorf("another challenge: %+v", m)
	}
	l.refused(register.CRCSToken, answer, register.RejectedNotApplicable)
	l.card.Reset()
	l.session(register.SessionCRCS, register.SessionNone)
	l.refused(register.CRCSToken, answer, register.RejectedNotApplicable)
}

func TestTokens(t *testing.T) {
	l := open(t)
	l.mustUpload(register.CSToken, l.token(csTokenItem, nil))
	l.session(register.SessionCS, register.SessionActive)
	l.mustUpload(register.DebugToken, l.token(debugTokenItem, nil))
	l.session(register.SessionDebug, register.SessionActive)
	end := func(kind register.Session, want register.SessionStatus) {
		t.Helper()
		if m, status := do(l, register.Write, register.MDSR{Type: kind, End: true}); m.Status != want || status != register.OK {
			t.Errorf("end %v: %+v, %v", kind, m, status)
		}
	}
	end(register.SessionCS, register.SessionEnded)
	l.session(register.SessionCS, register.SessionNone)
	end(register.SessionCS, register.SessionFailed)
	end(register.AllSessions, register.SessionEnded)
	l.session(register.SessionDebug, register.SessionNone)
	l.card.OpenSession(register.SessionMTFA)
	get(l, register.MTCQ{Token: register.CRDT})
	if m := get(l, register.MDSR{Type: register.SessionMTFA}); m.Clean() || m.TimeLeft == 0 {
		t.Errorf("open: %+v", m)
	}
	l.card.ExpireSessions()
	l.session(register.SessionMTFA, register.SessionTimedOut)
	l.session(register.SessionCRDT, register.SessionNotInstalled)
	for token, want := range map[register.Token]register.ChallengeStatus{register.RMCS: register.ChallengeNotFromHere, register.RMDT: register.ChallengeNotFromHere, register.FRC: register.ChallengeNotSupported, 99: register.ChallengeNotSupported} {
		if m := get(l, register.MTCQ{Token: token}); m.Status != want {
			t.Errorf("challenge for token %d: status %d, want %d", token, m.Status, want)
		}
	}
	keyless := open(t, func(o *Options) { o.Keys = nil })
	if m := get(keyless, register.MTCQ{Token: register.CRCS}); m.Status != register.ChallengeNoKey {
		t.Errorf("without a key: %+v", m)
	}
	if _, status := do(l, register.Read, register.MDSR{Type: register.AllSessions}); status != register.BadParameter {
		t.Errorf("all sessions are read: %v", status)
	}
}
