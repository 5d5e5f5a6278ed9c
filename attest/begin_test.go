package attest_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"testing"

	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/ek"
)

func TestBeginRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range attesttest.RequestAttacks() {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			r := attesttest.NewRequest()
			tc.Alter(r)
			refusedRequest(t, r, tc.Want)
		})
	}
}

// refusedRequest wants a request to be refused for one reason.
func refusedRequest(t *testing.T, r *attesttest.RequestAttempt, want attest.Reason) {
	t.Helper()
	ch, s, err := attest.Begin(rand.Reader, r.Now, r.Req, r.Expected, r.Policy)
	refusal, ok := errors.AsType[*attest.Refusal](err)
	if !ok || refusal.Code != want {
		t.Fatalf("got error %v, want reason %s", err, want)
	}
	if ch != nil || s != nil || refusal.Detail == "" {
		t.Errorf("got challenge %v, session %v, detail %q with a refusal", ch, s, refusal.Detail)
	}
}

// TestShortRSAKey is apart from the others: only with this setting does Go make
// such a key.
func TestShortRSAKey(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	r := attesttest.NewRequest()
	r.Req.EK.Kind = string(ek.RSA2048)
	r.Certify(attesttest.EKTemplate(x509.KeyUsageKeyEncipherment), &r.RSAKey(1024).PublicKey)
	refusedRequest(t, r, attest.ReasonEKWeak)
}

func TestBeginAccepts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		alter func(*attesttest.RequestAttempt)
	}{
		{"as it should be", func(*attesttest.RequestAttempt) {}},
		{"upper-case digest in inventory", func(r *attesttest.RequestAttempt) {
			raw, _ := hex.DecodeString(r.Expected.EKDigest)
			r.Expected.EKDigest = string(bytes.ToUpper([]byte(hex.EncodeToString(raw))))
		}},
		{"certificate padded with 0xff", func(r *attesttest.RequestAttempt) {
			r.Req.EK.Certificates[0] = append(bytes.Clone(r.Req.EK.Certificates[0]), bytes.Repeat([]byte{0xff}, 600)...)
		}},
		{"issuer comes from the host", func(r *attesttest.RequestAttempt) {
			r.Policy.Intermediates = x509.NewCertPool()
			r.Req.EK.Certificates = append(r.Req.EK.Certificates, r.Vendor.Issuer().Raw)
		}},
		{"pinned without certificate", func(r *attesttest.RequestAttempt) {
			r.Policy.Mode, r.Policy.Roots = attest.EKPinned, nil
			r.Req.EK.Certificates = nil
			r.Req.EK.Public, _ = x509.MarshalPKIXPublicKey(&r.Host.EK.PublicKey)
		}},
		{"confirmed EK", func(r *attesttest.RequestAttempt) { r.Policy.Mode = attest.EKChainApprove }},
		{"agent that is allowed", func(r *attesttest.RequestAttempt) { r.Policy.Starts = []attest.Start{r.Host.Start()} }},
		{"expired under ignore-leaf", func(r *attesttest.RequestAttempt) {
			r.Reissue(func(c *x509.Certificate) { c.NotAfter = attesttest.Epoch.AddDate(0, 0, -1) })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := attesttest.NewRequest()
			tc.alter(r)
			ch, s, err := attest.Begin(rand.Reader, r.Now, r.Req, r.Expected, r.Policy)
			if err != nil {
				t.Fatal(err)
			}
			secret, err := r.Host.Activate(s)
			if err != nil || !bytes.Equal(secret, ch.Secret) {
				t.Errorf("activated %x, %v; want %x", secret, err, ch.Secret)
			}
			if noted := len(ch.EKNotes) > 0; noted != (tc.name == "expired under ignore-leaf") {
				t.Errorf("got notes %q", ch.EKNotes)
			}
		})
	}
}

// TestChallengesDiffer draws many challenges: a nonce, secret or id that is constant, or that only some bytes of are drawn,
// would show. All of them are bytes of the source of randomness, so more draws would show no more.
func TestChallengesDiffer(t *testing.T) {
	t.Parallel()
	const (
		draws  = 500
		values = 150 // that each byte takes at least: 220 are expected, with a standard deviation of 5
	)
	l := newLab(t)
	seen, taken := map[string]bool{}, map[string]map[byte]bool{}
	req, exp := l.host.Request(), l.host.Expected()
	for range draws {
		var drawn bytes.Buffer
		ch, _, err := attest.Begin(io.TeeReader(rand.Reader, &drawn), attesttest.Epoch, req, exp, l.policy)
		if err != nil {
			t.Fatal(err)
		}
		id, err := hex.DecodeString(ch.ID)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string][]byte{"id": id, "nonce": ch.Nonce, "secret": ch.Secret} {
			if seen[string(v)] || !bytes.Contains(drawn.Bytes(), v) {
				t.Fatalf("%s %x was drawn twice (%v), or does not come from the source", name, v, seen[string(v)])
			}
			seen[string(v)] = true
			for i, b := range v {
				place := fmt.Sprintf("byte %d of the %s", i, name)
				if taken[place] == nil {
					taken[place] = map[byte]bool{}
				}
				taken[place][b] = true
			}
		}
	}
	if n := len(taken); n != 16+32+32 {
		t.Errorf("%d bytes are drawn, want 80", n)
	}
	for place, all := range taken {
		if len(all) < values {
			t.Errorf("%s took %d values in %d draws, want at least %d", place, len(all), draws, values)
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
