package attesttest

import (
	"bytes"
	"crypto/sha256"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
)

// Attacks are evidence that is wrong in one way each.
func Attacks() []Attack {
	return slices.Concat(attacksOnSessions(), attacksOnRegisters(), attacksOnStatements(), malformedStatements())
}

func attacksOnSessions() []Attack {
	order, _ := new(big.Int).SetString("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16)
	return []Attack{
		{Name: "no policy", Want: attest.ReasonPolicy, Service: func(a *Attempt) { a.Policy = nil }},
		{Name: "no evidence", Want: attest.ReasonSession, Service: func(a *Attempt) { a.Evidence = nil }},
		{Name: "no challenge", Want: attest.ReasonSession, Service: func(a *Attempt) { a.Challenge = nil }},
		{Name: "session expired", Want: attest.ReasonSession, Service: func(a *Attempt) { a.Now = a.Challenge.Expires.Add(time.Second) }},
		{Name: "session of another host", Want: attest.ReasonSession, Service: func(a *Attempt) { a.Challenge.Host = "compute-02" }},
		{Name: "policy changed during the session", Want: attest.ReasonSession, Service: func(a *Attempt) { a.Policy.PCRs = []int{0, 1, 2, 3, 4, 5, 6, 7, 9} }},
		{Name: "EK replaced in inventory during the session", Want: attest.ReasonEKPin, Service: func(a *Attempt) { a.Expected.EKDigest = strings.Repeat("0", 64) }},
		{Name: "inventory emptied during the session", Want: attest.ReasonInventory, Service: func(a *Attempt) { a.Expected.HCAs = nil }},
		{Name: "no channel binding", Want: attest.ReasonChannel, Service: func(a *Attempt) { a.Channel = nil }},

		{Name: "statement over its size", Want: attest.ReasonSize, Wire: func(a *Attempt) { a.Evidence.Statement = make([]byte, attest.MaxStatement+1) }},
		{Name: "quote over its size", Want: attest.ReasonSize, Wire: func(a *Attempt) { a.Evidence.Quote = make([]byte, attest.MaxTPMStructure+1) }},
		{Name: "certification over its size", Want: attest.ReasonSize, Wire: func(a *Attempt) { a.Evidence.Certify = make([]byte, attest.MaxTPMStructure+1) }},
		{Name: "event log over its size", Want: attest.ReasonSize, Wire: func(a *Attempt) { a.Evidence.EventLog = make([]byte, attest.MaxEventLog+1) }},
		{Name: "25 PCR values", Want: attest.ReasonSize, Sent: func(a *Attempt) { a.Evidence.PCRValues = slices.Repeat([][]byte{{}}, 25) }},

		{Name: "proof missing", Want: attest.ReasonProof, Wire: func(a *Attempt) { a.Evidence.Proof = []byte{} }},
		{Name: "proof with another secret", Want: attest.ReasonProof, Wire: func(a *Attempt) {
			a.Evidence.Proof = attest.Proof(make([]byte, 32), a.Session.ID, a.Evidence)
		}},
		{Name: "body altered under the proof", Want: attest.ReasonProof, Wire: func(a *Attempt) { a.Evidence.Statement[10] ^= 1 }},
		{Name: "value moved between fields", Want: attest.ReasonProof, Wire: func(a *Attempt) {
			a.Evidence.Quote, a.Evidence.Certify = a.Evidence.Certify, a.Evidence.Quote
		}},
		{Name: "challenge without secret", Want: attest.ReasonProof, Service: func(a *Attempt) {
			a.Challenge.Secret = nil
			a.Evidence.Proof = attest.Proof(nil, a.Session.ID, a.Evidence)
		}},

		{Name: "software AK with the name of a TPM's", Want: attest.ReasonSignature, Sent: func(a *Attempt) {
			a.Host.AK1 = a.NewHost("compute-02", 2).AK1
			a.resign()
		}},
		{Name: "signature empty", Want: attest.ReasonParse, Sent: func(a *Attempt) { a.Evidence.Signature = []byte{} }},
		{Name: "signature with a trailing byte", Want: attest.ReasonParse, Sent: func(a *Attempt) { a.Evidence.Signature = append(a.Evidence.Signature, 0) }},
		{Name: "signature of unknown scheme", Want: attest.ReasonParse, Sent: func(a *Attempt) { a.Evidence.Signature[1] = 0xee }},
		{Name: "RSASSA signature", Want: attest.ReasonAlgorithm, Sent: func(a *Attempt) {
			a.setSignature(tpm2.TPMAlgRSASSA, tpm2.NewTPMUSignature(tpm2.TPMAlgRSASSA,
				&tpm2.TPMSSignatureRSA{Hash: tpm2.TPMAlgSHA256, Sig: tpm2.TPM2BPublicKeyRSA{Buffer: make([]byte, 256)}}))
		}},
		{Name: "HMAC instead of a signature", Want: attest.ReasonAlgorithm, Sent: func(a *Attempt) {
			a.setSignature(tpm2.TPMAlgHMAC, tpm2.NewTPMUSignature(tpm2.TPMAlgHMAC,
				&tpm2.TPMTHA{HashAlg: tpm2.TPMAlgSHA256, Digest: make([]byte, 32)}))
		}},
		{Name: "signature with SHA-1", Want: attest.ReasonAlgorithm, Sent: func(a *Attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.Hash = tpm2.TPMAlgSHA1 })
		}},
		{Name: "signature with SHA-384", Want: attest.ReasonAlgorithm, Sent: func(a *Attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.Hash = tpm2.TPMAlgSHA384 })
		}},
		{Name: "signature r zero", Want: attest.ReasonSignature, Sent: func(a *Attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.SignatureR.Buffer = make([]byte, 32) })
		}},
		{Name: "signature s zero", Want: attest.ReasonSignature, Sent: func(a *Attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.SignatureS.Buffer = nil })
		}},
		{Name: "signature r the group order", Want: attest.ReasonSignature, Sent: func(a *Attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.SignatureR.Buffer = order.Bytes() })
		}},
		{Name: "signature number too long", Want: attest.ReasonSignature, Sent: func(a *Attempt) {
			a.alterSignature(func(s *tpm2.TPMSSignatureECC) { s.SignatureR.Buffer = make([]byte, 33) })
		}},

		{Name: "quote with a trailing byte", Want: attest.ReasonParse, Sent: func(a *Attempt) {
			a.Evidence.Quote = append(a.Evidence.Quote, 0)
			a.resign()
		}},
		{Name: "quote cut", Want: attest.ReasonParse, Sent: func(a *Attempt) {
			a.Evidence.Quote = a.Evidence.Quote[:len(a.Evidence.Quote)-1]
			a.resign()
		}},
		{Name: "magic wrong", Want: attest.ReasonMagic, Quote: func(_ *Attempt, q *tpm2.TPMSAttest) { q.Magic = 0xff544348 }},
		{Name: "GetTime attestation", Want: attest.ReasonType, Quote: func(_ *Attempt, q *tpm2.TPMSAttest) {
			q.Type = tpm2.TPMSTAttestTime
			q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestTime, &tpm2.TPMSTimeAttestInfo{})
		}},
		{Name: "Certify attestation", Want: attest.ReasonType, Quote: func(_ *Attempt, q *tpm2.TPMSAttest) {
			q.Type = tpm2.TPMSTAttestCertify
			q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestCertify, &tpm2.TPMSCertifyInfo{})
		}},
		{Name: "NV attestation", Want: attest.ReasonType, Quote: func(_ *Attempt, q *tpm2.TPMSAttest) {
			q.Type = tpm2.TPMSTAttestNV
			q.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestNV, &tpm2.TPMSNVCertifyInfo{})
		}},
		{Name: "nonce of another session", Want: attest.ReasonNonce, Quote: func(a *Attempt, q *tpm2.TPMSAttest) {
			q.ExtraData.Buffer = attest.QualifyingData(strings.Repeat("0", 32), make([]byte, 32), a.Host.Digests[0], a.Channel, a.Host.AK1Name())
		}},
		{Name: "bare nonce", Want: attest.ReasonNonce, Quote: func(a *Attempt, q *tpm2.TPMSAttest) { q.ExtraData.Buffer = a.Session.Nonce }},
		{Name: "another connection", Want: attest.ReasonNonce, Quote: func(a *Attempt, q *tpm2.TPMSAttest) {
			q.ExtraData.Buffer = attest.QualifyingData(a.Session.ID, a.Session.Nonce, a.Host.Digests[0], bytes.Repeat([]byte{9}, attest.ExporterSize), a.Host.AK1Name())
		}},
		{Name: "statement changed after the quote", Want: attest.ReasonNonce, Sent: func(a *Attempt) {
			a.Evidence.Statement = bytes.Replace(a.Evidence.Statement, []byte("28.43"), []byte("28.44"), 1)
		}},
		{Name: "AK in the owner hierarchy", Want: attest.ReasonSigner, Quote: func(a *Attempt, q *tpm2.TPMSAttest) {
			parent := sha256.Sum256(append([]byte{0x40, 0, 0, 1}, a.Host.AK1Name()...))
			q.QualifiedSigner.Buffer = append([]byte{0, 0x0b}, parent[:]...)
		}},
		{Name: "AK under another TPM's EK", Want: attest.ReasonSigner, Quote: func(a *Attempt, q *tpm2.TPMSAttest) {
			q.QualifiedSigner.Buffer = a.NewHost("compute-02", 2).QualifiedName(a.Host.AK1Name())
		}},
	}
}

