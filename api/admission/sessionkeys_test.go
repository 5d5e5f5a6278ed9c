package admission

import (
	"strings"
	"testing"

	"portcullis/attest"
	"portcullis/fabricsm/vault"
)

// TestSessionKeysOfAnotherRoot: keys that do not open are replaced; sessions that they sealed are void.
func TestSessionKeysOfAnotherRoot(t *testing.T) {
	l := awaiting(t)
	before := l.open("host-1")
	l.root = sessionRoot(t, "another")
	l.restart()
	if _, err := l.svc.SubmitEvidence(t.Context(), before.ID, l.channel, l.answer("host-1", before)); err == nil {
		t.Error("a session of the root before counts")
	} else {
		wantRefusal(t, err, attest.ReasonSession)
	}
	s := l.open("host-1")
	l.restart() // the store has the key
	if _, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, l.answer("host-1", s)); err != nil {
		t.Errorf("a session of the root: %v", err)
	}
}

// TestSessionKeysWithoutRoot: without a root the store has no keys, and a session ends with its Service.
func TestSessionKeysWithoutRoot(t *testing.T) {
	l := awaiting(t)
	l.options = func(o *Options) { o.Root = vault.Root(nil) }
	l.restart()
	s, other := l.open("host-1"), l.open("host-2")
	if _, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, l.answer("host-1", s)); err != nil {
		t.Errorf("a session of this service: %v", err)
	}
	if keys, _ := l.items(); strings.Contains(strings.Join(keys, " "), "session-keys/") {
		t.Error("the store has keys of sessions")
	}
	l.restart()
	_, err := l.svc.SubmitEvidence(t.Context(), other.ID, l.channel, l.answer("host-2", other))
	wantRefusal(t, err, attest.ReasonSession)
	l.open("host-1")
}
