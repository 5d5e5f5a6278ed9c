package mad

import (
	"fmt"
	"strings"
)

// Status is the status word of a MAD (IBTA volume 1, 13.4.7). The low byte is
// common to all classes, the high byte is class specific. Zero means success.
type Status uint16

// Status codes. Busy and Redirect are bits, the others are values of the
// three-bit field under statusCode.
const (
	StatusOK                    Status = 0x0000
	StatusBusy                  Status = 0x0001 // discarded, try again
	StatusRedirect              Status = 0x0002
	StatusUnsupportedVersion    Status = 0x0004
	StatusUnsupportedMethod     Status = 0x0008
	StatusUnsupportedMethodAttr Status = 0x000C
	StatusInvalidField          Status = 0x001C // a field of attribute or modifier is out of range

	statusCode  Status = 0x001C
	statusClass Status = 0xFF00
)

// Code is the three-bit error code without the busy, redirect and class
// specific bits: StatusOK, one of the Unsupported values, or
// StatusInvalidField.
func (s Status) Code() Status { return s & statusCode }

// IsBusy reports whether the request was discarded and may be repeated.
func (s Status) IsBusy() bool { return s&StatusBusy != 0 }

// ClassSpecific is the high byte.
func (s Status) ClassSpecific() uint8 { return uint8(s >> 8) }

// String describes every part of the word that is set, or says "ok".
func (s Status) String() string {
	if s == StatusOK {
		return "ok"
	}
	var words []string
	if s.IsBusy() {
		words = append(words, "busy")
	}
	if s&StatusRedirect != 0 {
		words = append(words, "redirection required")
	}
	if w := s.Code().codeWord(); w != "" {
		words = append(words, w)
	}
	if s&statusClass != 0 {
		words = append(words, fmt.Sprintf("class specific 0x%02x", s.ClassSpecific()))
	}
	if rest := s &^ (StatusBusy | StatusRedirect | statusCode | statusClass); rest != 0 {
		words = append(words, fmt.Sprintf("reserved bits 0x%02x", uint16(rest)))
	}
	return strings.Join(words, ", ")
}

// StatusWords describes the status as String does, with the words that the class has
// for its part of it.
func (h Header) StatusWords() string {
	if h.Class != ClassSubnAdm {
		return h.Status.String()
	}
	word := ""
	switch h.Status & statusClass {
	case StatusNoResources:
		word = "ERR_NO_RESOURCES"
	case StatusInvalidRequest:
		word = "ERR_REQ_INVALID"
	case StatusNoRecords:
		word = "ERR_NO_RECORDS"
	case StatusTooManyRecords:
		word = "ERR_TOO_MANY_RECORDS"
	case StatusInvalidGID:
		word = "ERR_REQ_INVALID_GID"
	case StatusInsufficientComponents:
		word = "ERR_REQ_INSUFFICIENT_COMPONENTS"
	case StatusDenied:
		word = "ERR_REQ_DENIED"
	case StatusPrioritySuggested:
		word = "ERR_REQ_PRIORITY_SUGGESTED"
	default:
		return h.Status.String()
	}
	if rest := h.Status &^ statusClass; rest != StatusOK {
		return rest.String() + ", " + word
	}
	return word
}

func (s Status) codeWord() string {
	switch s {
	case StatusOK:
		return ""
	case StatusUnsupportedVersion:
		return "unsupported base or class version"
	case StatusUnsupportedMethod:
		return "unsupported method"
	case StatusUnsupportedMethodAttr:
		return "unsupported method and attribute combination"
	case StatusInvalidField:
		return "invalid attribute or modifier field"
	default:
		return fmt.Sprintf("reserved code 0x%02x", uint16(s))
	}
}
