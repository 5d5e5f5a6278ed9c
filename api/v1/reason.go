package v1

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ReasonHeader is the header of a request that says why it is sent, for the audit log. Its value is UTF-8 in percent-encoding
// (RFC 3986): characters of ASCII may stand for themselves, except for %.
const ReasonHeader = "Portcullis-Reason"

// MaxReason is how many characters a reason in ReasonHeader may have.
const MaxReason = 256

// MaxReasonHeader bounds the value of ReasonHeader in bytes: each character has 4 bytes at most, and each of them 3 when it is encoded.
const MaxReasonHeader = MaxReason * utf8.UTFMax * 3

// CheckReason returns the reason without the spaces around it. The error says why it is none: it has no character, more than
// MaxReason of them, or one that ReasonText refuses.
func CheckReason(text string) (string, error) {
	text = strings.Trim(text, " ")
	if text == "" {
		return "", errors.New("it is empty")
	}
	if n := utf8.RuneCountInString(text); n > MaxReason {
		return "", fmt.Errorf("it has %d characters: want at most %d", n, MaxReason)
	}
	if err := ReasonText(text); err != nil {
		return "", err
	}
	return text, nil
}

// maxMarks is how many marks may combine with one character: written languages have no more, and more cover other lines.
const maxMarks = 4

// ReasonText refuses a text that could look like another one, or like more than one line, where the audit log is shown: one
// with a control character, a character that changes the direction of text or is not seen, marks that are on no character or
// too many on one, or bytes that are not UTF-8.
func ReasonText(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("it is not UTF-8")
	}
	before, marks := ' ', 0
	for _, r := range text {
		switch {
		case r == emojiStyle && unicode.Is(unicode.So, before): // as keyboards write it
		case !unicode.IsPrint(r):
			return fmt.Errorf("it has the character %U, which cannot be printed", r)
		case unseen(r):
			return fmt.Errorf("it has the character %U, which is not seen", r)
		case !unicode.In(r, unicode.Mn, unicode.Me):
			marks = 0
		case before == ' ':
			return fmt.Errorf("it has the mark %U, which is on no character", r)
		default:
			if marks++; marks > maxMarks {
				return fmt.Errorf("it has more than %d marks on one character", maxMarks)
			}
		}
		before = r
	}
	return nil
}

// emojiStyle has the symbol before it be shown in color.
const emojiStyle = 0xfe0f

// unseen reports whether a character looks like nothing or like a space, though it counts as one that is printed.
func unseen(r rune) bool {
	return r == brailleBlank || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

const brailleBlank = 0x2800

// EncodeReason returns the value of ReasonHeader for a reason.
func EncodeReason(text string) string { return url.PathEscape(text) }

// DecodeReason returns the reason in a value of ReasonHeader.
func DecodeReason(value string) (string, error) {
	if len(value) > MaxReasonHeader {
		return "", fmt.Errorf("it has %d bytes: want at most %d", len(value), MaxReasonHeader)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errors.New("it has a byte that is no printable character of ASCII: write others in percent-encoding")
	}
	text, err := url.PathUnescape(value)
	if err != nil {
		return "", errors.New("its percent-encoding is broken: a % is written as %25")
	}
	return CheckReason(text)
}
