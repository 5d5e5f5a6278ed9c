package admission

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"portcullis/attest"
	"portcullis/fabricsm/vault"
)

// texts are the forms in which a secret might stand in a text.
func texts(secret string) []string {
	b := []byte(secret)
	return []string{secret, hex.EncodeToString(b), base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b), fmt.Sprintf("%d", b)}
}

// TestSessionKeysAreSealed: the store has no key of sessions in clear, and no key is printed.
func TestSessionKeysAreSealed(t *testing.T) {
	l := awaiting(t)
	s := l.open("host-1")
	keys, err := l.svc.sessionKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	if _, ok := openToken(keys, s.ID); !ok {
		t.Error("the key that is stored does not open the token")
	}
	secret := keys[0].secret.Reveal()
	if len(secret) != keySecretSize {
		t.Fatalf("a secret of %d bytes", len(secret))
	}
	_, values := l.items()
	asJSON, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("keys", "keys", keys, "key", keys[0])
	printed := fmt.Sprintf("%v %+v %#v %s %x", keys, keys, keys, keys[0], keys[0]) + string(asJSON) + log.String()
	for _, text := range texts(secret) {
		if bytes.Contains(values, []byte(text)) {
			t.Errorf("the store has a key of sessions in clear, as %d bytes", len(text))
		}
		if strings.Contains(printed, text) {
			t.Errorf("a key of sessions is printed: %s", printed)
		}
	}
}

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
	l.clock = l.clock.Add(sessionKeyLife)
	if k, err := l.svc.sealingKey(t.Context()); err != nil || k.made != l.clock {
		t.Errorf("after its life: %v, %v, want another key", k, err)
	}
}
