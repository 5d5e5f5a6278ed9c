package attesttest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"slices"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/ek"
)

// RequestAttack says how a request for a session differs from a valid one, and the reason for which it must be refused.
type RequestAttack struct {
	Name      string
	Want      attest.Reason
	InProcess bool // it is about the service, or cannot be sent
	Alter     func(*RequestAttempt)
}

// RequestAttempt is a request, and the parts that a case may change.
type RequestAttempt struct {
	*Attempt
	Req *attest.SessionRequest
}

// NewRequest is a valid request.
func NewRequest() *RequestAttempt {
	a := NewAttempt()
	return &RequestAttempt{Attempt: a, Req: a.Request()}
}

// Reissue replaces the EK certificate by one with other contents.
func (r *RequestAttempt) Reissue(change func(*x509.Certificate)) {
	tmpl := EKTemplate(x509.KeyUsageKeyAgreement)
	change(tmpl)
	r.Certify(tmpl, &r.Host.EK.PublicKey)
}

// Certify has the vendor certify a key.
func (r *RequestAttempt) Certify(tmpl *x509.Certificate, key crypto.PublicKey) {
	der, err := r.Vendor.Issue(tmpl, key)
	r.fail(err)
	r.Req.EK.Certificates = [][]byte{der}
}

// RSAKey makes one.
func (r *RequestAttempt) RSAKey(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	r.fail(err)
	return key
}

// alterAK changes the first key's public area.
func (r *RequestAttempt) alterAK(change func(*tpm2.TPMTPublic)) {
	pub, err := tpm2.Unmarshal[tpm2.TPMTPublic](r.Req.AK1Public)
	r.fail(err)
	change(pub)
	r.Req.AK1Public = tpm2.Marshal(*pub)
}

func setPoint(p *tpm2.TPMTPublic, x, y []byte) {
	p.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
		X: tpm2.TPM2BECCParameter{Buffer: x}, Y: tpm2.TPM2BECCParameter{Buffer: y},
	})
}

func setECC(p *tpm2.TPMTPublic, curve tpm2.TPMECCCurve, scheme tpm2.TPMTECCScheme) {
	p.Parameters = tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{CurveID: curve, Scheme: scheme})
}

// RequestAttacks are requests that are wrong in one way each.
func RequestAttacks() []RequestAttack { return slices.Concat(attacksOnEKs(), attacksOnKeys()) }

