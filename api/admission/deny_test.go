package admission

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit"
	"portcullis/api/limit"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// stranger asks for a session of host with the EK of another one, from n-th of
// many addresses.
func (l *lab) stranger(host string, n int) error {
	l.t.Helper()
	return l.ask(host, "host-2", n)
}

func (l *lab) ask(host, ek string, n int) error {
	l.t.Helper()
	req := l.hosts[ek].Request()
	req.Host = host
	_, err := l.svc.OpenSession(l.ctx(), req, fmt.Sprintf("203.0.113.%d", n))
	return err
}

func (l *lab) revision() int64 {
	l.t.Helper()
	snap, err := l.store.Snapshot(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	return snap.Revision
}

// refusals lists "ACTOR CODE" of every refusal in the audit log.
func (l *lab) refusals() []string {
	l.t.Helper()
	entries, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Value.Action == "evidence.refuse" {
			out = append(out, e.Value.Actor+" "+e.Value.Code)
		}
	}
	return out
}

func TestStrangersDoNotFillTheStore(t *testing.T) {
	l := awaiting(t)
	before := l.revision()
	for n := range 20 {
		wantRefusal(t, l.stranger("host-1", n), attest.ReasonEKPin)
	}
	if wrote := l.revision() - before; wrote != 1 {
		t.Errorf("20 requests wrote %d times, want once", wrote)
	}
	if d := l.host("host-1").Status.LastDenial; d == nil || d.Code != string(attest.ReasonEKPin) {
		t.Errorf("the operator sees %+v, want %s", d, attest.ReasonEKPin)
	}
	l.clock = l.clock.Add(time.Minute)
	l.stranger("host-1", 1)
	if wrote := l.revision() - before; wrote != 2 {
		t.Errorf("a minute later %d writes, want another one", wrote)
	}
	if got := l.refusals(); len(got) > 0 {
		t.Errorf("strangers wrote %v into the audit log", got)
	}
}

// However many hosts they name.
func TestStrangersShareABudget(t *testing.T) {
	l := awaiting(t)
	before := l.revision()
	for n := range 500 {
		l.stranger(fmt.Sprintf("host-%d", n+100), n%250)
	}
	if wrote := l.revision() - before; wrote == 0 || wrote > 120 {
		t.Errorf("500 requests wrote %d times, want 1 to 120", wrote)
	}
}

// TestStrangersSuppressNoAudit: strangers who use up what the store takes of theirs
// suppress neither the refusals of those who know an EK nor those of credentials that reach
// for what is not theirs.
func TestStrangersSuppressNoAudit(t *testing.T) {
	l := awaiting(t)
	l.must(l.svc.Release(t.Context(), "alice", "host-2"))
	before := l.revision()
	for n := range 250 {
		l.stranger(fmt.Sprintf("host-%d", n+100), n)
	}
	if wrote := l.revision() - before; wrote != 120 {
		t.Fatalf("strangers wrote %d times, want all of theirs: 120", wrote)
	}
	wantRefusal(t, l.ask("host-2", "host-2", 251), ReasonWindow)
	if got := l.refusals(); !slices.Equal(got, []string{"source:203.0.113.251 window"}) {
		t.Errorf("the audit log has %q of who knows the EK", got)
	}
	_, err := l.svc.CreateCluster(l.ctx(), "mallory", v1.NewCluster{Name: "x", Tenant: "acme", PKey: new(ib.PKey(0x200))})
	if code(err) != codeOutOfScope {
		t.Fatal(err)
	}
	if n := l.audited("cluster.create"); n == 0 || !l.auditHas("mallory", codeOutOfScope) {
		t.Error("the audit log has nothing of a credential that reached for what is not its")
	}
}

func (l *lab) auditHas(actor, code string) bool {
	l.t.Helper()
	entries, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		l.t.Fatal(err)
	}
	return slices.ContainsFunc(entries, func(e store.Record[audit.Entry]) bool { return e.Value.Actor == actor && e.Value.Code == code })
}

