package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"portcullis/packaging/testenv"
)

var claims = []byte(`{"sub":"compute-01"}`)

type signer struct {
	key  *ecdsa.PrivateKey
	kid  string
	keys *Keys
}

func newSigner(t testing.TB) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{key: key, keys: new(Keys)}
	if s.kid, err = ID(&key.PublicKey); err != nil {
		t.Fatal(err)
	}
	if err := s.keys.Add(&key.PublicKey); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *signer) sign(t testing.TB) string {
	t.Helper()
	token, err := Sign(claims, s.kid, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// raw signs any header, as a holder of the key could.
func (s *signer) raw(t testing.TB, header string) string {
	t.Helper()
	input := enc([]byte(header)) + "." + enc(claims)
	sum := sha256.Sum256([]byte(input))
	r, v, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	v.FillBytes(sig[32:])
	return input + "." + enc(sig)
}

func enc(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (s *signer) header() string {
	return fmt.Sprintf(`{"alg":"ES256","kid":"%s","typ":"eat+jwt"}`, s.kid)
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	token := s.sign(t)
	got, kid, err := Verify(token, s.keys)
	if err != nil || kid != s.kid || !bytes.Equal(got, claims) {
		t.Fatalf("got %s by %s, %v", got, kid, err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	if err != nil || string(raw) != s.header() {
		t.Errorf("header %s, %v; want %s", raw, err, s.header())
	}
	if _, _, err := Verify(s.raw(t, s.header()), s.keys); err != nil {
		t.Errorf("the same, made by hand: %v", err)
	}

	// A client that gets the keys as text can verify with them.
	set, err := json.Marshal(s.keys)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseKeys(set)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Verify(token, read); err != nil {
		t.Errorf("with keys that were published as %s: %v", set, err)
	}
}

func TestForgeries(t *testing.T) {
	t.Parallel()
	s, other := newSigner(t), newSigner(t)
	good := s.sign(t)
	parts := strings.Split(good, ".")
	public, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, token string
		code        Code
	}{
		{"nothing", "", BadForm},
		{"no signature part", parts[0] + "." + parts[1], BadForm},
		{"alg none without signature", enc([]byte(`{"alg":"none","typ":"eat+jwt","kid":"`+s.kid+`"}`)) + "." + parts[1] + ".", BadAlgorithm},
		{"alg None in other letter case", enc([]byte(`{"alg":"NoNe","typ":"eat+jwt","kid":"`+s.kid+`"}`)) + "." + parts[1] + ".", BadAlgorithm},
		{"no alg", enc([]byte(`{"typ":"eat+jwt","kid":"`+s.kid+`"}`)) + "." + parts[1] + "." + parts[2], BadAlgorithm},
		{"HS256 with the public key as secret, DER", hs256(s, public), BadAlgorithm},
		{"HS256 with the public key as secret, PEM", hs256(s, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), BadAlgorithm},
		{"RS256", rs256(t, s), BadAlgorithm},
		{"ES384 named over an ES256 signature", s.raw(t, `{"alg":"ES384","kid":"`+s.kid+`","typ":"eat+jwt"}`), BadAlgorithm},
		{"alg twice", s.raw(t, `{"alg":"none","alg":"ES256","kid":"`+s.kid+`","typ":"eat+jwt"}`), BadHeader},
		{"alg in two letter cases", s.raw(t, `{"alg":"ES256","ALG":"ES256","kid":"`+s.kid+`","typ":"eat+jwt"}`), BadHeader},
		{"wrong kid", s.raw(t, `{"alg":"ES256","kid":"`+other.kid+`","typ":"eat+jwt"}`), UnknownKey},
		{"no kid", s.raw(t, `{"alg":"ES256","typ":"eat+jwt"}`), BadHeader},
		{"empty kid", s.raw(t, `{"alg":"ES256","kid":"","typ":"eat+jwt"}`), UnknownKey},
		{"other typ", s.raw(t, `{"alg":"ES256","kid":"`+s.kid+`","typ":"JWT"}`), BadType},
		{"no typ", s.raw(t, `{"alg":"ES256","kid":"`+s.kid+`"}`), BadType},
		{"crit", s.raw(t, `{"alg":"ES256","crit":["b64"],"kid":"`+s.kid+`","typ":"eat+jwt"}`), BadHeader},
		{"a key of its own in the header", selfSigned(t, other), BadHeader},
		{"jku", s.raw(t, `{"alg":"ES256","jku":"https://evil.example/jwks.json","kid":"`+s.kid+`","typ":"eat+jwt"}`), BadHeader},
		{"header is a list", s.raw(t, `["ES256"]`), BadHeader},
		{"header with something after it", s.raw(t, s.header()+" "), BadHeader},
		{"header too large", s.raw(t, `{"alg":"ES256","kid":"`+strings.Repeat("a", 600)+`","typ":"eat+jwt"}`), BadForm},
		{"signed by another key under the known id", (&signer{key: other.key, kid: s.kid}).sign(t), BadSignature},
		{"tampered claims", parts[0] + "." + enc([]byte(`{"sub":"compute-02"}`)) + "." + parts[2], BadSignature},
		{"tampered signature", parts[0] + "." + parts[1] + "." + flip(t, parts[2]), BadSignature},
		{"signature of zeros", parts[0] + "." + parts[1] + "." + enc(make([]byte, 64)), BadSignature},
		{"signature in ASN.1", parts[0] + "." + parts[1] + "." + enc(asn1Signature(t, s, parts[0]+"."+parts[1])), BadSignature},
		{"signature cut short", parts[0] + "." + parts[1] + "." + enc(make([]byte, 63)), BadSignature},
		{"signature with padding", good + "==", BadSignature},
		{"line break in it", parts[0] + "." + parts[1] + "." + parts[2][:20] + "\n" + parts[2][20:], BadSignature},
		{"oversized", strings.Repeat("a", MaxSize+1), BadSize},
		{"JSON serialization", `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, BadForm},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := Verify(tt.token, s.keys)
			var e *Error
			if !errors.As(err, &e) || e.Code != tt.code || got != nil {
				t.Errorf("got %s, %v; want code %s", got, err, tt.code)
			}
		})
	}
	if _, _, err := Verify(good, nil); err == nil {
		t.Error("verified without keys")
	}
	if _, _, err := Verify(good, other.keys); err == nil {
		t.Error("verified by another's keys")
	}
}

func hs256(s *signer, secret []byte) string {
	input := enc([]byte(`{"alg":"HS256","kid":"`+s.kid+`","typ":"eat+jwt"}`)) + "." + enc(claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(input))
	return input + "." + enc(mac.Sum(nil))
}

func rs256(t *testing.T, s *signer) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, new(jose.SignerOptions).WithType(Type).WithHeader("kid", s.kid))
	if err != nil {
		t.Fatal(err)
	}
	return compact(t, signer)
}

// selfSigned names its own key in the header, as RFC 7515 allows.
func selfSigned(t *testing.T, s *signer) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: s.key}, (&jose.SignerOptions{EmbedJWK: true}).WithType(Type).WithHeader("kid", s.kid))
	if err != nil {
		t.Fatal(err)
	}
	return compact(t, signer)
}

func compact(t *testing.T, signer jose.Signer) string {
	t.Helper()
	signed, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func flip(t *testing.T, part string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	b[40] ^= 1
	return enc(b)
}

func asn1Signature(t *testing.T, s *signer, input string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(input))
	sig, err := ecdsa.SignASN1(rand.Reader, s.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

func TestKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	set, err := json.Marshal(s.keys)
	if err != nil {
		t.Fatal(err)
	}
	one := strings.TrimSuffix(strings.TrimPrefix(string(set), `{"keys":[`), `]}`)
	private, err := json.Marshal(jose.JSONWebKey{Key: s.key, KeyID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]string{
		"nothing":             "",
		"no keys":             `{"keys":[]}`,
		"a key alone":         one,
		"a private key":       `{"keys":[` + string(private) + `]}`,
		"one id twice":        `{"keys":[` + one + `,` + one + `]}`,
		"only for encryption": `{"keys":[` + strings.Replace(one, `"use":"sig"`, `"use":"enc"`, 1) + `]}`,
		"only for ES384":      `{"keys":[` + strings.Replace(one, `"alg":"ES256"`, `"alg":"ES384"`, 1) + `]}`,
		"a secret":            `{"keys":[{"kty":"oct","kid":"x","k":"AAAA"}]}`,
		"off the curve":       `{"keys":[{"kty":"EC","crv":"P-256","kid":"x","x":"` + enc(make([]byte, 32)) + `","y":"` + enc(make([]byte, 32)) + `"}]}`,
		"too many":            `{"keys":[` + strings.Repeat("{},", MaxKeys) + `{}]}`,
		"too large":           `{"keys":[]}` + strings.Repeat(" ", MaxKeysSet),
	} {
		if k, err := ParseKeys([]byte(b)); err == nil {
			t.Errorf("%s: read as keys %q", name, k.IDs())
		}
	}
	mixed := `{"keys":[{"kty":"RSA","kid":"r","n":"AQAB","e":"AQAB"},` + one + `]}`
	if k, err := ParseKeys([]byte(mixed)); err != nil || len(k.IDs()) != 1 {
		t.Errorf("a set with a key of another kind in it: %v", err)
	}
}

// TestOpenSSLVerifies has a program that shares no code with us judge the signature,
// from the token and the published key alone.
func TestOpenSSLVerifies(t *testing.T) {
	t.Parallel()
	openssl := testenv.Program(t, "openssl")
	s := newSigner(t)
	token := s.sign(t)
	dir := t.TempDir()
	parts := strings.Split(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	der := func(v []byte) []byte { // INTEGER of X.690
		b := new(big.Int).SetBytes(v).Bytes()
		if len(b) > 0 && b[0] >= 0x80 {
			b = append([]byte{0}, b...)
		}
		return append([]byte{2, byte(len(b))}, b...)
	}
	body := append(der(raw[:32]), der(raw[32:])...)
	public, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"signature": append([]byte{0x30, byte(len(body))}, body...),
		"signed":    []byte(parts[0] + "." + parts[1]),
		"other":     []byte(parts[0] + "." + parts[1] + "A"),
		"key.pem":   pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verify := func(what string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), openssl, "dgst", "-sha256", "-verify", "key.pem", "-signature", "signature", what)
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	if out, err := verify("signed"); err != nil || !strings.Contains(string(out), "Verified OK") {
		t.Errorf("openssl: %v, %s", err, out)
	}
	if out, err := verify("other"); err == nil {
		t.Errorf("openssl verifies what was not signed: %s", out)
	}
}

func FuzzVerify(f *testing.F) {
	s := newSigner(f)
	good := s.sign(f)
	f.Add(good)
	f.Add(s.raw(f, `{"alg":"ES256","kid":"`+s.kid+`","typ":"eat+jwt","crit":["x"]}`))
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		got, _, err := Verify(token, s.keys)
		if err == nil && !bytes.Equal(got, claims) {
			t.Fatalf("verified claims that were never signed: %s", got)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	set, err := json.Marshal(newSigner(f).keys)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(set)
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":""}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := ParseKeys(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseKeys(again); err != nil {
			t.Fatalf("%s is read, and %s is not: %v", b, again, err)
		}
	})
}
