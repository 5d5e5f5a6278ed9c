// Package opensmconf reads the configuration files of OpenSM and of UFM whose lines have a name and a value, opensm.conf
// and gv.cfg. It reports each setting with its line, and knows none of them.
//
// The grammar is that of OpenSM's and UFM's manuals. What OpenSM would cut or skip without a word is an error here. An error
// names the place and never shows the line, which may hold a key.
package opensmconf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxSize is the size of a file at most, in bytes.
	MaxSize = 1 << 20
	// maxLine is what OpenSM reads of one line, in bytes.
	maxLine = 1022
	// maxSettings bounds the settings of one file.
	maxSettings = 10_000
	// maxProblems bounds the problems reported for one file.
	maxProblems = 50
)

// ErrTooLarge means that a file is larger than MaxSize.
var ErrTooLarge = errors.New("too large")

// Null is the value of a setting that is not set, as OpenSM writes it.
const Null = "(null)"

// Setting is one line of a file.
type Setting struct {
	Section string // of gv.cfg; empty in opensm.conf
	Name    string
	Value   string // without quotes and comment; may be empty
	Line    int    // counts from 1
}

// Parse reads an opensm.conf: a name, blanks and a value on each line, comments after #, and quotes around a value left
// out. Settings are in the order of the file, and a name may occur again. All problems, at most 50, are reported
// together, each with its place as name:line; then there are no settings. The file is at most MaxSize bytes.
func Parse(name string, data []byte) ([]Setting, error) {
	return read(name, data, func(text string) (Setting, error) {
		text, _, _ = strings.Cut(text, "#")
		text = strings.TrimSpace(text)
		end := strings.IndexAny(text, " \t")
		if end < 0 {
			end = len(text)
		}
		return Setting{Name: text[:end], Value: unquoted(text[end:])}, nil
	})
}

// ParseSections reads a gv.cfg: sections in brackets, a name, an equals sign and a value on each line, comments after # or ;
// at the beginning of a line. The rest is as in Parse. A setting before the first section is a problem.
func ParseSections(name string, data []byte) ([]Setting, error) {
	section := ""
	return read(name, data, func(text string) (Setting, error) {
		text = strings.TrimSpace(text)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
			return Setting{}, nil
		case text[0] == '[':
			head, rest, ok := strings.Cut(text[1:], "]")
			if section = strings.TrimSpace(head); !ok || section == "" || strings.TrimSpace(rest) != "" {
				return Setting{}, errors.New("want a section as [NAME], alone on its line")
			}
			return Setting{}, nil
		}
		key, value, ok := strings.Cut(text, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return Setting{}, errors.New("want a name, an equals sign and a value")
		}
		if section == "" {
			return Setting{}, errors.New("this setting is in no section; want [NAME] on a line before it")
		}
		return Setting{Section: section, Name: key, Value: unquoted(value)}, nil
	})
}

// read calls one with the text of each line, which returns its setting; one without a name is none.
func read(name string, data []byte, one func(text string) (Setting, error)) ([]Setting, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("%s: %w: %d bytes, the most is %d", name, ErrTooLarge, len(data), MaxSize)
	}
	var out []Setting
	var problems []error
	line := 0
	for text := range strings.Lines(strings.TrimPrefix(string(data), "\uFEFF")) {
		line++
		text = strings.TrimRight(text, "\r\n")
		err := legal(text)
		if err == nil {
			var s Setting
			if s, err = one(text); err == nil && s.Name != "" {
				if s.Line = line; len(out) == maxSettings {
					err = fmt.Errorf("more than %d settings", maxSettings)
				} else {
					out = append(out, s)
				}
			}
		}
		if err != nil {
			if problems = append(problems, fmt.Errorf("%s:%d: %w", name, line, err)); len(problems) == maxProblems {
				break
			}
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return out, nil
}

// legal reports what no line may have.
func legal(text string) error {
	if len(text) > maxLine {
		return fmt.Errorf("%d bytes in one line; OpenSM reads %d of it and takes the rest for another line", len(text), maxLine)
	}
	if !utf8.ValidString(text) {
		return errors.New("a byte that is no UTF-8 text")
	}
	for _, r := range text {
		if r < ' ' && r != '\t' || r == 0x7F {
			return errors.New("a control character")
		}
	}
	return nil
}

// unquoted returns a value without blanks and without one pair of quotes around it.
func unquoted(s string) string {
	s = strings.TrimSpace(s)
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

// IsNull reports whether a value says that nothing is set.
func IsNull(value string) bool { return value == "" || strings.EqualFold(value, Null) }

// Number reads a number of at most the given bits as OpenSM does: decimal, hexadecimal after 0x, octal after 0. The error
// does not show the value.
func Number(value string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(value, 0, bits)
	if err != nil || strings.ContainsAny(value, "_bBoO") && !isHex(value) || strings.Contains(value, "_") {
		return 0, fmt.Errorf("want a number of at most %d bits: decimal, 0x and hexadecimal digits, or 0 and octal ones", bits)
	}
	return n, nil
}

func isHex(s string) bool { return strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") }

// Truth reads a truth value as OpenSM does: TRUE, and anything else is false. plain reports whether the value is TRUE or
// FALSE, as it is to be written.
func Truth(value string) (v, plain bool) { return value == "TRUE", value == "TRUE" || value == "FALSE" }
