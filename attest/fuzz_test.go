package attest_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// FuzzParseStatement: whatever is accepted encodes to the same bytes.
func FuzzParseStatement(f *testing.F) {
	s := newLab(f).host.Statement
	valid, err := s.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add(bytes.Replace(valid, []byte(`"version":2`), []byte(`"version":2,"Version":2`), 1))
	f.Add([]byte(`{"hcas":[{"ports":[{}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := attest.ParseStatement(b)
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("accepted %q, encodes to %q, %v", b, again, err)
		}
	})
}

// FuzzVerify feeds quote, signature and statement of any bytes, with a right proof as root on the host can make it. Only
// the unchanged evidence may pass.
func FuzzVerify(f *testing.F) {
	l := newLab(f)
	ch, s := l.begin()
	good, err := l.host.Answer(s, l.channel)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good.Statement, good.Quote, good.Signature, good.PCRValues[0], good.Certify, good.CertifySignature, good.EventLog)
	f.Add([]byte("{}"), []byte{0xff, 0x54, 0x43, 0x47, 0x80, 0x18}, []byte{0, 0x18, 0, 0x0b, 0, 0, 0, 0}, []byte{}, good.Quote, good.Signature, []byte{1})
	f.Fuzz(func(t *testing.T, statement, quote, signature, value, certify, certifySignature, log []byte) {
		ev := *good
		ev.Statement, ev.Quote, ev.Signature = statement, quote, signature
		ev.PCRValues = append([][]byte{value}, good.PCRValues[1:]...)
		ev.Certify, ev.CertifySignature, ev.EventLog = certify, certifySignature, log
		ev.Proof = attest.Proof(ch.Secret, s.ID, &ev)
		v := attest.Verify(attesttest.Epoch, ch, l.channel, &ev, l.host.Expected(), l.policy)
		same := bytes.Equal(statement, good.Statement) && bytes.Equal(quote, good.Quote) &&
			bytes.Equal(value, good.PCRValues[0]) && bytes.Equal(certify, good.Certify) && bytes.Equal(log, good.EventLog)
		if v.OK && !same {
			t.Errorf("accepted altered evidence")
		}
		if !v.OK && (v.Code == "" || v.Detail == "") {
			t.Errorf("refused without a reason: %+v", v)
		}
	})
}

// FuzzVerifySeal feeds seal quotes of any bytes. Only the unchanged one may pass.
func FuzzVerifySeal(f *testing.F) {
	s := newLab(f).sealing()
	good, err := s.host.Seal(s.session, s.seal, s.channel)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good.Quote, good.Signature)
	f.Add([]byte{0xff, 0x54, 0x43, 0x47, 0x80, 0x18}, []byte{0, 0x18, 0, 0x0b, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, quote, signature []byte) {
		_, _, no := attest.VerifySeal(s.now, s.sc, s.channel, &attest.SealEvidence{Quote: quote, Signature: signature}, s.policy)
		switch {
		case no == nil && !bytes.Equal(quote, good.Quote):
			t.Error("accepted an altered seal")
		case no != nil && (no.Code == "" || no.Detail == ""):
			t.Errorf("refused without a reason: %+v", no)
		}
	})
}

// FuzzLoadPolicy: whatever is accepted is a policy that may be used.
func FuzzLoadPolicy(f *testing.F) {
	l := newLab(f)
	read := func(string) ([]byte, error) { return l.vendor.PEM(), nil }
	f.Add([]byte("ek: {roots: [a.pem], deny: []}\npcrs: [0, 7]\nsession_life: 60s\n"))
	f.Add([]byte("# nothing\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := attest.LoadPolicy(data, read)
		if (p == nil) == (err == nil) || err == nil && p.Check() != nil {
			t.Errorf("got %+v, %v", p, err)
		}
	})
}

// FuzzBegin feeds certificates, public areas and measurements of any bytes.
func FuzzBegin(f *testing.F) {
	l := newLab(f)
	req := l.host.Request()
	f.Add(req.EK.Kind, req.EK.Certificates[0], req.AK1Public, req.AK2Public, []byte{}, req.StatementDigests[0], req.Start.Agent, req.Start.Image)
	f.Add("rsa-2048", []byte{0x30, 0x80}, []byte{0, 0x23}, []byte{0, 0x23}, []byte{0x30}, attest.HandOverDigest(), "\x00", "\xff")
	f.Fuzz(func(t *testing.T, kind string, cert, ak1, ak2, spki, digest []byte, agent, image string) {
		r := &attest.SessionRequest{
			Host: l.host.ID, Start: attest.Start{Agent: agent, Image: image}, StatementDigests: [][]byte{digest}, AK1Public: ak1, AK2Public: ak2,
			EK: attest.EKClaim{Kind: kind, Certificates: [][]byte{cert}, Public: spki},
		}
		_, _, err := attest.Begin(rand.Reader, attesttest.Epoch, r, l.host.Expected(), l.policy)
		var refusal *attest.Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("got %v, want a refusal", err)
		}
	})
}