func attacksOnRegisters() []Attack {
	sha256PCRs := Selection(tpm2.TPMAlgSHA256, Demanded()...)
	return []Attack{
		{Name: "SHA-1 bank with an empty mask", Want: attest.ReasonSelection, Quote: selected(Selection(tpm2.TPMAlgSHA1))},
		{Name: "SHA-384 bank", Want: attest.ReasonSelection, Quote: selected(Selection(tpm2.TPMAlgSHA384, Demanded()...))},
		{Name: "no selection", Want: attest.ReasonSelection, Quote: selected(tpm2.TPMLPCRSelection{})},
		{Name: "empty mask", Want: attest.ReasonSelection, Quote: selected(Selection(tpm2.TPMAlgSHA256))},
		{Name: "same bank twice", Want: attest.ReasonSelection, Quote: selected(selections(sha256PCRs, sha256PCRs))},
		{Name: "two banks", Want: attest.ReasonSelection, Quote: selected(selections(sha256PCRs, Selection(tpm2.TPMAlgSHA384, 0)))},
		{Name: "fewer registers", Want: attest.ReasonSelection, Quote: selected(Selection(tpm2.TPMAlgSHA256, Demanded()[1:]...))},
		{Name: "more registers", Want: attest.ReasonSelection, Quote: selected(Selection(tpm2.TPMAlgSHA256, append([]int{16}, Demanded()...)...))},
		{Name: "registers relabelled", Want: attest.ReasonSelection, Quote: selected(Selection(tpm2.TPMAlgSHA256, 8, 9, 2, 3, 4, 5, 6, 7, 15))},

		{Name: "PCR value missing", Want: attest.ReasonPCRValues, Sent: func(a *Attempt) { a.Evidence.PCRValues = a.Evidence.PCRValues[1:] }},
		{Name: "PCR value too many", Want: attest.ReasonPCRValues, Sent: func(a *Attempt) { a.Evidence.PCRValues = append(a.Evidence.PCRValues, make([]byte, 32)) }},
		{Name: "PCR value of 31 bytes", Want: attest.ReasonPCRValues, Sent: func(a *Attempt) { a.Evidence.PCRValues[0] = a.Evidence.PCRValues[0][:31] }},
		{Name: "PCR values split elsewhere", Want: attest.ReasonPCRValues, Sent: func(a *Attempt) {
			joined := append(bytes.Clone(a.Evidence.PCRValues[0]), a.Evidence.PCRValues[1]...)
			a.Evidence.PCRValues[0], a.Evidence.PCRValues[1] = joined[:16], joined[16:]
		}},
		{Name: "PCR values in wrong order", Want: attest.ReasonPCRDigest, Sent: func(a *Attempt) {
			v := a.Evidence.PCRValues
			v[0], v[8] = v[8], v[0]
		}},
		{Name: "PCR value changed", Want: attest.ReasonPCRDigest, Sent: func(a *Attempt) { a.Evidence.PCRValues[3] = make([]byte, 32) }},

		{Name: "statement that was not announced", Want: attest.ReasonDigests, Quote: func(a *Attempt, q *tpm2.TPMSAttest) {
			a.swapped = bytes.Replace(a.statement(), []byte("28.43"), []byte("28.44"), 2)
			q.ExtraData.Buffer = attest.QualifyingData(a.Session.ID, a.Session.Nonce, attest.StatementDigest(a.swapped), a.Channel, a.Host.AK1Name())
		}, Certify: func(a *Attempt, q *tpm2.TPMSAttest) {
			q.ExtraData.Buffer = attest.QualifyingData(a.Session.ID, a.Session.Nonce, attest.StatementDigest(a.swapped), a.Channel, a.Host.AK1Name())
		}, Sent: func(a *Attempt) { a.Evidence.Statement = a.swapped }},
		{Name: "unknown record in the agent PCR", Want: attest.ReasonAgentPCR, Host: func(a *Attempt) {
			a.Host.Extend(a.Host.AgentPCR, make([]byte, 32))
		}},
		{Name: "statement hidden from the list", Want: attest.ReasonAgentPCR, Host: func(a *Attempt) {
			a.Host.MeasureBytes([]byte("earlier"))
			a.Host.Digests = nil
		}},
		{Name: "statement measured into PCR 16", Want: attest.ReasonAgentPCR, Host: func(a *Attempt) {
			b, err := a.Host.Statement.Encode()
			if err != nil {
				a.fail(err)
			}
			a.asIs = true
			a.Host.MeasureInto(16, b)
		}},
		{Name: "statement measured into PCR 23", Want: attest.ReasonAgentPCR, Host: func(a *Attempt) {
			b, err := a.Host.Statement.Encode()
			if err != nil {
				a.fail(err)
			}
			a.asIs = true
			a.Host.MeasureInto(23, b)
		}},
		{Name: "register capped, first key as if it could sign", Want: attest.ReasonAgentPCR, Host: func(a *Attempt) {
			a.Host.Request()
			a.Host.Cap()
		}},
		{Name: "register capped, quote by the second key", Want: attest.ReasonAgentPCR, Host: func(a *Attempt) {
			a.Host.Request()
			a.Host.Cap()
		}, Sent: func(a *Attempt) {
			var err error
			if a.Evidence.Signature, err = Sign(a.Host.AK2, a.Evidence.Quote); err != nil {
				a.fail(err)
			}
		}},
		{Name: "start record of another agent", Want: attest.ReasonStart, Host: func(a *Attempt) {
			a.measureAltered(`"agent":"test"`, `"agent":"other"`)
		}},
		{Name: "start record of another image", Want: attest.ReasonStart, Host: func(a *Attempt) {
			a.measureAltered(`"image":"provisioning-7"`, `"image":"provisioning-8"`)
		}},

		{Name: "second key certified by another key", Want: attest.ReasonSignature, Sent: func(a *Attempt) {
			var err error
			if a.Evidence.CertifySignature, err = Sign(a.Host.AK2, a.Evidence.Certify); err != nil {
				a.fail(err)
			}
		}},
		{Name: "second key not certified", Want: attest.ReasonParse, Sent: func(a *Attempt) { a.Evidence.Certify, a.Evidence.CertifySignature = []byte{}, []byte{} }},
		{Name: "quote sent as certification", Want: attest.ReasonType, Sent: func(a *Attempt) {
			a.Evidence.Certify, a.Evidence.CertifySignature = a.Evidence.Quote, a.Evidence.Signature
		}},
		{Name: "certification sent as quote", Want: attest.ReasonType, Sent: func(a *Attempt) {
			a.Evidence.Quote, a.Evidence.Signature = a.Evidence.Certify, a.Evidence.CertifySignature
		}},
		{Name: "certification of another session", Want: attest.ReasonNonce, Certify: func(a *Attempt, q *tpm2.TPMSAttest) { q.ExtraData.Buffer = a.Session.Nonce }},
		{Name: "certification of a key in software", Want: attest.ReasonCertify, Certify: func(a *Attempt, q *tpm2.TPMSAttest) {
			other := a.NewHost("compute-02", 2)
			certifies(q, other.AK2Name(), a.Host.QualifiedName(other.AK2Name()))
		}},
		{Name: "second key in another hierarchy", Want: attest.ReasonCertify, Certify: func(a *Attempt, q *tpm2.TPMSAttest) {
			certifies(q, a.Host.AK2Name(), a.NewHost("compute-02", 2).QualifiedName(a.Host.AK2Name()))
		}},
		{Name: "second key certified in another boot", Want: attest.ReasonCertify, Certify: func(_ *Attempt, q *tpm2.TPMSAttest) { q.ClockInfo.ResetCount++ }},
		{Name: "second key certified by other TPM firmware", Want: attest.ReasonCertify, Certify: func(_ *Attempt, q *tpm2.TPMSAttest) { q.FirmwareVersion++ }},

		{Name: "TPM firmware not allowed", Want: attest.ReasonTPM, Host: func(a *Attempt) {
			a.Policy.TPMFirmware = []attest.TPMFirmware{{Maker: "id:54455354", Model: "attesttest", Allow: []string{"0001000200030005"}}}
		}},
		{Name: "TPM model without a list", Want: attest.ReasonTPM, Host: func(a *Attempt) {
			a.Policy.TPMFirmware = []attest.TPMFirmware{{Maker: "id:54455354", Model: "other", Allow: []string{"0001000200030004"}}}
		}},
		{Name: "event log not of the statement", Want: attest.ReasonEventLog, Host: func(a *Attempt) { a.Host.EventLog = []byte("log") }},
		{Name: "event log left out", Want: attest.ReasonEventLog, Host: func(a *Attempt) {
			a.Host.Statement.EventLog = strings.Repeat("0", 64)
		}},
	}
}

