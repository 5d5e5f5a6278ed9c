package attest_test

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
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/ek"
)

// request is what a Begin case may change.
type request struct {
	*lab
	req *attest.SessionRequest
	exp attest.Expected
	now time.Time
}

// reissue replaces the EK certificate by one with other contents.
func (r *request) reissue(change func(*x509.Certificate)) {
	r.t.Helper()
	tmpl := attesttest.EKTemplate(x509.KeyUsageKeyAgreement)
	change(tmpl)
	r.certify(tmpl, &r.host.EK.PublicKey)
}

func (r *request) certify(tmpl *x509.Certificate, key crypto.PublicKey) {
	r.t.Helper()
	der, err := r.vendor.Issue(tmpl, key)
	if err != nil {
		r.t.Fatal(err)
	}
	r.req.EK.Certificates = [][]byte{der}
}

// alterAK changes the AK's public area.
func (r *request) alterAK(change func(*tpm2.TPMTPublic)) {
	r.t.Helper()
	pub, err := tpm2.Unmarshal[tpm2.TPMTPublic](r.req.AK1Public)
	if err != nil {
		r.t.Fatal(err)
	}
	change(pub)
	r.req.AK1Public = tpm2.Marshal(*pub)
}

func (r *request) rsaKey(bits int) *rsa.PrivateKey {
	r.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		r.t.Fatal(err)
	}
	return key
}

func setPoint(p *tpm2.TPMTPublic, x, y []byte) {
	p.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{
		X: tpm2.TPM2BECCParameter{Buffer: x}, Y: tpm2.TPM2BECCParameter{Buffer: y},
	})
}

func setECC(p *tpm2.TPMTPublic, curve tpm2.TPMECCCurve, scheme tpm2.TPMTECCScheme) {
	p.Parameters = tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{CurveID: curve, Scheme: scheme})
}

