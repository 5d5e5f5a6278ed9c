package attesttest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/ek"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/attest/reference"
	"portcullis/fabricsm/ib"
)

// Host is a host with a TPM in software. Its fields may be changed before
// Request or Answer to make evidence that is wrong in one way.
type Host struct {
	ID          string
	Certificate []byte // EK certificate, DER
	EK          *ecdsa.PrivateKey
	AK1, AK2    *ecdsa.PrivateKey // of the open and of the capped state
	Statement   attest.Statement
	AgentPCR    int
	Registers   [24][]byte // SHA-256 bank
	Digests     [][]byte   // statements measured so far
	EventLog    []byte
	Boot        attest.Boot

	measured []byte // the last statement
	started  bool
	machine  eventlogtest.Machine
}

// NewHost makes a host with one HCA of two ports whose GUIDs derive from n,
// and a P-256 EK certified by the vendor.
func (v *Vendor) NewHost(id string, n int) (*Host, error) {
	h := &Host{ID: id, AgentPCR: attest.DefaultAgentPCR, Boot: attest.Boot{Reset: 7, Clock: 60_000, Safe: true}}
	var err error
	if h.EK, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if err := h.NewKeys(); err != nil {
		return nil, err
	}
	if h.Certificate, err = v.Issue(EKTemplate(x509.KeyUsageKeyAgreement), &h.EK.PublicKey); err != nil {
		return nil, err
	}
	h.Statement = statement(id, ib.GUID(0x0002_c903_0000_0000+n<<8))
	h.PowerOn(eventlogtest.Example())
	return h, nil
}

// EKDigest is how inventory names the host's EK.
func (h *Host) EKDigest() string {
	d, err := ek.Digest(&h.EK.PublicKey)
	if err != nil {
		panic("attesttest: " + err.Error())
	}
	return d
}

// Expected is the inventory record that agrees with the host's statement.
func (h *Host) Expected() attest.Expected {
	e := attest.Expected{Host: h.ID, EKDigest: h.EKDigest(), Class: reference.DefaultClass, References: References()}
	for _, hca := range h.Statement.HCAs {
		x := attest.ExpectedHCA{NodeGUID: hca.NodeGUID, SystemImageGUID: hca.SystemImageGUID}
		for _, p := range hca.Ports {
			if p.LinkLayer == attest.LinkInfiniBand {
				x.Ports = append(x.Ports, attest.ExpectedPort{Num: p.Num, GUID: p.GUID})
			}
		}
		e.HCAs = append(e.HCAs, x)
	}
	return e
}

// NewKeys creates both attestation keys again.
func (h *Host) NewKeys() (err error) {
	if h.AK1, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	h.AK2, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return err
}

// Start is what the agent measures first.
func (h *Host) Start() attest.Start {
	return attest.Start{Agent: h.Statement.Agent, Image: h.Statement.Image}
}

// Open is the value of the agent PCR if only the start and the statements were measured.
func (h *Host) Open() []byte { return attest.OpenPCRValue(h.Start(), h.Digests) }

// policies are those of both keys.
func (h *Host) policies() (open, capped []byte) {
	v := h.Open()
	return attest.PCRPolicy(h.AgentPCR, v), attest.PCRPolicy(h.AgentPCR, attest.CappedPCRValue(v))
}

// AK1Public and AK2Public are the TPMT_PUBLIC of the keys.
func (h *Host) AK1Public() []byte {
	policy, _ := h.policies()
	return AKPublic(&h.AK1.PublicKey, policy)
}

func (h *Host) AK2Public() []byte {
	_, policy := h.policies()
	return AKPublic(&h.AK2.PublicKey, policy)
}

// AK1Name and AK2Name are the TPM's names of the keys.
func (h *Host) AK1Name() []byte {
	policy, _ := h.policies()
	return akName(h.AK1Public(), policy)
}

func (h *Host) AK2Name() []byte {
	_, policy := h.policies()
	return akName(h.AK2Public(), policy)
}

func akName(public, policy []byte) []byte {
	name, err := attest.AKName(public, policy)
	if err != nil {
		panic("attesttest: " + err.Error())
	}
	return name
}