func attacksOnStatements() []Attack {
	return []Attack{
		{Name: "statement is not JSON", Want: attest.ReasonStatement, Host: func(a *Attempt) { a.measure([]byte("GUIDs: all of them")) }},
		{Name: "statement of another host", Want: attest.ReasonStatementHost, Host: func(a *Attempt) { a.measureAltered(`"compute-01"`, `"compute-02"`) }},
		{Name: "statement too old", Want: attest.ReasonStatementAge, Host: func(a *Attempt) {
			a.Host.Statement.CollectedAt = Epoch.Add(-16 * time.Minute)
		}},
		{Name: "statement from the future", Want: attest.ReasonStatementAge, Host: func(a *Attempt) {
			a.Host.Statement.CollectedAt = Epoch.Add(2 * time.Minute)
		}},
		{Name: "another host's GUIDs", Want: attest.ReasonGUIDMismatch, Host: func(a *Attempt) {
			a.Host.Statement.HCAs = a.NewHost("compute-02", 2).Statement.HCAs
		}},
		{Name: "one port GUID of another host", Want: attest.ReasonGUIDMismatch, Host: func(a *Attempt) { a.Host.Statement.HCAs[0].Ports[1].GUID++ }},
		{Name: "another system image GUID", Want: attest.ReasonGUIDMismatch, Host: func(a *Attempt) { a.Host.Statement.HCAs[0].SystemImageGUID++ }},
		{Name: "an HCA less than inventory", Want: attest.ReasonGUIDMismatch, Host: func(a *Attempt) {
			a.Expected.HCAs = append(a.Expected.HCAs, a.NewHost("compute-02", 2).Expected().HCAs...)
		}},
		{Name: "an HCA more than inventory", Want: attest.ReasonGUIDMismatch, Host: func(a *Attempt) {
			more := a.NewHost("compute-02", 2).Statement.HCAs[0]
			more.Name = "mlx5_1"
			a.Host.Statement.HCAs = append(a.Host.Statement.HCAs, more)
		}},
		{Name: "a port less than inventory", Want: attest.ReasonGUIDMismatch, Host: func(a *Attempt) {
			a.Host.Statement.HCAs[0].Ports = a.Host.Statement.HCAs[0].Ports[:1]
		}},
		{Name: "a port switched to Ethernet", Want: attest.ReasonGUIDMismatch, Host: func(a *Attempt) {
			a.Host.Statement.HCAs[0].Ports[1] = attest.Port{Num: 2, LinkLayer: attest.LinkEthernet}
		}},
		{Name: "firmware below the minimum", Want: attest.ReasonFirmware, Host: func(a *Attempt) {
			a.Policy.FirmwareFloors = []attest.FirmwareFloor{{PSID: "MT_0000000838", Min: "28.43.2000"}}
		}},
		{Name: "board without a minimum", Want: attest.ReasonFirmware, Host: func(a *Attempt) {
			a.Policy.FirmwareFloors = []attest.FirmwareFloor{{PSID: "MT_0000000001", Min: "1.0"}}
		}},
		{Name: "firmware version that is none", Want: attest.ReasonFirmware, Host: func(a *Attempt) {
			a.Policy.FirmwareFloors = []attest.FirmwareFloor{{PSID: "MT_0000000838", Min: "1.0"}}
			a.Host.Statement.HCAs[0].Firmware.Running = "latest"
		}},
	}
}

