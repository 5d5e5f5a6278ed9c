package attest_test

import (
	"bytes"
	"crypto/rand"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// sealing is a host whose evidence was accepted, and the parts that a case may change.
type sealing struct {
	*lab
	session *attest.Session
	sc      *attest.SealChallenge
	seal    *attest.Seal
	ev      *attest.SealEvidence
	now     time.Time
}

func (l *lab) sealing() *sealing {
	l.t.Helper()
	ch, s := l.begin()
	ev, err := l.host.Answer(s, l.channel)
	if err != nil {
		l.t.Fatal(err)
	}
	v := attest.Verify(attesttest.Epoch, ch, l.channel, ev, l.host.Expected(), l.policy)
	if !v.OK {
		l.t.Fatalf("refused: %s: %s", v.Code, v.Detail)
	}
	sc, seal, err := attest.BeginSeal(rand.Reader, attesttest.Epoch, ch, &v.Facts, l.policy)
	if err != nil {
		l.t.Fatal(err)
	}
	return &sealing{lab: l, session: s, sc: sc, seal: seal, now: attesttest.Epoch}
}

type brokenSeal struct {
	name string
	want attest.Reason
	// host changes the host after it was capped.
	host func(*sealing)
	// quote changes what is signed.
	quote func(*sealing, *tpm2.TPMSAttest)
	// sent changes what arrives.
	sent func(*sealing)
}

func (b *brokenSeal) verdict(t *testing.T) (attest.Boot, *attest.Refusal) {
	t.Helper()
	s := newLab(t).sealing()
	s.host.Cap()
	if b.host != nil {
		b.host(s)
	}
	var alter func(*tpm2.TPMSAttest)
	if b.quote != nil {
		alter = func(q *tpm2.TPMSAttest) { b.quote(s, q) }
	}
	var err error
	if s.ev, err = s.host.SealQuote(s.session, s.seal, s.channel, alter); err != nil {
		t.Fatal(err)
	}
	if b.sent != nil {
		b.sent(s)
	}
	boot, answered, no := attest.VerifySeal(s.now, s.sc, s.channel, s.ev, s.policy)
	if want := no == nil || signedSeal(no.Code); answered != want {
		t.Errorf("answered: %t with %v", answered, no)
	}
	return boot, no
}

// signedSeal reports whether a seal is refused for this reason only after the host's
// TPM has signed it as an answer to the challenge.
func signedSeal(code attest.Reason) bool {
	return code == attest.ReasonSeal || code == attest.ReasonClock || code == attest.ReasonSelection
}

func TestVerifySealRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []brokenSeal{
		{name: "no challenge", want: attest.ReasonSession, sent: func(s *sealing) { s.sc = nil }},
		{name: "no seal quote", want: attest.ReasonSession, sent: func(s *sealing) { s.ev = nil }},
		{name: "no policy", want: attest.ReasonPolicy, sent: func(s *sealing) { s.policy = nil }},
		{name: "too late", want: attest.ReasonSession, sent: func(s *sealing) { s.now = s.sc.Expires.Add(time.Second) }},
		{name: "over its size", want: attest.ReasonSize, sent: func(s *sealing) { s.ev.Quote = make([]byte, attest.MaxTPMStructure+1) }},
		{name: "no channel binding", want: attest.ReasonChannel, sent: func(s *sealing) { s.channel = nil }},
		{name: "signature empty", want: attest.ReasonParse, sent: func(s *sealing) { s.ev.Signature = nil }},
		{name: "seal quote with a trailing byte", want: attest.ReasonParse, sent: func(s *sealing) {
			s.ev.Quote = append(s.ev.Quote, 0)
			s.resign()
		}},
		{name: "quoted by the first key", want: attest.ReasonSignature, sent: func(s *sealing) {
			var err error
			if s.ev.Signature, err = attesttest.Sign(s.host.AK1, s.ev.Quote); err != nil {
				s.t.Fatal(err)
			}
		}},
		{name: "magic wrong", want: attest.ReasonMagic, quote: func(_ *sealing, q *tpm2.TPMSAttest) { q.Magic = 0xff544348 }},
		{name: "not a quote", want: attest.ReasonType, quote: func(_ *sealing, q *tpm2.TPMSAttest) {
			q.Type = tpm2.TPMSTAttestTime
			q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestTime, &tpm2.TPMSTimeAttestInfo{})
		}},
		{name: "nonce of the evidence", want: attest.ReasonNonce, quote: func(s *sealing, q *tpm2.TPMSAttest) {
			q.ExtraData.Buffer = attest.SealQualifyingData(s.session.ID, s.session.Nonce, s.sc.Statement, s.channel, s.host.AK2Name())
		}},
		{name: "qualifying data of the evidence", want: attest.ReasonNonce, quote: func(s *sealing, q *tpm2.TPMSAttest) {
			q.ExtraData.Buffer = attest.QualifyingData(s.session.ID, s.seal.Nonce, s.sc.Statement, s.channel, s.host.AK2Name())
		}},
		{name: "another connection", want: attest.ReasonNonce, sent: func(s *sealing) { s.channel = bytes.Repeat([]byte{9}, attest.ExporterSize) }},
		{name: "second key under another EK", want: attest.ReasonSigner, sent: func(s *sealing) { s.sc.EKName = s.newHost("compute-02", 2).EKName() }},
		{name: "fewer registers", want: attest.ReasonSelection, quote: func(s *sealing, q *tpm2.TPMSAttest) {
			attesttest.QuoteInfo(q, attesttest.Selection(tpm2.TPMAlgSHA256, attesttest.Demanded()[1:]...), s.sc.Digest)
		}},
		{name: "SHA-384 bank", want: attest.ReasonSelection, quote: func(s *sealing, q *tpm2.TPMSAttest) {
			attesttest.QuoteInfo(q, attesttest.Selection(tpm2.TPMAlgSHA384, attesttest.Demanded()...), s.sc.Digest)
		}},
		{name: "next boot", want: attest.ReasonSeal, host: func(s *sealing) { s.host.Boot.Reset++ }},
		{name: "TPM restarted", want: attest.ReasonSeal, host: func(s *sealing) { s.host.Boot.Restart++ }},
		{name: "clock went back", want: attest.ReasonClock, host: func(s *sealing) { s.host.Boot.Clock-- }},
		{name: "other TPM firmware", want: attest.ReasonSeal, quote: func(_ *sealing, q *tpm2.TPMSAttest) { q.FirmwareVersion++ }},
		{name: "register not capped", want: attest.ReasonSeal, host: func(s *sealing) { s.host.Registers[15] = s.host.Open() }},
		{name: "register capped twice", want: attest.ReasonSeal, host: func(s *sealing) { s.host.Cap() }},
		{name: "something measured after the evidence", want: attest.ReasonSeal, host: func(s *sealing) { s.host.Extend(4, make([]byte, 32)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, no := tc.verdict(t)
			if no == nil || no.Code != tc.want || no.Detail == "" {
				t.Errorf("got %v, %v; want reason %s", b, no, tc.want)
			}
		})
	}
}