// AKPublic is the TPMT_PUBLIC of an attestation key with a policy.
func AKPublic(key *ecdsa.PublicKey, policy []byte) []byte {
	pub := attest.AKTemplate(policy)
	x, y := coordinates(key)
	pub.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
		X: tpm2.TPM2BECCParameter{Buffer: x}, Y: tpm2.TPM2BECCParameter{Buffer: y},
	})
	return tpm2.Marshal(pub)
}

func coordinates(key *ecdsa.PublicKey) (x, y []byte) {
	point, err := key.Bytes()
	if err != nil {
		panic("attesttest: " + err.Error())
	}
	half := (len(point) - 1) / 2
	return point[1 : 1+half], point[1+half:]
}

// Request measures the statement, unless it is the last one measured, and asks
// for a session.
func (h *Host) Request() *attest.SessionRequest {
	b, err := h.Statement.Encode()
	if err != nil {
		panic("attesttest: " + err.Error())
	}
	if !bytes.Equal(b, h.measured) {
		h.MeasureBytes(b)
	}
	return h.Ask()
}

// Ask asks for a session with the statements measured so far.
func (h *Host) Ask() *attest.SessionRequest {
	return &attest.SessionRequest{
		Host: h.ID, EK: attest.EKClaim{Kind: string(ek.P256), Certificates: [][]byte{h.Certificate}},
		Start: h.Start(), StatementDigests: h.Digests, AK1Public: h.AK1Public(), AK2Public: h.AK2Public(),
	}
}

// MeasureBytes extends the digest of any bytes as a statement.
func (h *Host) MeasureBytes(b []byte) { h.MeasureInto(h.AgentPCR, b) }

// MeasureInto does so in any register.
func (h *Host) MeasureInto(pcr int, b []byte) {
	if !h.started {
		h.started = true
		h.Extend(pcr, h.Start().Digest())
	}
	d := attest.StatementDigest(b)
	h.Extend(pcr, d)
	h.Digests, h.measured = append(h.Digests[:len(h.Digests):len(h.Digests)], d), b
}

// Extend extends a register.
func (h *Host) Extend(pcr int, digest []byte) {
	h.Registers[pcr] = attest.Extend(h.Registers[pcr], digest)
}

// Cap extends the hand-over digest into the agent PCR.
func (h *Host) Cap() { h.Extend(h.AgentPCR, attest.HandOverDigest()) }

// Reboot boots the machine again, as a power cycle does.
func (h *Host) Reboot() {
	h.PowerOn(h.machine)
	h.Boot.Reset++
	h.Boot.Restart = 0
}

// Answer answers the session for the statement that Request measured, as an
// honest agent does.
func (h *Host) Answer(s *attest.Session, channel []byte) (*attest.Evidence, error) {
	secret, err := h.Activate(s)
	if err != nil {
		return nil, err
	}
	return h.Evidence(s, channel, secret, nil)
}

// Alter changes the structures before they are signed, which no real TPM does.
type Alter func(quote, certify *tpm2.TPMSAttest)

// Evidence quotes the registers for the statement measured last. alter may be
// nil.
func (h *Host) Evidence(s *attest.Session, channel, secret []byte, alter Alter) (*attest.Evidence, error) {
	ev := &attest.Evidence{Statement: h.measured, EventLog: h.EventLog}
	for _, n := range s.PCRs {
		ev.PCRValues = append(ev.PCRValues, h.Registers[n])
	}
	q := attest.QualifyingData(s.ID, s.Nonce, attest.StatementDigest(h.measured), channel, h.AK1Name())
	quote, certify := h.quote(s.PCRs, q, h.AK1Name()), h.certify(q)
	if alter != nil {
		alter(quote, certify)
	}
	ev.Quote, ev.Certify = tpm2.Marshal(*quote), tpm2.Marshal(*certify)
	var err error
	if ev.Signature, err = Sign(h.AK1, ev.Quote); err != nil {
		return nil, err
	}
	if ev.CertifySignature, err = Sign(h.AK1, ev.Certify); err != nil {
		return nil, err
	}
	ev.Proof = attest.Proof(secret, s.ID, ev)
	return ev, nil
}

// Seal caps the agent PCR and quotes once more, with the second key.
func (h *Host) Seal(s *attest.Session, seal *attest.Seal, channel []byte) (*attest.SealEvidence, error) {
	h.Cap()
	return h.SealQuote(s, seal, channel, nil)
}