func TestBeginRefuses(t *testing.T) { // not parallel: one case sets GODEBUG
	for _, tc := range []struct {
		name  string
		want  attest.Reason
		alter func(*request)
	}{
		{"no policy", attest.ReasonPolicy, func(r *request) { r.policy = nil }},
		{"zero policy", attest.ReasonPolicy, func(r *request) { r.policy = &attest.Policy{} }},
		{"no roots", attest.ReasonPolicy, func(r *request) { r.policy = attest.DefaultPolicy() }},
		{"agent PCR that anyone can reset", attest.ReasonPolicy, func(r *request) { r.policy.AgentPCR = 16 }},
		{"no request", attest.ReasonRequest, func(r *request) { r.req = nil }},
		{"host id with a slash", attest.ReasonRequest, func(r *request) { r.req.Host = "../compute-01" }},
		{"nine certificates", attest.ReasonRequest, func(r *request) { r.req.EK.Certificates = make([][]byte, 9) }},
		{"certificate over its size", attest.ReasonRequest, func(r *request) { r.req.EK.Certificates[0] = make([]byte, attest.MaxCertificate+1) }},
		{"AK over its size", attest.ReasonRequest, func(r *request) { r.req.AK1Public = make([]byte, attest.MaxTPMStructure+1) }},
		{"another host's record", attest.ReasonHost, func(r *request) { r.exp.Host = "compute-02" }},
		{"inventory without HCAs", attest.ReasonInventory, func(r *request) { r.exp.HCAs = nil }},
		{"inventory with a GUID twice", attest.ReasonInventory, func(r *request) { r.exp.HCAs = append(r.exp.HCAs, r.exp.HCAs[0]) }},
		{"inventory with an HCA without ports", attest.ReasonInventory, func(r *request) { r.exp.HCAs[0].Ports = nil }},

		{"unknown EK kind", attest.ReasonEKKind, func(r *request) { r.req.EK.Kind = "ecc-p521" }},
		{"EK kind of another template", attest.ReasonEKKind, func(r *request) { r.req.EK.Kind = string(ek.RSA2048) }},
		{"no certificate", attest.ReasonEKMissing, func(r *request) { r.req.EK.Certificates = nil }},
		{"no certificate but the right bare key", attest.ReasonEKMissing, func(r *request) {
			r.req.EK.Certificates = nil
			r.req.EK.Public, _ = x509.MarshalPKIXPublicKey(&r.host.EK.PublicKey)
		}},
		{"certificate is noise", attest.ReasonEKParse, func(r *request) { r.req.EK.Certificates[0] = []byte("not DER") }},
		{"certificate followed by other bytes", attest.ReasonEKParse, func(r *request) {
			r.req.EK.Certificates[0] = append(bytes.Clone(r.req.EK.Certificates[0]), 1)
		}},
		{"certificate of another TPM of the vendor", attest.ReasonEKPin, func(r *request) {
			r.req.EK.Certificates = [][]byte{r.newHost("compute-02", 2).Certificate}
		}},
		{"inventory without EK", attest.ReasonEKPin, func(r *request) { r.exp.EKDigest = "" }},
		{"EK nobody confirmed", attest.ReasonEKApprove, func(r *request) {
			r.policy.Mode, r.exp.EKDigest = attest.EKChainApprove, ""
		}},
		{"confirmed EK of another TPM", attest.ReasonEKPin, func(r *request) {
			r.policy.Mode, r.exp.EKDigest = attest.EKChainApprove, r.newHost("compute-02", 2).EKDigest()
		}},
		{"pinned mode with another key", attest.ReasonEKPin, func(r *request) {
			r.policy.Mode = attest.EKPinned
			r.req.EK.Public, _ = x509.MarshalPKIXPublicKey(&r.newHost("compute-02", 2).EK.PublicKey)
		}},
		{"unknown vendor", attest.ReasonEKChain, func(r *request) {
			other, err := attesttest.NewVendor("Other TPM")
			if err != nil {
				r.t.Fatal(err)
			}
			r.vendor = other
			r.reissue(func(*x509.Certificate) {})
		}},
		{"self-signed", attest.ReasonEKChain, func(r *request) {
			tmpl := attesttest.EKTemplate(x509.KeyUsageKeyAgreement)
			der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &r.host.EK.PublicKey, r.host.EK)
			if err != nil {
				r.t.Fatal(err)
			}
			r.req.EK.Certificates[0] = der
		}},
		{"unknown critical extension", attest.ReasonEKChain, func(r *request) {
			r.reissue(func(c *x509.Certificate) {
				c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}})
			})
		}},
		{"issuing CA expired", attest.ReasonEKChain, func(r *request) { r.now = attesttest.Epoch.AddDate(20, 0, 0) }},
		{"SAN that is no name list", attest.ReasonEKParse, func(r *request) {
			r.reissue(func(c *x509.Certificate) { c.ExtraExtensions[0].Value = []byte{0x30, 2, 4, 0} })
		}},
		{"CA certificate as EK", attest.ReasonEKUsage, func(r *request) { r.reissue(func(c *x509.Certificate) { c.IsCA = true }) }},
		{"no EK usage", attest.ReasonEKUsage, func(r *request) { r.reissue(func(c *x509.Certificate) { c.UnknownExtKeyUsage = nil }) }},
		{"signing usage only", attest.ReasonEKUsage, func(r *request) {
			r.reissue(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature })
		}},
		{"expired under strict", attest.ReasonEKExpired, func(r *request) {
			r.policy.Expiry = attest.ExpiryStrict
			r.reissue(func(c *x509.Certificate) { c.NotAfter = attesttest.Epoch.AddDate(0, 0, -1) })
		}},
		{"not yet valid", attest.ReasonEKExpired, func(r *request) {
			r.reissue(func(c *x509.Certificate) { c.NotBefore = attesttest.Epoch.AddDate(0, 0, 1) })
		}},
		{"EK denied", attest.ReasonEKRevoked, func(r *request) { r.policy.Denied = map[string]bool{r.host.EKDigest(): true} }},
		{"issuing CA denied", attest.ReasonEKRevoked, func(r *request) {
			d, err := ek.Digest(r.vendor.Issuer().PublicKey)
			if err != nil {
				r.t.Fatal(err)
			}
			r.policy.Denied = map[string]bool{d: true}
		}},
		{"RSA-1024 EK", attest.ReasonEKWeak, func(r *request) {
			r.t.Setenv("GODEBUG", "rsa1024min=0")
			r.req.EK.Kind = string(ek.RSA2048)
			r.certify(attesttest.EKTemplate(x509.KeyUsageKeyEncipherment), &r.rsaKey(1024).PublicKey)
		}},
		{"RSA EK with exponent 3", attest.ReasonEKWeak, func(r *request) {
			key := r.rsaKey(2048).PublicKey
			key.E = 3
			r.req.EK.Kind = string(ek.RSA2048)
			r.certify(attesttest.EKTemplate(x509.KeyUsageKeyEncipherment), &key)
		}},
		{"EK on P-521", attest.ReasonEKWeak, func(r *request) {
			key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
			if err != nil {
				r.t.Fatal(err)
			}
			r.certify(attesttest.EKTemplate(x509.KeyUsageKeyAgreement), &key.PublicKey)
		}},

		{"AK empty", attest.ReasonAK, func(r *request) { r.req.AK1Public = nil }},
		{"AK with a trailing byte", attest.ReasonAK, func(r *request) { r.req.AK1Public = append(r.req.AK1Public, 0) }},
		{"AK cut", attest.ReasonAK, func(r *request) { r.req.AK1Public = r.req.AK1Public[:len(r.req.AK1Public)-1] }},
		{"AK not restricted", attest.ReasonAK, func(r *request) { r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.Restricted = false }) }},
		{"AK not fixedTPM", attest.ReasonAK, func(r *request) { r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.FixedTPM = false }) }},
		{"AK not fixedParent", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.FixedParent = false })
		}},
		{"AK made elsewhere", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.SensitiveDataOrigin = false })
		}},
		{"AK that decrypts", attest.ReasonAK, func(r *request) { r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.Decrypt = true }) }},
		{"AK with encryptedDuplication", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.EncryptedDuplication = true })
		}},
		{"AK with adminWithPolicy", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.AdminWithPolicy = true })
		}},
		{"AK with userWithAuth", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.UserWithAuth = true })
		}},
		{"AK without policy", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.AuthPolicy.Buffer = nil })
		}},
		{"AK with another policy", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) { p.AuthPolicy.Buffer = make([]byte, 32) })
		}},
		{"first AK for the capped state", attest.ReasonAK, func(r *request) { r.req.AK1Public = r.req.AK2Public }},
		{"second AK for the open state", attest.ReasonAK, func(r *request) { r.req.AK2Public = r.req.AK1Public }},
		{"AKs of another register", attest.ReasonAK, func(r *request) { r.policy.AgentPCR = 14 }},
		{"AKs of another list of statements", attest.ReasonAK, func(r *request) {
			r.req.StatementDigests = append(r.req.StatementDigests, make([]byte, 32))
		}},
		{"AKs of another start", attest.ReasonAK, func(r *request) { r.req.Start.Image = "other" }},
		{"no statement", attest.ReasonRequest, func(r *request) { r.req.StatementDigests = nil }},
		{"nine statements in one boot", attest.ReasonRequest, func(r *request) {
			for range 8 {
				r.host.MeasureBytes([]byte("later"))
			}
			r.req = r.host.Ask()
		}},
		{"short statement digest", attest.ReasonRequest, func(r *request) { r.req.StatementDigests[0] = []byte{1} }},
		{"no agent version", attest.ReasonRequest, func(r *request) { r.req.Start.Agent = "" }},
		{"image that is no text", attest.ReasonRequest, func(r *request) { r.req.Start.Image = "\x1b[2J" }},
		// A register that was capped and extended again: without the rule this
		// list would explain its value, and the host could attest after hand-over.
		{"hand-over among the statements", attest.ReasonAgentPCR, func(r *request) {
			r.host.Cap()
			r.host.Digests = append(r.host.Digests, attest.HandOverDigest())
			r.host.MeasureBytes([]byte("after hand-over"))
			r.req = r.host.Ask()
		}},
		{"agent that is not allowed", attest.ReasonStart, func(r *request) {
			r.policy.Starts = []attest.Start{{Agent: "test", Image: "provisioning-8"}}
		}},
		{"AK with null scheme", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) {
				setECC(p, tpm2.TPMECCNistP256, tpm2.TPMTECCScheme{Scheme: tpm2.TPMAlgNull})
			})
		}},
		{"AK on P-224", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) {
				setECC(p, tpm2.TPMECCNistP224, tpm2.TPMTECCScheme{
					Scheme: tpm2.TPMAlgECDSA,
					Details: tpm2.NewTPMUAsymScheme(tpm2.TPMAlgECDSA,
						&tpm2.TPMSSigSchemeECDSA{HashAlg: tpm2.TPMAlgSHA256}),
				})
			})
		}},
		{"AK point off the curve", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) { setPoint(p, bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)) })
		}},
		{"AK point with short coordinates", attest.ReasonAK, func(r *request) {
			r.alterAK(func(p *tpm2.TPMTPublic) { setPoint(p, []byte{1}, []byte{2}) })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			r := &request{lab: l, req: l.host.Request(), exp: l.host.Expected(), now: attesttest.Epoch}
			tc.alter(r)
			ch, s, err := attest.Begin(rand.Reader, r.now, r.req, r.exp, r.policy)
			var refusal *attest.Refusal
			if !errors.As(err, &refusal) || refusal.Code != tc.want {
				t.Fatalf("got error %v, want reason %s", err, tc.want)
			}
			if ch != nil || s != nil || refusal.Detail == "" {
				t.Errorf("got challenge %v, session %v, detail %q with a refusal", ch, s, refusal.Detail)
			}
		})
	}
}

