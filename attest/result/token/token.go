// Package token signs attestation results and verifies them: compact JWS (RFC 7515) with ES256 (RFC 7518 section 3.4)
// alone, and the keys of a service as a JWK Set (RFC 7517). Its input is bounded and checked before it is passed to the
// library.
package token

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"portcullis/attest/result"
)

const (
	// Type is the typ of a result's header: the media type application/eat+jwt (RFC
	// 9782), without its beginning as RFC 8725 section 3.11 has it.
	Type = "eat+jwt"
	// Algorithm is the only one there is.
	Algorithm = string(jose.ES256)
	// MaxSize bounds a token in bytes: the largest claims, a header and a signature.
	MaxSize = result.MaxClaims/3*4 + 1024

	maxHeader     = 512 // bytes
	signatureSize = 64  // r and s
)

// Error says why a token is refused. Code is stable.
type Error struct {
	Code   Code
	Detail string
}

// Error returns the detail.
func (e *Error) Error() string { return "token: " + e.Detail }

// Code names a reason.
type Code string

// Reasons why a token is refused.
const (
	BadSize      Code = "size"
	BadForm      Code = "form"      // not three parts of base64url
	BadHeader    Code = "header"    // something in the header that is not of ours
	BadAlgorithm Code = "algorithm" // not ES256
	BadType      Code = "type"      // not of the type that is wanted
	UnknownKey   Code = "key"       // signed by none of the keys
	BadSignature Code = "signature"
)

func refuse(c Code, format string, args ...any) error { return &Error{c, fmt.Sprintf(format, args...)} }

// header is all that a result's header holds.
type header struct {
	Algorithm string `json:"alg"`
	Type      string `json:"typ"`
	Key       string `json:"kid"`
}

// Sign signs the encoded claims of a result. kid names the key in the service's JWK Set.
func Sign(claims []byte, kid string, key *ecdsa.PrivateKey) (string, error) {
	text, err := sign(Type, claims, kid, key)
	if err != nil {
		return "", fmt.Errorf("sign an attestation result: %w", err)
	}
	return text, nil
}

func sign(typ jose.ContentType, content []byte, kid string, key *ecdsa.PrivateKey) (string, error) {
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: key},
		new(jose.SignerOptions).WithType(typ).WithHeader("kid", kid),
	)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(content)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// Verify returns the claims of a token that one of the keys signed, and the id of that key. Every refusal is an *Error.
func Verify(token string, keys *Keys) (claims []byte, kid string, err error) {
	return verify(Type, token, keys)
}

func verify(typ, token string, keys *Keys) (claims []byte, kid string, err error) {
	h, err := readHeader(typ, token)
	if err != nil {
		return nil, "", err
	}
	key := keys.find(h.Key)
	if key == nil {
		return nil, "", refuse(UnknownKey, "key %q is not known; get the service's keys again", clip(h.Key))
	}
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return nil, "", refuse(BadForm, "it does not parse: %v", err)
	}
	claims, err = signed.Verify(key)
	if err != nil {
		return nil, "", refuse(BadSignature, "the signature is not that of key %s over these claims", h.Key)
	}
	return claims, h.Key, nil
}

// readHeader checks the header of a token before anything in it is trusted.
func readHeader(typ, token string) (header, error) {
	var h header
	if len(token) > MaxSize {
		return h, refuse(BadSize, "%d bytes, at most %d are read", len(token), MaxSize)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return h, refuse(BadForm, "%d parts, want header, claims and signature with dots between", len(parts))
	}
	raw, err := decode(parts[0])
	if err != nil || len(raw) > maxHeader {
		return h, refuse(BadForm, "its header is not base64url, or longer than %d bytes", maxHeader)
	}
	var names map[string]json.RawMessage
	if json.Unmarshal(raw, &names) != nil || json.Unmarshal(raw, &h) != nil {
		return h, refuse(BadHeader, "its header is not a JSON object of strings")
	}
	if h.Algorithm != Algorithm {
		return h, refuse(BadAlgorithm, "signed with alg %q: only %s is accepted", clip(h.Algorithm), Algorithm)
	}
	if h.Type != typ {
		return h, refuse(BadType, "typ %q, want %q: another kind of token", clip(h.Type), typ)
	}
	if again, err := json.Marshal(h); err != nil || len(names) != 3 || !sameMembers(names, again) || len(raw) != len(again) {
		return h, refuse(BadHeader, "its header has more than alg, typ and kid")
	}
	if sig, err := decode(parts[2]); err != nil || len(sig) != signatureSize {
		return h, refuse(BadSignature, "its signature is not %d bytes in base64url", signatureSize)
	}
	return h, nil
}

// sameMembers reports whether b, an object, has the members of names and no others.
func sameMembers(names map[string]json.RawMessage, b []byte) bool {
	var other map[string]json.RawMessage
	if json.Unmarshal(b, &other) != nil || len(other) != len(names) {
		return false
	}
	for name, v := range other {
		if !bytes.Equal(names[name], v) {
			return false
		}
	}
	return true
}

// decode reads base64url without padding, in its one spelling.
func decode(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("line break in base64url")
	}
	return base64.RawURLEncoding.Strict().DecodeString(s)
}

func clip(s string) string { return s[:min(len(s), 64)] }