// malformedStatements are measured and quoted as they are. A host could send them in the hope that the reader is lenient.
func malformedStatements() []Attack {
	const node = `"node_guid":"0x0002c90300000100"`
	var all []Attack
	for _, m := range []struct{ name, old, new string }{
		{"statement with a duplicate key", `"version":2,`, `"version":2,"version":2,`},
		{"statement in other letter case", `"version"`, `"Version"`},
		{"statement with an unknown field", `"version":2,`, `"version":2,"lock":true,`},
		{"statement with trailing JSON", `null}]}`, `null}]}{}`},
		{"statement with GUID zero", node, `"node_guid":"0x0000000000000000"`},
		{"statement with GUID all ones", node, `"node_guid":"0xffffffffffffffff"`},
		{"statement with a short GUID", node, `"node_guid":"0x2c90300000100"`},
		{"statement with a GUID in upper case", node, `"node_guid":"0x0002C90300000100"`},
	} {
		all = append(all, Attack{Name: m.name, Want: attest.ReasonStatement, Host: func(a *Attempt) { a.measureAltered(m.old, m.new) }})
	}
	for _, m := range []struct{ name, text string }{
		{"statement with 10,000 adapters", `{"version":2,"hcas":[` + strings.Repeat("{},", 9999) + `{}]}`},
		{"statement nested deeply", `{"hcas":` + strings.Repeat("[", 60000)},
	} {
		all = append(all, Attack{Name: m.name, Want: attest.ReasonStatement, Host: func(a *Attempt) { a.measure([]byte(m.text)) }})
	}
	return all
}
