// Package terminal makes what hosts and devices wrote fit to be shown: a terminal obeys
// none of it, and hides none.
package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain replaces characters that could move the cursor, hide text or break a table. Node descriptions are written by the
// owner of the host.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Hidden reports what formats leave as it is, and a terminal obeys or does not show:
// control characters of the second set, direction marks and their like.
func Hidden(r rune) bool { return r > '~' && !unicode.IsPrint(r) }

// YAML writes hidden characters of a YAML document by their numbers. They are within double quotes, and are read as the
// original characters.
func YAML(text []byte) []byte {
	return escaped(text, func(out []byte, r rune) []byte {
		if r <= 0xFFFF {
			return fmt.Appendf(out, `\u%04x`, r)
		}
		return fmt.Appendf(out, `\U%08x`, r)
	})
}

// NewEncoder makes an encoder of JSON that writes hidden characters by their numbers, which are read as the original
// characters.
func NewEncoder(w io.Writer) *json.Encoder { return json.NewEncoder(jsonWriter{w}) }

// jsonWriter takes whole characters: an encoder writes a value at once.
type jsonWriter struct{ io.Writer }

func (w jsonWriter) Write(text []byte) (int, error) {
	_, err := w.Writer.Write(escaped(text, func(out []byte, r rune) []byte {
		if r <= 0xFFFF {
			return fmt.Appendf(out, `\u%04x`, r)
		}
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	}))
	if err != nil {
		return 0, err
	}
	return len(text), nil
}

func escaped(text []byte, number func(out []byte, r rune) []byte) []byte {
	if !bytes.ContainsFunc(text, Hidden) {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		if Hidden(r) {
			out = number(out, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}