func attacksOnEKs() []RequestAttack {
	return []RequestAttack{
		{Name: "no policy for a request", InProcess: true, Want: attest.ReasonPolicy, Alter: func(r *RequestAttempt) { r.Policy = nil }},
		{Name: "zero policy", InProcess: true, Want: attest.ReasonPolicy, Alter: func(r *RequestAttempt) { r.Policy = &attest.Policy{} }},
		{Name: "no roots", InProcess: true, Want: attest.ReasonPolicy, Alter: func(r *RequestAttempt) { r.Policy = attest.DefaultPolicy() }},
		{Name: "agent PCR that every program can reset", InProcess: true, Want: attest.ReasonPolicy, Alter: func(r *RequestAttempt) { r.Policy.AgentPCR = 16 }},
		{Name: "no request", InProcess: true, Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) { r.Req = nil }},
		{Name: "host id with a slash", InProcess: true, Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) { r.Req.Host = "../compute-01" }},
		{Name: "nine certificates", Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) { r.Req.EK.Certificates = slices.Repeat([][]byte{{}}, 9) }},
		{Name: "certificate over its size", Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) { r.Req.EK.Certificates[0] = make([]byte, attest.MaxCertificate+1) }},
		{Name: "AK over its size", Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) { r.Req.AK1Public = make([]byte, attest.MaxTPMStructure+1) }},
		{Name: "another host's record", InProcess: true, Want: attest.ReasonHost, Alter: func(r *RequestAttempt) { r.Expected.Host = "compute-02" }},
		{Name: "inventory without HCAs", InProcess: true, Want: attest.ReasonInventory, Alter: func(r *RequestAttempt) { r.Expected.HCAs = nil }},
		{Name: "inventory with a GUID twice", InProcess: true, Want: attest.ReasonInventory, Alter: func(r *RequestAttempt) { r.Expected.HCAs = append(r.Expected.HCAs, r.Expected.HCAs[0]) }},
		{Name: "inventory with an HCA without ports", InProcess: true, Want: attest.ReasonInventory, Alter: func(r *RequestAttempt) { r.Expected.HCAs[0].Ports = nil }},

		{Name: "unknown EK kind", Want: attest.ReasonEKKind, Alter: func(r *RequestAttempt) { r.Req.EK.Kind = "ecc-p521" }},
		{Name: "EK kind of another template", Want: attest.ReasonEKKind, Alter: func(r *RequestAttempt) { r.Req.EK.Kind = string(ek.RSA2048) }},
		{Name: "no certificate", Want: attest.ReasonEKMissing, Alter: func(r *RequestAttempt) { r.Req.EK.Certificates = nil }},
		{Name: "no certificate but the right bare key", Want: attest.ReasonEKMissing, Alter: func(r *RequestAttempt) {
			r.Req.EK.Certificates = nil
			r.Req.EK.Public, _ = x509.MarshalPKIXPublicKey(&r.Host.EK.PublicKey)
		}},
		{Name: "certificate is noise", Want: attest.ReasonEKParse, Alter: func(r *RequestAttempt) { r.Req.EK.Certificates[0] = []byte("not DER") }},
		{Name: "certificate followed by other bytes", Want: attest.ReasonEKParse, Alter: func(r *RequestAttempt) {
			r.Req.EK.Certificates[0] = append(bytes.Clone(r.Req.EK.Certificates[0]), 1)
		}},
		{Name: "certificate of another TPM of the vendor", Want: attest.ReasonEKPin, Alter: func(r *RequestAttempt) {
			r.Req.EK.Certificates = [][]byte{r.NewHost("compute-02", 2).Certificate}
		}},
		{Name: "inventory without EK", InProcess: true, Want: attest.ReasonEKPin, Alter: func(r *RequestAttempt) { r.Expected.EKDigest = "" }},
		{Name: "EK that is not confirmed", InProcess: true, Want: attest.ReasonEKApprove, Alter: func(r *RequestAttempt) {
			r.Policy.Mode, r.Expected.EKDigest = attest.EKChainApprove, ""
		}},
		{Name: "confirmed EK of another TPM", InProcess: true, Want: attest.ReasonEKPin, Alter: func(r *RequestAttempt) {
			r.Policy.Mode, r.Expected.EKDigest = attest.EKChainApprove, r.NewHost("compute-02", 2).EKDigest()
		}},
		{Name: "pinned mode with another key", Want: attest.ReasonEKPin, Alter: func(r *RequestAttempt) {
			r.Policy.Mode = attest.EKPinned
			r.Req.EK.Public, _ = x509.MarshalPKIXPublicKey(&r.NewHost("compute-02", 2).EK.PublicKey)
		}},
		{Name: "unknown vendor", Want: attest.ReasonEKChain, Alter: func(r *RequestAttempt) {
			other, err := NewVendor("Other TPM")
			if err != nil {
				r.fail(err)
			}
			r.Vendor = other
			r.Reissue(func(*x509.Certificate) {})
		}},
		{Name: "self-signed", Want: attest.ReasonEKChain, Alter: func(r *RequestAttempt) {
			tmpl := EKTemplate(x509.KeyUsageKeyAgreement)
			der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &r.Host.EK.PublicKey, r.Host.EK)
			if err != nil {
				r.fail(err)
			}
			r.Req.EK.Certificates[0] = der
		}},
		{Name: "unknown critical extension", Want: attest.ReasonEKChain, Alter: func(r *RequestAttempt) {
			r.Reissue(func(c *x509.Certificate) {
				c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}})
			})
		}},
		{Name: "issuing CA expired", Want: attest.ReasonEKChain, Alter: func(r *RequestAttempt) { r.Now = Epoch.AddDate(20, 0, 0) }},
		{Name: "SAN that is no name list", Want: attest.ReasonEKParse, Alter: func(r *RequestAttempt) {
			r.Reissue(func(c *x509.Certificate) { c.ExtraExtensions[0].Value = []byte{0x30, 2, 4, 0} })
		}},
		{Name: "CA certificate as EK", Want: attest.ReasonEKUsage, Alter: func(r *RequestAttempt) { r.Reissue(func(c *x509.Certificate) { c.IsCA = true }) }},
		{Name: "no EK usage", Want: attest.ReasonEKUsage, Alter: func(r *RequestAttempt) { r.Reissue(func(c *x509.Certificate) { c.UnknownExtKeyUsage = nil }) }},
		{Name: "signing usage only", Want: attest.ReasonEKUsage, Alter: func(r *RequestAttempt) {
			r.Reissue(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature })
		}},
		{Name: "expired under strict", Want: attest.ReasonEKExpired, Alter: func(r *RequestAttempt) {
			r.Policy.Expiry = attest.ExpiryStrict
			r.Reissue(func(c *x509.Certificate) { c.NotAfter = Epoch.AddDate(0, 0, -1) })
		}},
		{Name: "not yet valid", Want: attest.ReasonEKExpired, Alter: func(r *RequestAttempt) {
			r.Reissue(func(c *x509.Certificate) { c.NotBefore = Epoch.AddDate(0, 0, 1) })
		}},
		{Name: "EK denied", Want: attest.ReasonEKRevoked, Alter: func(r *RequestAttempt) { r.Policy.Denied = map[string]bool{r.Host.EKDigest(): true} }},
		{Name: "issuing CA denied", Want: attest.ReasonEKRevoked, Alter: func(r *RequestAttempt) {
			d, err := ek.Digest(r.Vendor.Issuer().PublicKey)
			if err != nil {
				r.fail(err)
			}
			r.Policy.Denied = map[string]bool{d: true}
		}},
		{Name: "RSA EK with exponent 3", Want: attest.ReasonEKWeak, Alter: func(r *RequestAttempt) {
			key := r.RSAKey(2048).PublicKey
			key.E = 3
			r.Req.EK.Kind = string(ek.RSA2048)
			r.Certify(EKTemplate(x509.KeyUsageKeyEncipherment), &key)
		}},
		{Name: "EK on P-521", Want: attest.ReasonEKWeak, Alter: func(r *RequestAttempt) {
			key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
			if err != nil {
				r.fail(err)
			}
			r.Certify(EKTemplate(x509.KeyUsageKeyAgreement), &key.PublicKey)
		}},
	}
}

