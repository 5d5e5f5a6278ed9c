package attest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// keyed is a sealed host with a key, and the parts that a case may change.
type keyed struct {
	*sealing
	key    *ecdsa.PrivateKey
	public []byte
	k      *attest.HostKey
}

type brokenKey struct {
	name string
	want attest.Reason
	// made changes key and public area before they are certified.
	made func(*keyed)
	// signed changes what the second key signs.
	signed func(*keyed, *tpm2.TPMSAttest)
	// sent changes what arrives.
	sent func(*keyed)
}

func newKeyed(t testing.TB) *keyed {
	t.Helper()
	s := newLab(t).sealing()
	s.host.Cap()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &keyed{sealing: s, key: key, public: attesttest.HostKeyPublic(&key.PublicKey, s.host.HostKeyPolicy())}
}

func (k *keyed) certify(alter func(*tpm2.TPMSAttest)) *attest.HostKey {
	k.t.Helper()
	out, err := k.host.CertifyHostKey(k.session, k.seal, k.channel, k.key, k.public, alter)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

func (k *keyed) sign(key *ecdsa.PrivateKey, data []byte) []byte {
	k.t.Helper()
	sig, err := attesttest.Sign(key, data)
	if err != nil {
		k.t.Fatal(err)
	}
	return sig
}

// as has the public area with something else in it.
func (k *keyed) as(change func(*tpm2.TPMTPublic)) {
	k.t.Helper()
	pub, err := tpm2.Unmarshal[tpm2.TPMTPublic](k.public)
	if err != nil {
		k.t.Fatal(err)
	}
	change(pub)
	k.public = tpm2.Marshal(pub)
}

func (k *keyed) name() []byte {
	k.t.Helper()
	name, err := attest.HostKeyName(k.public, k.host.HostKeyPolicy())
	if err != nil {
		k.t.Fatal(err)
	}
	return name
}

func (k *keyed) qualifying(nonce []byte) []byte {
	return attest.HostKeyQualifyingData(k.session.ID, nonce, k.sc.Statement, k.channel, k.name())
}

func brokenKeys() []brokenKey {
	return []brokenKey{
		{name: "no key of the host", want: attest.ReasonSession, sent: func(k *keyed) { k.k = nil }},
		{name: "key of the host without a seal", want: attest.ReasonSession, sent: func(k *keyed) { k.sc = nil }},
		{name: "key of the host over its size", want: attest.ReasonSize, sent: func(k *keyed) { k.k.Public = make([]byte, attest.MaxTPMStructure+1) }},

		{name: "key of the host restricted", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.Restricted = true })
		}},
		{name: "key of the host that may leave its TPM", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.FixedTPM = false })
		}},
		{name: "key of the host that may change its parent", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.FixedParent = false })
		}},
		{name: "key of the host made elsewhere", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.SensitiveDataOrigin = false })
		}},
		{name: "key of the host used with a password", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.UserWithAuth = true })
		}},
		{name: "key of the host that decrypts", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) { p.ObjectAttributes.Decrypt = true })
		}},
		{name: "key of the host without policy", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) { p.AuthPolicy.Buffer = nil })
		}},
		{name: "key of the host for the open register", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) { p.AuthPolicy.Buffer = attest.PCRPolicy(k.host.AgentPCR, k.host.Open()) })
		}},
		{name: "key of the host for every boot", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) {
				p.AuthPolicy.Buffer = attest.PCRPolicy(k.host.AgentPCR, attest.CappedPCRValue(k.host.Open()))
			})
		}},
		{name: "key of the host without scheme", want: attest.ReasonHostKey, made: func(k *keyed) {
			k.as(func(p *tpm2.TPMTPublic) {
				p.Parameters = tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{CurveID: tpm2.TPMECCNistP256})
			})
		}},
		{name: "key of the host off the curve", want: attest.ReasonHostKey, made: func(k *keyed) { k.public[len(k.public)-1] ^= 1 }},
		{name: "key of the host with a trailing byte", want: attest.ReasonHostKey, made: func(k *keyed) { k.public = append(k.public, 0) }},
		{name: "key of the host cut", want: attest.ReasonHostKey, made: func(k *keyed) { k.public = k.public[:len(k.public)-1] }},
		{name: "second attestation key as key of the host", want: attest.ReasonHostKey, made: func(k *keyed) { k.key, k.public = k.host.AK2, k.host.AK2Public() }},
		{name: "another key than the one that was certified", want: attest.ReasonNonce, sent: func(k *keyed) {
			k.k.Public = attesttest.HostKeyPublic(&newKeyed(k.t).key.PublicKey, k.host.HostKeyPolicy())
		}},
		{name: "certification of another key for this one", want: attest.ReasonHostKey, signed: func(k *keyed, a *tpm2.TPMSAttest) {
			a.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestCertify, &tpm2.TPMSCertifyInfo{Name: tpm2.TPM2BName{Buffer: k.host.AK2Name()}})
		}},
		{name: "name of the key cut", want: attest.ReasonHostKey, signed: func(k *keyed, a *tpm2.TPMSAttest) {
			a.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestCertify, &tpm2.TPMSCertifyInfo{Name: tpm2.TPM2BName{Buffer: k.name()[:33]}})
		}},

		{name: "key of the host certified by the first key", want: attest.ReasonSignature, sent: func(k *keyed) {
			k.k.CertifySignature = k.sign(k.host.AK1, k.k.Certify)
		}},
		{name: "key of the host certified by itself", want: attest.ReasonSignature, sent: func(k *keyed) {
			k.k.CertifySignature = k.sign(k.key, k.k.Certify)
		}},
		{name: "key of the host certified by another TPM", want: attest.ReasonSignature, sent: func(k *keyed) {
			k.k.CertifySignature = k.sign(k.newHost("compute-02", 2).AK2, k.k.Certify)
		}},
		{name: "certification with a trailing byte", want: attest.ReasonParse, sent: func(k *keyed) {
			k.k.Certify = append(k.k.Certify, 0)
			k.k.CertifySignature = k.sign(k.host.AK2, k.k.Certify)
		}},
		{name: "signature of the certification with a trailing byte", want: attest.ReasonParse, sent: func(k *keyed) {
			k.k.CertifySignature = append(k.k.CertifySignature, 0)
		}},
		{name: "magic of the certification wrong", want: attest.ReasonMagic, signed: func(_ *keyed, a *tpm2.TPMSAttest) { a.Magic = 0xff544348 }},
		{name: "quote instead of a certification", want: attest.ReasonType, signed: func(k *keyed, a *tpm2.TPMSAttest) {
			a.Type = tpm2.TPMSTAttestQuote
			a.Attested = tpm2.NewTPMUAttest(tpm2.TPMSTAttestQuote, &tpm2.TPMSQuoteInfo{})
		}},
		{name: "certification with the nonce of the evidence", want: attest.ReasonNonce, signed: func(k *keyed, a *tpm2.TPMSAttest) {
			a.ExtraData.Buffer = k.qualifying(k.session.Nonce)
		}},
		{name: "certification of an earlier seal", want: attest.ReasonNonce, signed: func(k *keyed, a *tpm2.TPMSAttest) {
			a.ExtraData.Buffer = k.qualifying(make([]byte, len(k.seal.Nonce)))
		}},
		{name: "qualifying data of the seal quote", want: attest.ReasonNonce, signed: func(k *keyed, a *tpm2.TPMSAttest) {
			a.ExtraData.Buffer = attest.SealQualifyingData(k.session.ID, k.seal.Nonce, k.sc.Statement, k.channel, k.host.AK2Name())
		}},
		{name: "key of the host over another connection", want: attest.ReasonNonce, sent: func(k *keyed) {
			k.channel = bytes.Repeat([]byte{9}, attest.ExporterSize)
		}},
		{name: "key of the host under another EK", want: attest.ReasonSigner, sent: func(k *keyed) { k.sc.EKName = k.newHost("compute-02", 2).EKName() }},
		{name: "key of the host certified in the next boot", want: attest.ReasonSeal, signed: func(_ *keyed, a *tpm2.TPMSAttest) { a.ClockInfo.ResetCount++ }},
		{name: "key of the host certified by other firmware", want: attest.ReasonSeal, signed: func(_ *keyed, a *tpm2.TPMSAttest) { a.FirmwareVersion++ }},

		{name: "no holder of the key", want: attest.ReasonParse, sent: func(k *keyed) { k.k.Holder = nil }},
		{name: "key of the host that somebody else sends", want: attest.ReasonSignature, sent: func(k *keyed) {
			k.k.Holder = k.sign(k.host.AK2, attest.HostKeyHolder(k.session.ID, k.seal.Nonce, k.sc.Statement, k.channel, k.name()))
		}},
		{name: "holder of an earlier seal", want: attest.ReasonSignature, sent: func(k *keyed) {
			k.k.Holder = k.sign(k.key, attest.HostKeyHolder(k.session.ID, make([]byte, 32), k.sc.Statement, k.channel, k.name()))
		}},
		{name: "certification's data as what the holder signs", want: attest.ReasonSignature, sent: func(k *keyed) {
			k.k.Holder = k.sign(k.key, k.qualifying(k.seal.Nonce))
		}},
		{name: "holder with SHA-384", want: attest.ReasonAlgorithm, sent: func(k *keyed) {
			k.k.Holder = tpm2.Marshal(tpm2.TPMTSignature{SigAlg: tpm2.TPMAlgECDSA, Signature: tpm2.NewTPMUSignature(tpm2.TPMAlgECDSA,
				&tpm2.TPMSSignatureECC{Hash: tpm2.TPMAlgSHA384, SignatureR: tpm2.TPM2BECCParameter{Buffer: big.NewInt(1).Bytes()}})})
		}},
	}
}

