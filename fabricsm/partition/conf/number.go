package conf

import (
	"fmt"
	"strconv"
)

// number reads what strtoul does with base 0: decimal, 0x and hexadecimal, or 0
// and octal digits.
func number(s string, bits int) (uint64, error) {
	digits, base := s, 10
	switch {
	case len(s) > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'):
		digits, base = s[2:], 16
	case len(s) > 1 && s[0] == '0':
		digits, base = s[1:], 8
	}
	n, err := strconv.ParseUint(digits, base, bits)
	if err != nil {
		return 0, fmt.Errorf("%q: want a number of at most %d bits: decimal, 0x hexadecimal or 0 octal", short(s), bits)
	}
	return n, nil
}

// short cuts a quotation from a file.
func short(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
