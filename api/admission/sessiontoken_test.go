package admission

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
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
		number, number + ".", sealed, s.ID[:len(s.ID)-4], s.ID + "A", s.ID + "=", number + "." + strings.Repeat("A", maxToken),
		numberOf(other.ID) + "." + sealed, strings.ToUpper(number) + "." + sealed,
	} {
		_, err := l.svc.SubmitEvidence(t.Context(), bad, l.channel, ev)
		wantRefusal(t, err, attest.ReasonSession)
	}
	if err := l.svc.AwaitsEvidence(t.Context(), s.ID); err != nil {
		t.Errorf("the token itself: %v", err)
	}
	if err := l.svc.update(t.Context(), func(tx *store.Tx) error {
		sessionKeyRing().Delete(tx, sessionKeysKey)
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
		l.clock = l.clock.Add(sessionKeyLife - time.Second)
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
	keys, err := l.svc.sessionKeys(t.Context())
	if err != nil || len(keys) != keptKeys {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

// TestTokensAreWhole: a token holds all of a challenge, and is as short as agents of the version before want it.
func TestTokensAreWhole(t *testing.T) {
	l := awaiting(t)
	h := l.hosts["host-1"]
	req := h.Request()
	host, row, err := l.svc.inventoryRow(t.Context(), l.store, "host-1")
	if err != nil {
		t.Fatal(err)
	}
	ch, _, err := attest.Begin(rand.Reader, l.clock, req, expected(&host), l.policy)
	if err != nil {
		t.Fatal(err)
	}
	ch.EKNotes, ch.TPM.Maker, ch.TPM.Name, ch.TPM.Version = []string{"a note"}, "id:1", "m", "v"
	if v := reflect.ValueOf(*ch); v.NumField() != 18 {
		t.Errorf("a challenge has %d fields by now: have tokens hold them", v.NumField())
	} else {
		for n := range v.NumField() {
			if v.Field(n).IsZero() {
				t.Errorf("field %d is empty here", n)
			}
		}
	}
	keys := []sessionKey{{id: make([]byte, keyIDSize), secret: ib.NewSecretText(string(make([]byte, keySecretSize)))}}
	want := sessionRecord{Challenge: ch, Host: "host-1", Epoch: 3, Row: row, Source: "2001:db8::1", Locks: true}
	token, err := keys[0].seal(rand.Reader, &want)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := openToken(keys, token)
	if ch.ID = token; !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v %+v, want %+v %+v", got, got.Challenge, want, want.Challenge)
	}
	if len(token) > 1000 {
		t.Errorf("the token has %d bytes", len(token))
	}
	text, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := range text {
		if _, err := decodeSession(text[:n]); err == nil {
			t.Errorf("%d of %d bytes are a session", n, len(text))
		}
	}
}

// FuzzSession reads any bytes as the text of a token.
func FuzzSession(f *testing.F) {
	text, err := (&sessionRecord{Challenge: &attest.Challenge{EKNotes: []string{"a"}, PCRs: []int{1}}, Host: "h"}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		ses, err := decodeSession(b)
		if err == nil && ses.Challenge == nil {
			t.Errorf("%x is a session without challenge", b)
		}
	})
}

// FuzzToken opens any bytes as a token.
func FuzzToken(f *testing.F) {
	keys := []sessionKey{{id: make([]byte, keyIDSize), secret: ib.NewSecretText(string(make([]byte, keySecretSize)))}}
	token, err := keys[0].seal(rand.Reader, &sessionRecord{Challenge: &attest.Challenge{ID: strings.Repeat("0", sessionNumber)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add("")
	f.Add(strings.Repeat("0", sessionNumber) + ".")
	f.Add(strings.Repeat("0", sessionNumber) + ".AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		ses, ok := openToken(keys, token)
		if ok && (ses.Challenge == nil || ses.Challenge.ID != token || ses.number() != token[:sessionNumber]) {
			t.Errorf("%q opens as %+v", token, ses)
		}
	})
}