func TestBeginAccepts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		alter func(*request)
	}{
		{"as it should be", func(*request) {}},
		{"upper-case digest in inventory", func(r *request) {
			raw, _ := hex.DecodeString(r.exp.EKDigest)
			r.exp.EKDigest = string(bytes.ToUpper([]byte(hex.EncodeToString(raw))))
		}},
		{"certificate padded with 0xff", func(r *request) {
			r.req.EK.Certificates[0] = append(bytes.Clone(r.req.EK.Certificates[0]), bytes.Repeat([]byte{0xff}, 600)...)
		}},
		{"issuer comes from the host", func(r *request) {
			r.policy.Intermediates = x509.NewCertPool()
			r.req.EK.Certificates = append(r.req.EK.Certificates, r.vendor.Issuer().Raw)
		}},
		{"pinned without certificate", func(r *request) {
			r.policy.Mode, r.policy.Roots = attest.EKPinned, nil
			r.req.EK.Certificates = nil
			r.req.EK.Public, _ = x509.MarshalPKIXPublicKey(&r.host.EK.PublicKey)
		}},
		{"confirmed EK", func(r *request) { r.policy.Mode = attest.EKChainApprove }},
		{"agent that is allowed", func(r *request) { r.policy.Starts = []attest.Start{r.host.Start()} }},
		{"expired under ignore-leaf", func(r *request) {
			r.reissue(func(c *x509.Certificate) { c.NotAfter = attesttest.Epoch.AddDate(0, 0, -1) })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			r := &request{lab: l, req: l.host.Request(), exp: l.host.Expected(), now: attesttest.Epoch}
			tc.alter(r)
			ch, s, err := attest.Begin(rand.Reader, r.now, r.req, r.exp, r.policy)
			if err != nil {
				t.Fatal(err)
			}
			secret, err := l.host.Activate(s)
			if err != nil || !bytes.Equal(secret, ch.Secret) {
				t.Errorf("activated %x, %v; want %x", secret, err, ch.Secret)
			}
			if noted := len(ch.EKNotes) > 0; noted != (tc.name == "expired under ignore-leaf") {
				t.Errorf("got notes %q", ch.EKNotes)
			}
		})
	}
}