// TestStrangersHideNoDenial: an operator sees why the host itself was refused, whatever
// strangers are refused for in its name. They are shown where nothing else is, or nothing
// newer.
func TestStrangersHideNoDenial(t *testing.T) {
	l := awaiting(t)
	s := l.open("host-1")
	if _, err := l.svc.SubmitEvidence(t.Context(), s.ID, slices.Repeat([]byte{9}, attest.ExporterSize), l.answer("host-1", s)); err == nil {
		t.Fatal("evidence over another connection was accepted")
	}
	shown := func(want attest.Reason) {
		t.Helper()
		if d := l.host("host-1").Status.LastDenial; d == nil || d.Code != string(want) {
			t.Errorf("the operator sees %+v, want %s", d, want)
		}
	}
	l.clock = l.clock.Add(time.Minute)
	wantRefusal(t, l.stranger("host-1", 1), attest.ReasonEKPin)
	shown(attest.ReasonNonce)
	l.clock = l.clock.Add(l.svc.o.Window)
	l.stranger("host-1", 1)
	shown(ReasonWindow)
}

func TestActorOfRefusals(t *testing.T) {
	l := awaiting(t)
	l.must(l.svc.Release(t.Context(), "alice", "host-2"))
	l.ask("host-2", "host-2", 1) // its EK is right, its window closed
	l.ask("host-2", "host-2", 2)
	bad := func(spoil func(*attest.Evidence), channel []byte) {
		t.Helper()
		s := l.open("host-1")
		ev := l.answer("host-1", s)
		spoil(ev)
		if _, err := l.svc.SubmitEvidence(t.Context(), s.ID, channel, ev); err == nil {
			t.Error("bad evidence was accepted")
		}
	}
	elsewhere := slices.Repeat([]byte{9}, attest.ExporterSize)
	for range 2 {
		bad(func(ev *attest.Evidence) { ev.Proof[0] ^= 1 }, l.channel)
		bad(func(*attest.Evidence) {}, elsewhere)
	}
	want := []string{
		"source:203.0.113.1 window", // once a minute
		"source:192.0.2.1 proof",
		"agent:host-1 nonce", "agent:host-1 nonce", // each time: the TPM had answered
	}
	if got := l.refusals(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDetailIsBounded(t *testing.T) {
	l := awaiting(t)
	for _, long := range []string{strings.Repeat("x", 60_000), strings.Repeat("ü", 30_000)} {
		err := l.svc.deny(t.Context(), denial{host: "host-1", source: "192.0.2.1", proven: provenTPM}, &attest.Refusal{Code: "statement", Detail: long})
		var no *attest.Refusal
		d := l.host("host-1").Status.LastDenial
		if !errors.As(err, &no) || len(no.Detail) > maxDetail+3 || d == nil || d.Detail != no.Detail || strings.ContainsRune(d.Detail, '\uFFFD') {
			t.Errorf("got %v, status shows %+v, want both the first %d bytes", err, d, maxDetail)
		}
	}
}

// A stranger learns nothing about which hosts exist: neither from the answers,
// nor from how often something is written, which takes time.
func TestUnknownHostsLookLikeKnownOnes(t *testing.T) {
	kinds := map[string]func(*attest.SessionRequest){
		"another EK":     func(*attest.SessionRequest) {},
		"no certificate": func(r *attest.SessionRequest) { r.EK.Certificates = nil },
		"no kind of EK":  func(r *attest.SessionRequest) { r.EK.Kind = "x" },
	}
	seen := func(host string) string {
		l := awaiting(t)
		l.must(l.svc.Release(t.Context(), "alice", "host-2"))
		h, err := l.vendor.NewHost("stranger", 9)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, name := range []string{"another EK", "no certificate", "no kind of EK", "another EK"} {
			for range 4 {
				req := h.Request()
				req.Host = host
				kinds[name](req)
				before := l.revision()
				_, err := l.svc.OpenSession(t.Context(), req, "203.0.113.9")
				var no *attest.Refusal
				fmt.Fprintf(&out, "%s: refused %v, limited %v, wrote %d\n", name, errors.As(err, &no), IsKind(err, Limited), l.revision()-before)
			}
		}
		return out.String()
	}
	unknown := seen("host-77")
	if !strings.Contains(unknown, "limited true") || !strings.Contains(unknown, "wrote 1") {
		t.Errorf("the attempts of a stranger do not reach the limits:\n%s", unknown)
	}
	for _, host := range []string{"host-1", "host-2"} {
		if known := seen(host); known != unknown {
			t.Errorf("%s looks like\n%sand an unknown host like\n%s", host, known, unknown)
		}
	}
}

func TestOthersDoNotUseUpAHostsAttempts(t *testing.T) {
	l := awaiting(t)
	for n := range 20 {
		for range 12 {
			l.stranger("host-1", n)
		}
	}
	l.open("host-1")
}

// TestHostwideLimit: what one host may have judged is bounded over all addresses. Who only knows its EK certificate uses
// up nothing of it.
func TestHostwideLimit(t *testing.T) {
	l := awaiting(t)
	l.options = func(o *Options) { o.HostRate = limit.Rate{PerSecond: 1, Burst: 3} }
	l.restart()
	for n := range 30 {
		if err := l.ask("host-1", "host-1", n); err != nil {
			t.Errorf("session %d of host-1: %v", n+1, err)
		}
	}
	for n := range 6 {
		l.hosts["host-1"].Boot.Reset++
		if _, err := l.attestInThisBoot("host-1"); IsKind(err, Limited) != (n >= 3) {
			t.Errorf("evidence %d of host-1: %v", n+1, err)
		}
	}
	if _, err := l.attest("host-2"); err != nil {
		t.Errorf("host-2: %v", err)
	}
}

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

// TestNothingBeforeProof: sessions that whoever knows the EK certificate of a host asks for, from any number of
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
	rec, err := sessionKeyRing().Get(t.Context(), l.store, sessionKeysKey)
	if err != nil || len(rec.Value.Keys) != keptKeys {
		t.Errorf("%d keys, %v", len(rec.Value.Keys), err)
	}
	if text := fmt.Sprint(rec.Value.Keys); strings.Contains(text, hex.EncodeToString(rec.Value.Keys[0].Secret)) || !strings.Contains(text, "session key") {
		t.Errorf("printed: %s", text)
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
	k := sessionKeys{Keys: []sessionKey{{ID: make([]byte, keyIDSize), Secret: make([]byte, 32)}}}
	want := sessionRecord{Challenge: ch, Host: "host-1", Epoch: 3, Row: row, Source: "2001:db8::1", Locks: true}
	token, err := k.Keys[0].seal(rand.Reader, &want)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := k.open(token)
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
	k := sessionKeys{Keys: []sessionKey{{ID: make([]byte, keyIDSize), Secret: make([]byte, 32)}}}
	token, err := k.Keys[0].seal(rand.Reader, &sessionRecord{Challenge: &attest.Challenge{ID: strings.Repeat("0", sessionNumber)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add("")
	f.Add(strings.Repeat("0", sessionNumber) + ".")
	f.Add(strings.Repeat("0", sessionNumber) + ".AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		ses, ok := k.open(token)
		if ok && (ses.Challenge == nil || ses.Challenge.ID != token || ses.number() != token[:sessionNumber]) {
			t.Errorf("%q opens as %+v", token, ses)
		}
	})
}

// A refusal is shown until evidence that came after it was accepted; a later one is shown again.
func TestRefusalIsShownUntilEvidenceIsAccepted(t *testing.T) {
	l := awaiting(t)
	refuse := func() {
		t.Helper()
		mine, other := l.open("host-1"), l.open("host-2")
		_, err := l.svc.SubmitEvidence(t.Context(), other.ID, l.channel, l.answer("host-1", mine))
		wantRefusal(t, err, attest.ReasonProof)
		if l.host("host-2").Status.LastDenial == nil {
			t.Fatal("a refusal is not shown")
		}
	}
	refuse()
	l.clock = l.clock.Add(time.Minute)
	if _, err := l.attested("host-2"); err != nil {
		t.Fatal(err)
	}
	if d := l.host("host-2").Status.LastDenial; d != nil {
		t.Errorf("after evidence was accepted: %+v", d)
	}
	l.clock = l.clock.Add(time.Minute)
	refuse()
}
