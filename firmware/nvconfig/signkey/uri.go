package signkey

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

const uriScheme = "pkcs11:"

// URI names a private key in a PKCS#11 token (RFC 7512).
type URI struct {
	Token string // label of the token
	ID    []byte // CKA_ID of the private key and of its public half
	// Module is the vendor's library, an absolute path.
	Module string
	// PINFile holds the PIN of the user, in one line.
	PINFile string
}

// ParseURI reads pkcs11:token=LABEL;id=%01%02?module-path=/FILE&pin-source=/FILE.
// All four must be there. Attributes that would be ignored are refused, and so is
// pin-value: a command line is no place for a PIN. object is refused too: tools
// have been seen to sign with another key when no label fits.
func ParseURI(s string) (URI, error) {
	u, err := parseURI(s)
	if err != nil {
		return URI{}, fmt.Errorf("PKCS#11 URI: %w; want pkcs11:token=LABEL;id=%%01?module-path=/FILE&pin-source=/FILE", err)
	}
	return u, nil
}

func parseURI(s string) (u URI, err error) {
	rest, ok := strings.CutPrefix(s, uriScheme)
	if !ok || len(s) > 4096 {
		return URI{}, errors.New("it does not begin with pkcs11:, or is too long")
	}
	path, query, _ := strings.Cut(rest, "?")
	seen := make(map[string]bool)
	take := func(text, separator string, set func(name, value string) error) error {
		for part := range strings.SplitSeq(text, separator) {
			name, raw, ok := strings.Cut(part, "=")
			if !ok || seen[name] {
				return fmt.Errorf("%q: want NAME=VALUE, each once", clip(part))
			}
			seen[name] = true
			value, err := url.PathUnescape(raw)
			if err != nil || value == "" || strings.ContainsAny(value, "\x00\n") && name != "id" {
				return fmt.Errorf("%s: not a value", clip(name))
			}
			if err := set(name, value); err != nil {
				return err
			}
		}
		return nil
	}
	if err := take(path, ";", u.setPath); err != nil {
		return URI{}, err
	}
	if err := take(query, "&", u.setQuery); err != nil {
		return URI{}, err
	}
	if u.Token == "" || u.ID == nil {
		return URI{}, errors.New("token or id is missing")
	}
	if u.Module == "" || u.PINFile == "" {
		return URI{}, errors.New("module-path or pin-source is missing")
	}
	return u, nil
}

func (u *URI) setPath(name, value string) error {
	switch name {
	case "token":
		u.Token = value
	case "id":
		u.ID = []byte(value)
	case "type":
		if value != "private" {
			return fmt.Errorf("type %q is not a private key", clip(value))
		}
	default:
		return fmt.Errorf("attribute %q is not supported", clip(name))
	}
	return nil
}

func (u *URI) setQuery(name, value string) error {
	switch name {
	case "module-path":
		u.Module = value
	case "pin-source":
		u.PINFile = strings.TrimPrefix(value, "file:")
	default:
		return fmt.Errorf("attribute %q is not supported", clip(name))
	}
	if (u.Module != "" && !filepath.IsAbs(u.Module)) || (u.PINFile != "" && !filepath.IsAbs(u.PINFile)) {
		return fmt.Errorf("%s: want an absolute path", name)
	}
	return nil
}

// String returns the URI, which contains no secret.
func (u URI) String() string {
	id := ""
	for _, b := range u.ID {
		id += "%" + hex.EncodeToString([]byte{b})
	}
	return uriScheme + "token=" + escape(u.Token) + ";id=" + id + "?module-path=" + escape(u.Module) + "&pin-source=" + escape(u.PINFile)
}

// escape leaves letters, digits, slashes and -_.~ as they are.
func escape(s string) string {
	return strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(s))
}