func (s *sealing) resign() {
	var err error
	if s.ev.Signature, err = attesttest.Sign(s.host.AK2, s.ev.Quote); err != nil {
		s.t.Fatal(err)
	}
}

func TestVerifySealAccepts(t *testing.T) {
	t.Parallel()
	for _, tc := range []brokenSeal{
		{name: "as it should be"},
		{name: "later in the boot", host: func(s *sealing) { s.host.Boot.Clock += 90_000 }},
		{name: "clock that is not safe", host: func(s *sealing) { s.host.Boot.Clock, s.host.Boot.Safe = 1, false }},
		{name: "behind a TLS proxy, by policy", host: func(s *sealing) { s.sc.Channel, s.channel = attest.ChannelNone, nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if b, no := tc.verdict(t); no != nil || b.Reset != 7 {
				t.Errorf("got boot %v, %v", b, no)
			}
		})
	}
}

// TestSealQuoteEveryPrefix: nothing that is cut is accepted, and none panics.
func TestSealQuoteEveryPrefix(t *testing.T) {
	t.Parallel()
	s := newLab(t).sealing()
	whole, err := s.host.Seal(s.session, s.seal, s.channel)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole.Quote {
		s.ev = &attest.SealEvidence{Quote: whole.Quote[:n]}
		s.resign()
		if _, _, no := attest.VerifySeal(s.now, s.sc, s.channel, s.ev, s.policy); no == nil || no.Code != attest.ReasonParse {
			t.Errorf("seal quote cut at %d: got %v, want %s", n, no, attest.ReasonParse)
		}
	}
}
