package session

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/vault"
)

// lab is Tokens over a store in memory.
type lab struct {
	*Tokens
	t     *testing.T
	clock time.Time
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, clock: attesttest.Epoch}
	secret := sha256.Sum256([]byte("root of sessions"))
	root, err := vault.NewRoot("sessions", secret[:])
	if err != nil {
		t.Fatal(err)
	}
	l.Tokens = New(Options{
		Store: store.New(memory.New(time.Now), ""), Log: storetest.Quiet(), Root: root, Now: func() time.Time { return l.clock }, Rand: rand.Reader,
	})
	return l
}

// seal returns the token of a session that begins now.
func (l *lab) seal() string {
	l.t.Helper()
	ch := challenge(l.t)
	ch.Issued, ch.Expires = l.clock, l.clock.Add(5*time.Minute)
	token, err := l.Seal(l.t.Context(), &Session{Challenge: ch, Host: "host-1", Epoch: 3})
	if err != nil {
		l.t.Fatal(err)
	}
	return token
}

// values returns all that the store holds.
func (l *lab) values() (out []byte) {
	l.t.Helper()
	snap, err := l.o.Store.Snapshot(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	list, err := snap.Items(l.t.Context(), "", 10000)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, i := range list {
		out = append(out, i.Value...)
	}
	return out
}

// challenge is that of a host with a TPM that the policy trusts.
func challenge(t *testing.T) *attest.Challenge {
	t.Helper()
	vendor, err := attesttest.NewVendor("Example TPM")
	if err != nil {
		t.Fatal(err)
	}
	policy := attest.DefaultPolicy()
	if err := policy.AddCertificates(vendor.PEM()); err != nil {
		t.Fatal(err)
	}
	h, err := vendor.NewHost("host-1", 1)
	if err != nil {
		t.Fatal(err)
	}
	ch, _, err := attest.Begin(rand.Reader, attesttest.Epoch, h.Request(), attest.Expected{
		Host: "host-1", EKDigest: h.EKDigest(), HCAs: []attest.ExpectedHCA{{NodeGUID: 1, Ports: []attest.ExpectedPort{{Num: 1, GUID: 2}}}},
	}, policy)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// TestTokenOpensOnce: a token opens until it was used, and no longer than it says.
func TestTokenOpensOnce(t *testing.T) {
	l := newLab(t)
	token, late := l.seal(), l.seal()
	ses, err := l.Open(t.Context(), token)
	if err != nil || ses.Host != "host-1" || ses.Epoch != 3 || ses.Challenge.ID != token {
		t.Fatalf("got %+v, %v", ses, err)
	}
	if err := l.Consume(t.Context(), &ses); err != nil {
		t.Fatal(err)
	}
	if err := l.Consume(t.Context(), &ses); err == nil {
		t.Error("used twice")
	}
	if _, err := l.Open(t.Context(), token); err == nil {
		t.Error("one that was used opens")
	}
	l.clock = l.clock.Add(5 * time.Minute)
	if _, err := l.Open(t.Context(), late); err == nil {
		t.Error("one that has expired opens")
	}
}

// TestKeysRotate: each hour another key seals, the one before still opens, and no more are kept.
func TestKeysRotate(t *testing.T) {
	l := newLab(t)
	for range 5 {
		l.clock = l.clock.Add(keyLife - time.Second)
		token := l.seal()
		l.clock = l.clock.Add(2 * time.Second)
		l.seal()
		if _, err := l.Open(t.Context(), token); err != nil {
			t.Errorf("a token of the key before: %v", err)
		}
	}
	keys, err := l.keys(t.Context())
	if err != nil || len(keys) != keptKeys {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

// TestKeysWithoutRoot: without a root the store has no keys, and another one is made after its life.
func TestKeysWithoutRoot(t *testing.T) {
	l := newLab(t)
	l.o.Root = nil
	token := l.seal()
	if _, err := l.Open(t.Context(), token); err != nil {
		t.Error(err)
	}
	if v := l.values(); len(v) != 0 {
		t.Errorf("the store has %d bytes", len(v))
	}
	l.clock = l.clock.Add(keyLife)
	if k, err := l.sealingKey(t.Context()); err != nil || k.made != l.clock {
		t.Errorf("after its life: %v, %v, want another key", k, err)
	}
}

// texts are the forms in which a secret might stand in a text.
func texts(secret string) []string {
	b := []byte(secret)
	return []string{secret, hex.EncodeToString(b), base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b), fmt.Sprintf("%d", b)}
}

// TestSessionKeysAreSealed: the store has no key of sessions in clear, and no key is printed.
func TestSessionKeysAreSealed(t *testing.T) {
	l := newLab(t)
	token := l.seal()
	keys, err := l.keys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	if _, ok := openToken(keys, token); !ok {
		t.Error("the key that is stored does not open the token")
	}
	secret := keys[0].secret.Reveal()
	if len(secret) != keySecretSize {
		t.Fatalf("a secret of %d bytes", len(secret))
	}
	values := l.values()
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

// TestTokensAreWhole: a token holds all of a challenge, and is as short as agents of the version before want it.
func TestTokensAreWhole(t *testing.T) {
	ch := challenge(t)
	row := int64(77)
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
	keys := []key{{id: make([]byte, keyIDSize), secret: ib.NewSecretText(string(make([]byte, keySecretSize)))}}
	want := Session{Challenge: ch, Host: "host-1", Epoch: 3, Row: row, Source: "2001:db8::1", Locks: true}
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
		if _, err := decode(text[:n]); err == nil {
			t.Errorf("%d of %d bytes are a session", n, len(text))
		}
	}
}

// FuzzSession reads any bytes as the text of a token.
func FuzzSession(f *testing.F) {
	text, err := (&Session{Challenge: &attest.Challenge{EKNotes: []string{"a"}, PCRs: []int{1}}, Host: "h"}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		ses, err := decode(b)
		if err == nil && ses.Challenge == nil {
			t.Errorf("%x is a session without challenge", b)
		}
	})
}

// FuzzToken opens any bytes as a token.
func FuzzToken(f *testing.F) {
	keys := []key{{id: make([]byte, keyIDSize), secret: ib.NewSecretText(string(make([]byte, keySecretSize)))}}
	token, err := keys[0].seal(rand.Reader, &Session{Challenge: &attest.Challenge{ID: strings.Repeat("0", numberSize)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add("")
	f.Add(strings.Repeat("0", numberSize) + ".")
	f.Add(strings.Repeat("0", numberSize) + ".AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		ses, ok := openToken(keys, token)
		if ok && (ses.Challenge == nil || ses.Challenge.ID != token || ses.Number() != token[:numberSize]) {
			t.Errorf("%q opens as %+v", token, ses)
		}
	})
}
