package admission

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// items returns all that the store holds.
func (l *lab) items() (keys []string, values []byte) {
	l.t.Helper()
	snap, err := l.store.Snapshot(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	list, err := snap.Items(l.ctx(), "", 10000)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, i := range list {
		keys, values = append(keys, i.Key), append(values, i.Value...)
	}
	return keys, values
}

// TestNothingBeforeProof: sessions that strangers ask for with the EK certificate of a host, from any number of
// addresses, leave nothing in the store, and take nothing from the host.
func TestNothingBeforeProof(t *testing.T) {
	l := awaiting(t)
	if err := l.ask("host-1", "host-1", 0); err != nil { // makes the key
		t.Fatal(err)
	}
	s := l.open("host-1")
	secret, err := l.hosts["host-1"].Activate(s)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := l.items()
	for n := range 200 {
		if err := l.ask("host-1", "host-1", n); err != nil {
			t.Fatal(err)
		}
	}
	after, values := l.items()
	if !slices.Equal(before, after) {
		t.Errorf("200 sessions put %d records into the store", len(after)-len(before))
	}
	r, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, l.answer("host-1", s))
	if err != nil || r.Phase != v1.PhaseVerified {
		t.Errorf("the host's own evidence: got %+v, %v, want it accepted", r, err)
	}
	_, more := l.items()
	for _, text := range [][]byte{secret, []byte(base64.StdEncoding.EncodeToString(secret)), []byte(hex.EncodeToString(secret))} {
		if bytes.Contains(values, text) || bytes.Contains(more, text) || strings.Contains(s.ID, string(text)) {
			t.Error("the secret of a session stands in clear")
		}
	}
}

// TestTokensAreSealed: a token that is cut, altered, another session's or of a key that is gone opens nothing.
func TestTokensAreSealed(t *testing.T) {
	l := awaiting(t)
	s, other := l.open("host-1"), l.open("host-2")
	ev := l.answer("host-1", s)
	number, sealed, _ := strings.Cut(s.ID, ".")
	flipped := []byte(s.ID)
	for _, at := range []int{0, 33, 45, 60, len(flipped) - 9} {
		one := bytes.Clone(flipped)
		if one[at]++; one[at] == ':' || one[at] == '{' || one[at] == '[' {
			one[at] = 'a'
		}
		if err := l.svc.AwaitsEvidence(t.Context(), string(one)); err == nil {
			t.Errorf("a token with another letter %d is taken", at)
		}
	}
	for _, bad := range []string{
		number, number + ".", sealed, s.ID[:len(s.ID)-4], s.ID + "A", s.ID + "=", number + "." + strings.Repeat("A", 8<<10),
		other.ID[:32] + "." + sealed, strings.ToUpper(number) + "." + sealed,
	} {
		_, err := l.svc.SubmitEvidence(t.Context(), bad, l.channel, ev)
		wantRefusal(t, err, attest.ReasonSession)
	}
	if err := l.svc.AwaitsEvidence(t.Context(), s.ID); err != nil {
		t.Errorf("the token itself: %v", err)
	}
	if err := l.svc.update(t.Context(), func(tx *store.Tx) error {
		store.NewCollection[any]("session-keys", 1).Delete(tx, "keys")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	l.open("host-2")
	_, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, ev)
	wantRefusal(t, err, attest.ReasonSession)
}

// TestSessionKeysRotate: each hour another key seals; the one before still opens, and no more are kept.
func TestSessionKeysRotate(t *testing.T) {
	l := awaiting(t)
	l.open("host-1")
	for range 5 {
		l.clock = l.clock.Add(time.Hour - time.Second)
		for _, host := range []string{"host-1", "host-2"} {
			l.must(l.svc.Assign(t.Context(), "alice", host, v1.Assignment{Cluster: "c1"}))
		}
		l.hosts["host-1"].Statement.CollectedAt = l.clock
		s := l.open("host-1")
		ev := l.answer("host-1", s)
		l.clock = l.clock.Add(2 * time.Second)
		l.open("host-2") // by the next key
		if err := l.svc.AwaitsEvidence(t.Context(), s.ID); err != nil {
			t.Errorf("a token of the key before: %v", err)
		}
		if _, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, ev); err != nil {
			t.Errorf("a token of the key before: %v", err)
		}
		l.hosts["host-1"].Boot.Reset++
		empty(l.hosts["host-1"])
	}
}
