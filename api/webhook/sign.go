package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
)

// Headers of a request, by the specification Standard Webhooks.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Bounds of a secret in bytes, by the same specification.
const (
	minSecret = 24
	maxSecret = 64
)

// secretPrefix begins secrets, so that one that got into a file by mistake is found.
const secretPrefix = "whsec_"

// Secret is what requests to a destination are signed with: the bytes themselves. It cannot be printed.
type Secret struct{ ib.SecretText }

// ParseSecret reads a secret: "whsec_" and 24 to 64 bytes in base64.
func ParseSecret(text string) (Secret, error) {
	rest, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(rest)
	if !ok || err != nil || strings.ContainsAny(rest, "\r\n") || len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fmt.Errorf("want %s and %d to %d bytes in base64, as of: echo %s$(openssl rand -base64 32)", secretPrefix, minSecret, maxSecret, secretPrefix)
	}
	return Secret{ib.NewSecretText(string(key))}, nil
}

// Sign returns the signature of a request with an id and a body that is sent at a time: "v1," and the HMAC-SHA-256 of
// "ID.SECONDS.BODY" in base64.
func (s Secret) Sign(id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(s.Reveal()))
	mac.Write([]byte(id + "." + seconds(at) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