// SealQuote quotes with the second key. alter may be nil.
func (h *Host) SealQuote(s *attest.Session, seal *attest.Seal, channel []byte, alter func(*tpm2.TPMSAttest)) (*attest.SealEvidence, error) {
	q := attest.SealQualifyingData(s.ID, seal.Nonce, attest.StatementDigest(h.measured), channel, h.AK2Name())
	quote := h.quote(s.PCRs, q, h.AK2Name())
	if alter != nil {
		alter(quote)
	}
	ev := &attest.SealEvidence{Quote: tpm2.Marshal(*quote)}
	var err error
	ev.Signature, err = Sign(h.AK2, ev.Quote)
	return ev, err
}

func (h *Host) quote(pcrs []int, qualifying, signer []byte) *tpm2.TPMSAttest {
	a := h.attestation(tpm2.TPMSTAttestQuote, qualifying, signer)
	a.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestQuote, &tpm2.TPMSQuoteInfo{
		PCRSelect: Selection(tpm2.TPMAlgSHA256, pcrs...),
		PCRDigest: tpm2.TPM2BDigest{Buffer: h.pcrDigest(pcrs)},
	})
	return a
}

func (h *Host) certify(qualifying []byte) *tpm2.TPMSAttest {
	a := h.attestation(tpm2.TPMSTAttestCertify, qualifying, h.AK1Name())
	a.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestCertify, &tpm2.TPMSCertifyInfo{
		Name:          tpm2.TPM2BName{Buffer: h.AK2Name()},
		QualifiedName: tpm2.TPM2BName{Buffer: h.QualifiedName(h.AK2Name())},
	})
	return a
}

// QualifiedName is that of a child of the EK.
func (h *Host) QualifiedName(name []byte) []byte {
	qn, err := ek.ChildQualifiedName(h.EKName(), name)
	if err != nil {
		panic("attesttest: " + err.Error())
	}
	return qn
}

func (h *Host) attestation(kind tpm2.TPMST, qualifying, signer []byte) *tpm2.TPMSAttest {
	return &tpm2.TPMSAttest{
		Magic: tpm2.TPMGeneratedValue, Type: kind,
		QualifiedSigner: tpm2.TPM2BName{Buffer: h.QualifiedName(signer)},
		ExtraData:       tpm2.TPM2BData{Buffer: qualifying},
		ClockInfo: tpm2.TPMSClockInfo{
			Clock: h.Boot.Clock, ResetCount: h.Boot.Reset, RestartCount: h.Boot.Restart, Safe: h.Boot.Safe,
		},
		FirmwareVersion: 0x0001_0002_0003_0004,
	}
}

// Selection is a TPML_PCR_SELECTION of one bank with a mask of three bytes.
func Selection(bank tpm2.TPMAlgID, pcrs ...int) tpm2.TPMLPCRSelection {
	mask := make([]byte, 3)
	for _, n := range pcrs {
		mask[n/8] |= 1 << (n % 8)
	}
	return tpm2.TPMLPCRSelection{PCRSelections: []tpm2.TPMSPCRSelection{{Hash: bank, PCRSelect: mask}}}
}

func (h *Host) pcrDigest(pcrs []int) []byte {
	d := sha256.New()
	for _, n := range pcrs {
		d.Write(h.Registers[n])
	}
	return d.Sum(nil)
}

// EKName is the TPM's name of the host's EK.
func (h *Host) EKName() []byte {
	e, err := ek.FromCertificate(ek.P256, h.Certificate)
	if err != nil {
		panic("attesttest: " + err.Error())
	}
	return e.Name
}

// Sign signs with an attestation key and returns a TPMT_SIGNATURE.
func Sign(key *ecdsa.PrivateKey, data []byte) ([]byte, error) {
	sum := sha256.Sum256(data)
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return tpm2.Marshal(tpm2.TPMTSignature{
		SigAlg: tpm2.TPMAlgECDSA,
		Signature: tpm2.NewTPMUSignature(tpm2.TPMAlgECDSA, &tpm2.TPMSSignatureECC{
			Hash:       tpm2.TPMAlgSHA256,
			SignatureR: tpm2.TPM2BECCParameter{Buffer: r.FillBytes(make([]byte, 32))},
			SignatureS: tpm2.TPM2BECCParameter{Buffer: s.FillBytes(make([]byte, 32))},
		}),
	}), nil
}
