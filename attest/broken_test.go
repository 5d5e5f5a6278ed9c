package attest_test

import (
	"bytes"
	"crypto/sha256"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// broken says how evidence differs from valid evidence.
type broken struct {
	name string
	want attest.Reason
	// host changes the host before it measures.
	host func(*attempt)
	// quote changes what is signed: what only a key outside a TPM could do.
	quote func(*attempt, *tpm2.TPMSAttest)
	// certify does so for the second key's certification.
	certify func(*attempt, *tpm2.TPMSAttest)
	// sent changes the evidence; the proof is then made anew, because root on
	// the host knows the activated secret.
	sent func(*attempt)
	// wire changes what arrives, after the proof.
	wire func(*attempt)
}

func (b *broken) verdict(t *testing.T) attest.Verdict {
	t.Helper()
	l := newLab(t)
	a := &attempt{lab: l, exp: l.host.Expected(), now: attesttest.Epoch}
	if b.host != nil {
		b.host(a)
	}
	a.ch, a.session = a.begin()
	secret, err := l.host.Activate(a.session)
	if err != nil {
		t.Fatal(err)
	}
	alter := func(q, c *tpm2.TPMSAttest) {
		if b.quote != nil {
			b.quote(a, q)
		}
		if b.certify != nil {
			b.certify(a, c)
		}
	}
	if a.ev, err = l.host.Evidence(a.session, l.channel, secret, alter); err != nil {
		t.Fatal(err)
	}
	if b.sent != nil {
		b.sent(a)
		a.ev.Proof = attest.Proof(secret, a.session.ID, a.ev)
	}
	if b.wire != nil {
		b.wire(a)
	}
	return attest.Verify(a.now, a.ch, a.channel, a.ev, a.exp, a.policy)
}

var demanded = []int{0, 1, 2, 3, 4, 5, 6, 7, 15}

// certifies replaces which key a certification is of.
func certifies(q *tpm2.TPMSAttest, name, qualified []byte) {
	q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestCertify, &tpm2.TPMSCertifyInfo{
		Name: tpm2.TPM2BName{Buffer: name}, QualifiedName: tpm2.TPM2BName{Buffer: qualified},
	})
}