func (b *brokenKey) verdict(t *testing.T) (*keyed, *ecdsa.PublicKey, *attest.Refusal) {
	t.Helper()
	k := newKeyed(t)
	if b.made != nil {
		b.made(k)
	}
	var alter func(*tpm2.TPMSAttest)
	if b.signed != nil {
		alter = func(a *tpm2.TPMSAttest) { b.signed(k, a) }
	}
	k.k = k.certify(alter)
	if b.sent != nil {
		b.sent(k)
	}
	got, no := attest.VerifyHostKey(k.sc, k.channel, k.k)
	return k, got, no
}

func TestVerifyHostKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range brokenKeys() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, key, no := tc.verdict(t); no == nil || no.Code != tc.want || no.Detail == "" || key != nil {
				t.Errorf("got %v, %v; want reason %s", key, no, tc.want)
			}
		})
	}
}

func TestVerifyHostKeyAccepts(t *testing.T) {
	t.Parallel()
	for _, tc := range []brokenKey{
		{name: "as it should be"},
		{name: "behind a TLS proxy, by policy", made: func(k *keyed) { k.sc.Channel, k.channel = attest.ChannelNone, nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if k, got, no := tc.verdict(t); no != nil || !k.key.PublicKey.Equal(got) {
				t.Errorf("got %v, %v", got, no)
			}
		})
	}
}

