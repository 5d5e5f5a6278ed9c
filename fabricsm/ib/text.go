package ib

import (
	"errors"
	"strconv"
	"strings"
)

var (
	errNeedHex  = errors.New("want 0x and hexadecimal digits")
	errRange    = errors.New("value out of range")
	errNeedNum  = errors.New("want a decimal number, or 0x and hexadecimal digits")
	errNoSpaces = errors.New("want no sign, space or underscore")
)

// parseHex reads 0x followed by at least one hexadecimal digit, and no more
// than the bits take.
func parseHex(s string, bits int) (uint64, error) {
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok || digits == "" {
		return 0, errNeedHex
	}
	v, err := strconv.ParseUint(digits, 16, bits)
	if err == nil && len(digits) > bits/4 {
		err = strconv.ErrRange
	}
	return v, plainError(err, errNeedHex)
}

// parseNumber reads a decimal number or 0x and hexadecimal digits.
func parseNumber(s string, bits int) (uint64, error) {
	if strings.HasPrefix(s, "0x") {
		return parseHex(s, bits)
	}
	if s == "" || strings.ContainsAny(s, "+-_ ") {
		return 0, errNoSpaces
	}
	v, err := strconv.ParseUint(s, 10, bits)
	return v, plainError(err, errNeedNum)
}

func plainError(err, syntax error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, strconv.ErrRange):
		return errRange
	default:
		return syntax
	}
}
