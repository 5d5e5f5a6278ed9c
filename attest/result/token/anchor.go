package token

import (
	"crypto/ecdsa"
	"encoding/base64"
	"fmt"
	"strings"
)

// AnchorType is the typ of the signature of an anchor of the audit log. A result has another one, so that neither is
// ever taken for the other.
const AnchorType = "portcullis-anchor"

// SignAnchor signs content and returns a JWS without it (RFC 7515, appendix F).
func SignAnchor(content []byte, kid string, key *ecdsa.PrivateKey) (string, error) {
	text, err := sign(AnchorType, content, kid, key)
	if err != nil {
		return "", fmt.Errorf("sign an anchor of the audit log: %w", err)
	}
	parts := strings.Split(text, ".")
	return parts[0] + ".." + parts[2], nil
}

// VerifyAnchor returns which of the keys signed content. Every refusal is an *Error.
func VerifyAnchor(content []byte, detached string, keys *Keys) (kid string, err error) {
	head, signature, found := strings.Cut(detached, "..")
	if !found {
		return "", refuse(BadForm, "not a signature with detached content")
	}
	_, kid, err = verify(AnchorType, head+"."+base64.RawURLEncoding.EncodeToString(content)+"."+signature, keys)
	return kid, err
}