// TestHostKeyEveryPrefix: nothing that is cut is accepted, and none panics.
func TestHostKeyEveryPrefix(t *testing.T) {
	t.Parallel()
	k := newKeyed(t)
	whole := k.certify(nil)
	for n := range whole.Certify {
		cut := *whole
		cut.Certify = whole.Certify[:n]
		cut.CertifySignature = k.sign(k.host.AK2, cut.Certify)
		if _, no := attest.VerifyHostKey(k.sc, k.channel, &cut); no == nil || no.Code != attest.ReasonParse {
			t.Errorf("certification cut at %d: got %v, want %s", n, no, attest.ReasonParse)
		}
	}
	for n := range whole.Public {
		cut := *whole
		cut.Public = whole.Public[:n]
		if _, no := attest.VerifyHostKey(k.sc, k.channel, &cut); no == nil || no.Code != attest.ReasonHostKey {
			t.Errorf("key cut at %d: got %v, want %s", n, no, attest.ReasonHostKey)
		}
	}
}

// TestHostKeyBytes compares docs/reference/evidence.md with the required public area of the key.
func TestHostKeyBytes(t *testing.T) {
	t.Parallel()
	k := newKeyed(t)
	point, err := k.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	xy := hex.EncodeToString(point[1:])
	want := "0023000b" + "00040432" + "0020" + hex.EncodeToString(k.host.HostKeyPolicy()) + "0010" + "0018000b" + "0003" + "0010" +
		"0020" + xy[:64] + "0020" + xy[64:]
	if got := hex.EncodeToString(k.public); got != want || !strings.Contains(readDoc(t), "`00040432`") {
		t.Errorf("public area\n%s, documented\n%s", got, want)
	}
}

// FuzzVerifyHostKey feeds keys and certifications of any bytes. Only those that the host sent may pass.
func FuzzVerifyHostKey(f *testing.F) {
	k := newKeyed(f)
	good := k.certify(nil)
	f.Add(good.Public, good.Certify, good.CertifySignature, good.Holder)
	f.Add(slices.Concat(good.Public[:8], good.Public), []byte{0xff, 0x54, 0x43, 0x47, 0x80, 0x17}, []byte{0, 0x18, 0, 0x0b, 0, 0, 0, 0}, []byte{0, 0x18})
	f.Fuzz(func(t *testing.T, public, certify, signature, holder []byte) {
		_, no := attest.VerifyHostKey(k.sc, k.channel, &attest.HostKey{Public: public, Certify: certify, CertifySignature: signature, Holder: holder})
		switch {
		case no == nil && !(bytes.Equal(public, good.Public) && bytes.Equal(certify, good.Certify)):
			t.Error("accepted an altered key")
		case no != nil && (no.Code == "" || no.Detail == ""):
			t.Errorf("refused without a reason: %+v", no)
		}
	})
}
