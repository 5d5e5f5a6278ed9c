package attesttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"fmt"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/ek"
	"portcullis/fabricsm/ib"
)

// Host is a host with a TPM in software. Its fields may be changed before
// Answer to make evidence that is wrong in one way.
type Host struct {
	ID          string
	Certificate []byte // EK certificate, DER
	EK, AK      *ecdsa.PrivateKey
	Statement   attest.Statement
	Registers   [24][]byte // SHA-256 bank
	Digests     [][]byte   // statements measured so far
	Boot        attest.Boot
	started     bool
}

// NewHost makes a host with one HCA of two ports whose GUIDs derive from n,
// and a P-256 EK certified by the vendor.
func (v *Vendor) NewHost(id string, n int) (*Host, error) {
	h := &Host{ID: id, Boot: attest.Boot{Reset: 7, Clock: 60_000, Safe: true}}
	for i := range h.Registers {
		h.Registers[i] = make([]byte, sha256.Size)
		if i < 8 {
			h.Registers[i] = attest.Extend(h.Registers[i], []byte("firmware"))
		}
	}
	var err error
	if h.EK, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if h.AK, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if h.Certificate, err = v.Issue(EKTemplate(x509.KeyUsageKeyAgreement), &h.EK.PublicKey); err != nil {
		return nil, err
	}
	h.Statement = statement(id, ib.GUID(0x0002_c903_0000_0000+n<<8))
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
	e := attest.Expected{Host: h.ID, EKDigest: h.EKDigest()}
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

// AKPublic is the TPMT_PUBLIC of the host's AK.
func (h *Host) AKPublic() []byte {
	pub := attest.AKTemplate()
	x, y := coordinates(&h.AK.PublicKey)
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

// Request opens a session.
func (h *Host) Request() *attest.SessionRequest {
	return &attest.SessionRequest{
		Host:     h.ID,
		EK:       attest.EKClaim{Kind: string(ek.P256), Certificates: [][]byte{h.Certificate}},
		AKPublic: h.AKPublic(),
	}
}

// Measure extends the statement into the agent PCR and gives its bytes.
func (h *Host) Measure(agentPCR int) ([]byte, error) {
	b, err := h.Statement.Encode()
	if err != nil {
		return nil, err
	}
	h.MeasureBytes(agentPCR, b)
	return b, nil
}

// MeasureBytes extends the digest of any bytes as a statement.
func (h *Host) MeasureBytes(agentPCR int, b []byte) {
	r := &h.Registers[agentPCR]
	if !h.started {
		h.started = true
		*r = attest.Extend(*r, attest.StartDigest(h.Statement.Agent))
	}
	d := attest.StatementDigest(b)
	*r = attest.Extend(*r, d)
	h.Digests = append(h.Digests, d)
}

// Answer measures the statement and answers the session as an honest agent
// does.
func (h *Host) Answer(s *attest.Session, channel []byte) (*attest.Evidence, error) {
	b, err := h.Measure(s.AgentPCR)
	if err != nil {
		return nil, err
	}
	secret, err := h.Activate(s)
	if err != nil {
		return nil, err
	}
	return h.Evidence(s, channel, b, secret, nil)
}

// Evidence quotes the registers for an already measured statement. alter, when
// not nil, changes the TPMS_ATTEST before it is signed: what no real TPM does.
func (h *Host) Evidence(s *attest.Session, channel, statement, secret []byte, alter func(*tpm2.TPMSAttest)) (*attest.Evidence, error) {
	ev := &attest.Evidence{Statement: statement, StatementDigests: h.Digests}
	for _, n := range s.PCRs {
		ev.PCRValues = append(ev.PCRValues, h.Registers[n])
	}
	a, err := h.attestation(s, channel, statement)
	if err != nil {
		return nil, err
	}
	if alter != nil {
		alter(a)
	}
	ev.Quote = tpm2.Marshal(*a)
	if ev.Signature, err = h.Sign(ev.Quote); err != nil {
		return nil, err
	}
	ev.Proof = attest.Proof(secret, s.ID, ev)
	return ev, nil
}

func (h *Host) attestation(s *attest.Session, channel, statement []byte) (*tpm2.TPMSAttest, error) {
	akName, err := attest.AKName(h.AKPublic())
	if err != nil {
		return nil, err
	}
	signer, err := ek.ChildQualifiedName(h.EKName(), akName)
	if err != nil {
		return nil, err
	}
	q := attest.QualifyingData(s.ID, s.Nonce, attest.StatementDigest(statement), channel, akName)
	return &tpm2.TPMSAttest{
		Magic: tpm2.TPMGeneratedValue, Type: tpm2.TPMSTAttestQuote,
		QualifiedSigner: tpm2.TPM2BName{Buffer: signer},
		ExtraData:       tpm2.TPM2BData{Buffer: q},
		ClockInfo: tpm2.TPMSClockInfo{
			Clock: h.Boot.Clock, ResetCount: h.Boot.Reset, RestartCount: h.Boot.Restart, Safe: h.Boot.Safe,
		},
		FirmwareVersion: 0x0001_0002_0003_0004,
		Attested: tpm2.NewTPMUAttest(tpm2.TPMSTAttestQuote, &tpm2.TPMSQuoteInfo{
			PCRSelect: Selection(tpm2.TPMAlgSHA256, s.PCRs...),
			PCRDigest: tpm2.TPM2BDigest{Buffer: h.pcrDigest(s.PCRs)},
		}),
	}, nil
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

// Sign signs with the AK and gives a TPMT_SIGNATURE.
func (h *Host) Sign(data []byte) ([]byte, error) {
	sum := sha256.Sum256(data)
	r, s, err := ecdsa.Sign(rand.Reader, h.AK, sum[:])
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