func attacksOnKeys() []RequestAttack {
	return []RequestAttack{
		{Name: "AK empty", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.Req.AK1Public = []byte{} }},
		{Name: "AK with a trailing byte", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.Req.AK1Public = append(r.Req.AK1Public, 0) }},
		{Name: "AK cut", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.Req.AK1Public = r.Req.AK1Public[:len(r.Req.AK1Public)-1] }},
		{Name: "AK not restricted", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.Restricted = false }) }},
		{Name: "AK not fixedTPM", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.FixedTPM = false }) }},
		{Name: "AK not fixedParent", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.FixedParent = false })
		}},
		{Name: "AK made elsewhere", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.SensitiveDataOrigin = false })
		}},
		{Name: "AK that decrypts", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.Decrypt = true }) }},
		{Name: "AK with encryptedDuplication", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.EncryptedDuplication = true })
		}},
		{Name: "AK with adminWithPolicy", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.AdminWithPolicy = true })
		}},
		{Name: "AK with userWithAuth", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.UserWithAuth = true })
		}},
		{Name: "AK without policy", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.AuthPolicy.Buffer = nil })
		}},
		{Name: "AK with another policy", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.AuthPolicy.Buffer = make([]byte, 32) })
		}},
		{Name: "first AK for the capped state", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.Req.AK1Public = r.Req.AK2Public }},
		{Name: "second AK for the open state", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.Req.AK2Public = r.Req.AK1Public }},
		{Name: "AKs of another register", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.Policy.AgentPCR = 14 }},
		{Name: "AKs of another list of statements", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.Req.StatementDigests = append(r.Req.StatementDigests, make([]byte, 32))
		}},
		{Name: "AKs of another start", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) { r.Req.Start.Image = "other" }},
		{Name: "no statement", Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) { r.Req.StatementDigests = [][]byte{} }},
		{Name: "nine statements in one boot", Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) {
			for range 8 {
				r.Host.MeasureBytes([]byte("later"))
			}
			r.Req = r.Host.Ask()
		}},
		{Name: "short statement digest", Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) { r.Req.StatementDigests[0] = []byte{1} }},
		{Name: "no agent version", Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) { r.Req.Start.Agent = "" }},
		{Name: "image that is no text", Want: attest.ReasonRequest, Alter: func(r *RequestAttempt) { r.Req.Start.Image = "\x1b[2J" }},
		// A register that was capped and extended again: without the rule this
		// list would explain its value, and the host could attest after hand-over.
		{Name: "hand-over among the statements", Want: attest.ReasonAgentPCR, Alter: func(r *RequestAttempt) {
			r.Host.Cap()
			r.Host.Digests = append(r.Host.Digests, attest.HandOverDigest())
			r.Host.MeasureBytes([]byte("after hand-over"))
			r.Req = r.Host.Ask()
		}},
		{Name: "agent that is not allowed", Want: attest.ReasonStart, Alter: func(r *RequestAttempt) {
			r.Policy.Starts = []attest.Start{{Agent: "test", Image: "provisioning-8"}}
		}},
		{Name: "AK with null scheme", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) {
				setECC(p, tpm2.TPMECCNistP256, tpm2.TPMTECCScheme{Scheme: tpm2.TPMAlgNull})
			})
		}},
		{Name: "AK on P-224", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) {
				setECC(p, tpm2.TPMECCNistP224, tpm2.TPMTECCScheme{
					Scheme: tpm2.TPMAlgECDSA,
					Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDSA,
						&tpm2.TPMSSigSchemeECDSA{HashAlg: tpm2.TPMAlgSHA256}),
				})
			})
		}},
		{Name: "AK point off the curve", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) { setPoint(p, bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)) })
		}},
		{Name: "AK point with short coordinates", Want: attest.ReasonAK, Alter: func(r *RequestAttempt) {
			r.alterAK(func(p *tpm2.TPMTPublic) { setPoint(p, []byte{1}, []byte{2}) })
		}},
	}
}
