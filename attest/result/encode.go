package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Encode returns the canonical bytes of c: claims in the order of Claims, submods by label, no white space, nothing escaped
// that need not be.
func (c *Claims) Encode() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("attestation result of %s: %w", c.Subject, err)
	}
	b := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if len(b) > MaxClaims {
		return nil, fmt.Errorf("attestation result of %s: %d bytes, at most %d are signed", c.Subject, len(b), MaxClaims)
	}
	return b, nil
}

// Decode reads claims whose signature was verified. Claims that it does not know are
// passed over, as EAR wants. A key that stands twice, be it in other letter case, is
// refused: two readers might each take another.
func Decode(b []byte) (*Claims, error) {
	if len(b) > MaxClaims {
		return nil, fmt.Errorf("attestation result: %d bytes of claims, at most %d are read", len(b), MaxClaims)
	}
	if err := checkKeys(b); err != nil {
		return nil, fmt.Errorf("attestation result: %w", err)
	}
	c := new(Claims)
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("attestation result: %w", err)
	}
	return c, nil
}

const maxDepth = 8

// checkKeys wants one object, nested within bounds, each key of an object once.
func checkKeys(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	t, err := dec.Token()
	if err != nil {
		return errors.New("the claims are not JSON")
	}
	if t != json.Delim('{') {
		return errors.New("the claims are not a JSON object")
	}
	if err := walk(dec, '{', 1); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the claims")
	}
	return nil
}

// walk reads to the end of an object or list that was opened.
func walk(dec *json.Decoder, opened json.Delim, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("claims nested deeper than %d", maxDepth)
	}
	keys := map[string]bool{}
	for dec.More() {
		if opened == '{' {
			t, err := dec.Token()
			if err != nil {
				return err
			}
			name, _ := t.(string)
			if folded := fold(name); keys[folded] {
				return fmt.Errorf("claim %q occurs twice", clip(name))
			} else {
				keys[folded] = true
			}
		}
		t, err := dec.Token()
		if err != nil {
			return err
		}
		if d, ok := t.(json.Delim); ok {
			if err := walk(dec, d, depth+1); err != nil {
				return err
			}
		}
	}
	_, err := dec.Token()
	return err
}

// fold returns the same form for names that encoding/json treats as equal: beside the cases of ASCII it knows the long s
// and the sign for kelvin.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

func clip(s string) string { return s[:min(len(s), 64)] }