func brokenEvidence() []broken {
	order, _ := new(big.Int).SetString("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16)
	sha256PCRs := attesttest.Selection(tpm2.TPMAlgSHA256, demanded...)
	return []broken{
		{name: "no policy", want: attest.ReasonPolicy, wire: func(a *attempt) { a.policy = nil }},
		{name: "no evidence", want: attest.ReasonSession, wire: func(a *attempt) { a.ev = nil }},
		{name: "no challenge", want: attest.ReasonSession, wire: func(a *attempt) { a.ch = nil }},
		{name: "session expired", want: attest.ReasonSession, wire: func(a *attempt) { a.now = a.ch.Expires.Add(time.Second) }},
		{name: "session of another host", want: attest.ReasonSession, wire: func(a *attempt) { a.ch.Host = "compute-02" }},
		{name: "policy changed during the session", want: attest.ReasonSession, wire: func(a *attempt) { a.policy.PCRs = []int{0, 1, 2, 3, 4, 5, 6, 7, 9} }},
		{name: "EK replaced in inventory during the session", want: attest.ReasonEKPin, wire: func(a *attempt) { a.exp.EKDigest = strings.Repeat("0", 64) }},
		{name: "inventory emptied during the session", want: attest.ReasonInventory, wire: func(a *attempt) { a.exp.HCAs = nil }},
		{name: "no channel binding", want: attest.ReasonChannel, wire: func(a *attempt) { a.channel = nil }},

		{name: "statement over its size", want: attest.ReasonSize, wire: func(a *attempt) { a.ev.Statement = make([]byte, attest.MaxStatement+1) }},
		{name: "quote over its size", want: attest.ReasonSize, wire: func(a *attempt) { a.ev.Quote = make([]byte, attest.MaxTPMStructure+1) }},
		{name: "certification over its size", want: attest.ReasonSize, wire: func(a *attempt) { a.ev.Certify = make([]byte, attest.MaxTPMStructure+1) }},
		{name: "event log over its size", want: attest.ReasonSize, wire: func(a *attempt) { a.ev.EventLog = make([]byte, attest.MaxEventLog+1) }},
		{name: "25 PCR values", want: attest.ReasonSize, sent: func(a *attempt) { a.ev.PCRValues = make([][]byte, 25) }},

		{name: "proof missing", want: attest.ReasonProof, wire: func(a *attempt) { a.ev.Proof = nil }},
		{name: "proof with another secret", want: attest.ReasonProof, wire: func(a *attempt) {
			a.ev.Proof = attest.Proof(make([]byte, 32), a.session.ID, a.ev)
		}},
		{name: "body altered under the proof", want: attest.ReasonProof, wire: func(a *attempt) { a.ev.Statement[10] ^= 1 }},
		{name: "value moved between fields", want: attest.ReasonProof, wire: func(a *attempt) {
			a.ev.Quote, a.ev.Certify = a.ev.Certify, a.ev.Quote
		}},
		{name: "challenge without secret", want: attest.ReasonProof, wire: func(a *attempt) {
			a.ch.Secret = nil
			a.ev.Proof = attest.Proof(nil, a.session.ID, a.ev)
		}},

		{name: "software AK with the name of a TPM's", want: attest.ReasonSignature, sent: func(a *attempt) {
			a.host.AK1 = a.newHost("compute-02", 2).AK1
			a.resign()
		}},
		{name: "signature empty", want: attest.ReasonParse, sent: func(a *attempt) { a.ev.Signature = nil }},
		{name: "signature with a trailing byte", want: attest.ReasonParse, sent: func(a *attempt) { a.ev.Signature = append(a.ev.Signature, 0) }},
		{name: "signature of unknown scheme", want: attest.ReasonParse, sent: func(a *attempt) { a.ev.Signature[1] = 0xee }},
		{name: "RSASSA signature", want: attest.ReasonAlgorithm, sent: func(a *attempt) {
			a.setSignature(tpm2.TPMAlgRSASSA, tpm2.NewTPMUSignature(tpm2.TPMAlgRSASSA,
				&tpm2.TPMSSignatureRSA{Hash: tpm2.TPMAlgSHA256, Sig: tpm2.TPM2BPublicKeyRSA{Buffer: make([]byte, 256)}}))
		}},
		{name: "HMAC instead of a signature", want: attest.ReasonAlgorithm, sent: func(a *attempt) {
			a.setSignature(tpm2.TPMAlgHMAC, tpm2.NewTPMUSignature(tpm2.TPMAlgHMAC,
				&tpm2.TPMTHA{HashAlg: tpm2.TPMAlgSHA256, Digest: make([]byte, 32)}))
		}},
		{name: "signature with SHA-1", want: attest.ReasonAlgorithm, sent: func(a *attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.Hash = tpm2.TPMAlgSHA1 })
		}},
		{name: "signature with SHA-384", want: attest.ReasonAlgorithm, sent: func(a *attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.Hash = tpm2.TPMAlgSHA384 })
		}},
		{name: "signature r zero", want: attest.ReasonSignature, sent: func(a *attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.SignatureR.Buffer = make([]byte, 32) })
		}},
		{name: "signature s zero", want: attest.ReasonSignature, sent: func(a *attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.SignatureS.Buffer = nil })
		}},
		{name: "signature r the group order", want: attest.ReasonSignature, sent: func(a *attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.SignatureR.Buffer = order.Bytes() })
		}},
		{name: "signature number too long", want: attest.ReasonSignature, sent: func(a *attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.SignatureR.Buffer = make([]byte, 33) })
		}},

		{name: "quote with a trailing byte", want: attest.ReasonParse, sent: func(a *attempt) {
			a.ev.Quote = append(a.ev.Quote, 0)
			a.resign()
		}},
		{name: "quote cut", want: attest.ReasonParse, sent: func(a *attempt) {
			a.ev.Quote = a.ev.Quote[:len(a.ev.Quote)-1]
			a.resign()
		}},
		{name: "magic wrong", want: attest.ReasonMagic, quote: func(_ *attempt, q *tpm2.TPMSAttest) { q.Magic = 0xff544348 }},
		{name: "GetTime attestation", want: attest.ReasonType, quote: func(_ *attempt, q *tpm2.TPMSAttest) {
			q.Type = tpm2.TPMSTAttestTime
			q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestTime, &tpm2.TPMSTimeAttestInfo{})
		}},
		{name: "Certify attestation", want: attest.ReasonType, quote: func(_ *attempt, q *tpm2.TPMSAttest) {
			q.Type = tpm2.TPMSTAttestCertify
			q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestCertify, &tpm2.TPMSCertifyInfo{})
		}},
		{name: "NV attestation", want: attest.ReasonType, quote: func(_ *attempt, q *tpm2.TPMSAttest) {
			q.Type = tpm2.TPMSTAttestNV
			q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestNV, &tpm2.TPMSNVCertifyInfo{})
		}},
		{name: "nonce of another session", want: attest.ReasonNonce, quote: func(a *attempt, q *tpm2.TPMSAttest) {
			other, _ := a.begin()
			q.ExtraData.Buffer = attest.QualifyingData(other.ID, other.Nonce, a.host.Digests[0], a.channel, a.host.AK1Name())
		}},
		{name: "bare nonce", want: attest.ReasonNonce, quote: func(a *attempt, q *tpm2.TPMSAttest) { q.ExtraData.Buffer = a.session.Nonce }},
		{name: "another connection", want: attest.ReasonNonce, wire: func(a *attempt) {
			a.channel = bytes.Repeat([]byte{9}, attest.ExporterSize)
		}},
		{name: "statement changed after the quote", want: attest.ReasonNonce, sent: func(a *attempt) {
			a.ev.Statement = bytes.Replace(a.ev.Statement, []byte("28.43"), []byte("28.44"), 1)
		}},
		{name: "AK in the owner hierarchy", want: attest.ReasonSigner, quote: func(a *attempt, q *tpm2.TPMSAttest) {
			parent := sha256.Sum256(append([]byte{0x40, 0, 0, 1}, a.host.AK1Name()...))
			q.QualifiedSigner.Buffer = append([]byte{0, 0x0b}, parent[:]...)
		}},
		{name: "AK under another TPM's EK", want: attest.ReasonSigner, quote: func(a *attempt, q *tpm2.TPMSAttest) {
			a.ch.EKName = a.newHost("compute-02", 2).EKName()
		}},

		{name: "SHA-1 bank with an empty mask", want: attest.ReasonSelection, quote: selected(attesttest.Selection(tpm2.TPMAlgSHA1))},
		{name: "SHA-384 bank", want: attest.ReasonSelection, quote: selected(attesttest.Selection(tpm2.TPMAlgSHA384, demanded...))},
		{name: "no selection", want: attest.ReasonSelection, quote: selected(tpm2.TPMLPCRSelection{})},
		{name: "empty mask", want: attest.ReasonSelection, quote: selected(attesttest.Selection(tpm2.TPMAlgSHA256))},
		{name: "same bank twice", want: attest.ReasonSelection, quote: selected(selections(sha256PCRs, sha256PCRs))},
		{name: "two banks", want: attest.ReasonSelection, quote: selected(selections(sha256PCRs, attesttest.Selection(tpm2.TPMAlgSHA384, 0)))},
		{name: "fewer registers", want: attest.ReasonSelection, quote: selected(attesttest.Selection(tpm2.TPMAlgSHA256, demanded[1:]...))},
		{name: "more registers", want: attest.ReasonSelection, quote: selected(attesttest.Selection(tpm2.TPMAlgSHA256, append([]int{16}, demanded...)...))},
		{name: "registers relabelled", want: attest.ReasonSelection, quote: selected(attesttest.Selection(tpm2.TPMAlgSHA256, 8, 9, 2, 3, 4, 5, 6, 7, 15))},

		{name: "PCR value missing", want: attest.ReasonPCRValues, sent: func(a *attempt) { a.ev.PCRValues = a.ev.PCRValues[1:] }},
		{name: "PCR value too many", want: attest.ReasonPCRValues, sent: func(a *attempt) { a.ev.PCRValues = append(a.ev.PCRValues, make([]byte, 32)) }},
		{name: "PCR value of 31 bytes", want: attest.ReasonPCRValues, sent: func(a *attempt) { a.ev.PCRValues[0] = a.ev.PCRValues[0][:31] }},
		{name: "PCR values split elsewhere", want: attest.ReasonPCRValues, sent: func(a *attempt) {
			joined := append(bytes.Clone(a.ev.PCRValues[0]), a.ev.PCRValues[1]...)
			a.ev.PCRValues[0], a.ev.PCRValues[1] = joined[:16], joined[16:]
		}},
		{name: "PCR values in wrong order", want: attest.ReasonPCRDigest, sent: func(a *attempt) {
			v := a.ev.PCRValues
			v[0], v[8] = v[8], v[0]
		}},
		{name: "PCR value changed", want: attest.ReasonPCRDigest, sent: func(a *attempt) { a.ev.PCRValues[3] = make([]byte, 32) }},

		{name: "statement that was not announced", want: attest.ReasonDigests, quote: func(a *attempt, q *tpm2.TPMSAttest) {
			a.swapped = bytes.Replace(a.sentStatement(), []byte("28.43"), []byte("28.44"), 2)
			q.ExtraData.Buffer = attest.QualifyingData(a.session.ID, a.session.Nonce, attest.StatementDigest(a.swapped), a.channel, a.host.AK1Name())
		}, certify: func(a *attempt, q *tpm2.TPMSAttest) {
			q.ExtraData.Buffer = attest.QualifyingData(a.session.ID, a.session.Nonce, attest.StatementDigest(a.swapped), a.channel, a.host.AK1Name())
		}, sent: func(a *attempt) { a.ev.Statement = a.swapped }},
		{name: "unknown record in the agent PCR", want: attest.ReasonAgentPCR, host: func(a *attempt) {
			a.host.Extend(a.host.AgentPCR, make([]byte, 32))
		}},
		{name: "statement hidden from the list", want: attest.ReasonAgentPCR, host: func(a *attempt) {
			a.host.MeasureBytes([]byte("earlier"))
			a.host.Digests = nil
		}},
		{name: "statement measured into PCR 16", want: attest.ReasonAgentPCR, host: func(a *attempt) {
			b, err := a.host.Statement.Encode()
			if err != nil {
				a.t.Fatal(err)
			}
			a.asIs = true
			a.host.MeasureInto(16, b)
		}},
		{name: "statement measured into PCR 23", want: attest.ReasonAgentPCR, host: func(a *attempt) {
			b, err := a.host.Statement.Encode()
			if err != nil {
				a.t.Fatal(err)
			}
			a.asIs = true
			a.host.MeasureInto(23, b)
		}},
		{name: "register capped, first key as if it could sign", want: attest.ReasonAgentPCR, host: func(a *attempt) {
			a.host.Request()
			a.host.Cap()
		}},
		{name: "register capped, quote by the second key", want: attest.ReasonAgentPCR, host: func(a *attempt) {
			a.host.Request()
			a.host.Cap()
		}, sent: func(a *attempt) {
			var err error
			if a.ev.Signature, err = attesttest.Sign(a.host.AK2, a.ev.Quote); err != nil {
				a.t.Fatal(err)
			}
		}},
		{name: "start record of another agent", want: attest.ReasonStart, host: func(a *attempt) {
			a.measureAltered(`"agent":"test"`, `"agent":"other"`)
		}},
		{name: "start record of another image", want: attest.ReasonStart, host: func(a *attempt) {
			a.measureAltered(`"image":"provisioning-7"`, `"image":"provisioning-8"`)
		}},

		{name: "second key certified by another key", want: attest.ReasonSignature, sent: func(a *attempt) {
			var err error
			if a.ev.CertifySignature, err = attesttest.Sign(a.host.AK2, a.ev.Certify); err != nil {
				a.t.Fatal(err)
			}
		}},
		{name: "second key not certified", want: attest.ReasonParse, sent: func(a *attempt) { a.ev.Certify, a.ev.CertifySignature = nil, nil }},
		{name: "quote sent as certification", want: attest.ReasonType, sent: func(a *attempt) {
			a.ev.Certify, a.ev.CertifySignature = a.ev.Quote, a.ev.Signature
		}},
		{name: "certification sent as quote", want: attest.ReasonType, sent: func(a *attempt) {
			a.ev.Quote, a.ev.Signature = a.ev.Certify, a.ev.CertifySignature
		}},
		{name: "certification of another session", want: attest.ReasonNonce, certify: func(a *attempt, q *tpm2.TPMSAttest) { q.ExtraData.Buffer = a.session.Nonce }},
		{name: "certification of a key in software", want: attest.ReasonCertify, certify: func(a *attempt, q *tpm2.TPMSAttest) {
			other := a.newHost("compute-02", 2)
			certifies(q, other.AK2Name(), a.host.QualifiedName(other.AK2Name()))
		}},
		{name: "second key in another hierarchy", want: attest.ReasonCertify, certify: func(a *attempt, q *tpm2.TPMSAttest) {
			certifies(q, a.host.AK2Name(), a.newHost("compute-02", 2).QualifiedName(a.host.AK2Name()))
		}},
		{name: "second key certified in another boot", want: attest.ReasonCertify, certify: func(_ *attempt, q *tpm2.TPMSAttest) { q.ClockInfo.ResetCount++ }},
		{name: "second key certified by other TPM firmware", want: attest.ReasonCertify, certify: func(_ *attempt, q *tpm2.TPMSAttest) { q.FirmwareVersion++ }},

		{name: "TPM firmware not allowed", want: attest.ReasonTPM, host: func(a *attempt) {
			a.policy.TPMFirmware = []attest.TPMFirmware{{Maker: "id:54455354", Model: "attesttest", Allow: []string{"0001000200030005"}}}
		}},
		{name: "TPM model without a list", want: attest.ReasonTPM, host: func(a *attempt) {
			a.policy.TPMFirmware = []attest.TPMFirmware{{Maker: "id:54455354", Model: "other", Allow: []string{"0001000200030004"}}}
		}},
		{name: "event log not of the statement", want: attest.ReasonEventLog, host: func(a *attempt) { a.host.EventLog = []byte("log") }},
		{name: "event log left out", want: attest.ReasonEventLog, host: func(a *attempt) {
			a.host.Statement.EventLog = strings.Repeat("0", 64)
		}},

		{name: "statement is not JSON", want: attest.ReasonStatement, host: func(a *attempt) { a.measure([]byte("GUIDs: all of them")) }},
		{name: "statement with trailing JSON", want: attest.ReasonStatement, host: func(a *attempt) { a.measureAltered(`null}]}`, `null}]}{}`) }},
		{name: "statement of another host", want: attest.ReasonStatementHost, host: func(a *attempt) { a.measureAltered(`"compute-01"`, `"compute-02"`) }},
		{name: "statement too old", want: attest.ReasonStatementAge, host: func(a *attempt) {
			a.host.Statement.CollectedAt = attesttest.Epoch.Add(-16 * time.Minute)
		}},
		{name: "statement from the future", want: attest.ReasonStatementAge, host: func(a *attempt) {
			a.host.Statement.CollectedAt = attesttest.Epoch.Add(2 * time.Minute)
		}},
		{name: "another host's GUIDs", want: attest.ReasonGUIDMismatch, host: func(a *attempt) {
			a.host.Statement.HCAs = a.newHost("compute-02", 2).Statement.HCAs
		}},
		{name: "one port GUID of another host", want: attest.ReasonGUIDMismatch, host: func(a *attempt) { a.host.Statement.HCAs[0].Ports[1].GUID++ }},
		{name: "another system image GUID", want: attest.ReasonGUIDMismatch, host: func(a *attempt) { a.host.Statement.HCAs[0].SystemImageGUID++ }},
		{name: "an HCA less than inventory", want: attest.ReasonGUIDMismatch, wire: func(a *attempt) {
			a.exp.HCAs = append(a.exp.HCAs, a.newHost("compute-02", 2).Expected().HCAs...)
		}},
		{name: "an HCA more than inventory", want: attest.ReasonGUIDMismatch, host: func(a *attempt) {
			more := a.newHost("compute-02", 2).Statement.HCAs[0]
			more.Name = "mlx5_1"
			a.host.Statement.HCAs = append(a.host.Statement.HCAs, more)
		}},
		{name: "a port less than inventory", want: attest.ReasonGUIDMismatch, host: func(a *attempt) {
			a.host.Statement.HCAs[0].Ports = a.host.Statement.HCAs[0].Ports[:1]
		}},
		{name: "a port switched to Ethernet", want: attest.ReasonGUIDMismatch, host: func(a *attempt) {
			a.host.Statement.HCAs[0].Ports[1] = attest.Port{Num: 2, LinkLayer: attest.LinkEthernet}
		}},
		{name: "firmware below the minimum", want: attest.ReasonFirmware, host: func(a *attempt) {
			a.policy.FirmwareFloors = []attest.FirmwareFloor{{PSID: "MT_0000000838", Min: "28.43.2000"}}
		}},
		{name: "board without a minimum", want: attest.ReasonFirmware, host: func(a *attempt) {
			a.policy.FirmwareFloors = []attest.FirmwareFloor{{PSID: "MT_0000000001", Min: "1.0"}}
		}},
		{name: "firmware version that is none", want: attest.ReasonFirmware, host: func(a *attempt) {
			a.policy.FirmwareFloors = []attest.FirmwareFloor{{PSID: "MT_0000000838", Min: "1.0"}}
			a.host.Statement.HCAs[0].Firmware.Running = "latest"
		}},
	}
}
