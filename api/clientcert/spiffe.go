package clientcert

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds of SPIFFE IDs, in bytes (SPIFFE-ID, section 2.3).
const (
	MaxID          = 2048
	maxTrustDomain = 255
)

const scheme = "spiffe://"

// ID is a SPIFFE ID: spiffe://TRUST-DOMAIN and a path, which is empty or begins with a slash.
type ID struct{ TrustDomain, Path string }

// String returns the ID as ParseID reads it.
func (i ID) String() string { return scheme + i.TrustDomain + i.Path }

// ParseID reads a SPIFFE ID as its specification has it (SPIFFE-ID, sections 2.1 to 2.3), and nothing that only means the same: no
// capital letters in scheme or trust domain, no port, user, query, fragment or percent-encoding, no empty segment, "." or "..", and
// no slash at the end.
func ParseID(text string) (ID, error) {
	if len(text) > MaxID {
		return ID{}, fmt.Errorf("it has %d bytes, at most %d", len(text), MaxID)
	}
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok {
		return ID{}, errors.New("want " + scheme + "TRUST-DOMAIN/PATH")
	}
	domain, path := rest, ""
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		domain, path = rest[:slash], rest[slash:]
	}
	if err := checkTrustDomain(domain); err != nil {
		return ID{}, err
	}
	if path != "" {
		for segment := range strings.SplitSeq(path[1:], "/") {
			switch {
			case segment == "":
				return ID{}, errors.New("its path has an empty segment, or ends with a slash")
			case segment == "." || segment == "..":
				return ID{}, errors.New("its path has a segment of dots")
			case strings.ContainsFunc(segment, func(r rune) bool { return !(lower(r) || r >= 'A' && r <= 'Z' || r == '.' || r == '-' || r == '_') }):
				return ID{}, errors.New("its path has something else than letters, digits, dots, hyphens and underscores")
			}
		}
	}
	return ID{domain, path}, nil
}

// checkTrustDomain refuses what is no name of a trust domain.
func checkTrustDomain(name string) error {
	if name == "" || len(name) > maxTrustDomain || strings.ContainsFunc(name, func(r rune) bool { return !(lower(r) || r == '.' || r == '-' || r == '_') }) {
		return fmt.Errorf("trust domain %.64q: want 1 to %d small letters, digits, dots, hyphens and underscores", name, maxTrustDomain)
	}
	return nil
}

// lower reports a small letter or a digit.
func lower(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