// TestChallengesDiffer draws many challenges: a constant nonce, secret or id
// left over from debugging would show.
func TestChallengesDiffer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	seen := map[string]bool{}
	req, exp := l.host.Request(), l.host.Expected()
	for range 10_000 {
		ch, _, err := attest.Begin(rand.Reader, attesttest.Epoch, req, exp, l.policy)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []string{ch.ID, string(ch.Nonce), string(ch.Secret)} {
			if seen[v] {
				t.Fatalf("value %x drawn twice", v)
			}
			seen[v] = true
		}
	}
}

// TestActivationIsForOneKey shows that neither another TPM nor another AK
// opens a credential, and that a flipped bit is noticed.
func TestActivationIsForOneKey(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, s := l.begin()
	other := l.newHost("compute-02", 2)
	other.Request()
	if _, err := other.Activate(s); !errors.Is(err, attesttest.ErrIntegrity) {
		t.Errorf("another TPM: got %v, want %v", err, attesttest.ErrIntegrity)
	}
	withOtherAK := *l.host
	withOtherAK.AK1 = other.AK1
	if _, err := withOtherAK.Activate(s); !errors.Is(err, attesttest.ErrIntegrity) {
		t.Errorf("another AK: got %v, want %v", err, attesttest.ErrIntegrity)
	}
	s.CredentialBlob[len(s.CredentialBlob)-1] ^= 1
	if _, err := l.host.Activate(s); !errors.Is(err, attesttest.ErrIntegrity) {
		t.Errorf("flipped bit: got %v, want %v", err, attesttest.ErrIntegrity)
	}
}
