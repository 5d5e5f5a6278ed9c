package mad

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// maxDump bounds what ParseHex makes of its input: a "*" line of hexdump may
// stand for any number of bytes.
const maxDump = 64 << 10

// ParseHex reads a hex dump in the common forms: plain digits with spaces, commas, colons or 0x in between, or lines with
// offsets and an ASCII column as written by xxd, hexdump -C, od -A x -t x1, tcpdump -XX and tshark -x. Empty lines and
// lines beginning with # are skipped. Errors name line and column, counted from 1 in bytes.
func ParseHex(text []byte) ([]byte, error) {
	p := &hexParser{}
	for s := range strings.Lines(string(text)) {
		p.line++
		s = strings.TrimRight(s, "\r\n")
		if err := p.parseLine(s); err != nil {
			return nil, fmt.Errorf("hex dump line %d%w", p.line, err)
		}
		if len(p.out) > maxDump {
			return nil, fmt.Errorf("hex dump line %d: more than %d bytes", p.line, maxDump)
		}
	}
	if p.repeat {
		return nil, fmt.Errorf("hex dump line %d: the dump ends with *, the line with the final offset is missing", p.line)
	}
	if len(p.out) == 0 {
		return nil, fmt.Errorf("hex dump: no hexadecimal digits")
	}
	return p.out, nil
}

type hexParser struct {
	out     []byte
	line    int
	offsets bool // lines before began with an offset
	repeat  bool // a * line was read: the row before repeats up to the next offset
}

// rowBytes is what hexdump -C and od have in a row, and repeat by *.
const rowBytes = 16

func (p *hexParser) parseLine(s string) error {
	trimmed := strings.TrimSpace(s)
	switch {
	case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		return nil
	case trimmed == "*":
		if len(p.out) < rowBytes {
			return fmt.Errorf(": * before a full row of %d bytes", rowBytes)
		}
		p.repeat = true
		return nil
	}
	from, kind, err := p.offset(s)
	if err != nil {
		return err
	}
	if kind == offsetNone && p.repeat {
		return fmt.Errorf(": want an offset after *")
	}
	p.offsets = p.offsets || kind != offsetNone
	return p.digits(s[:hexEnd(s, from, kind)], from)
}

// offsetKind is how a line begins.
type offsetKind uint8

const (
	offsetNone  offsetKind = iota // with data
	offsetPlain                   // 00000010, as hexdump, od and tshark write
	offsetColon                   // 00000010:, as xxd and tcpdump write
)

// offset reads and checks the offset that s may begin with, and returns the index after it.
func (p *hexParser) offset(s string) (from int, kind offsetKind, err error) {
	start := len(s) - len(strings.TrimLeft(s, " \t"))
	end := start + strings.IndexAny(s[start:]+" ", " \t")
	word := s[start:end]
	digits, colon := strings.CutSuffix(word, ":")
	digits = strings.TrimPrefix(digits, "0x")
	rest := strings.TrimLeft(s[end:], " \t")
	if !colon && !p.looksLikeOffset(digits, rest) {
		return start, offsetNone, nil
	}
	at, perr := strconv.ParseUint(digits, 16, 32)
	if perr != nil {
		return 0, offsetNone, fmt.Errorf(" column %d: offset %q is not hexadecimal", start+1, word)
	}
	if err := p.seek(int(at)); err != nil {
		return 0, offsetNone, fmt.Errorf(" column %d: %w", start+1, err)
	}
	if colon {
		return end, offsetColon, nil
	}
	return end, offsetPlain, nil
}

// looksLikeOffset reports whether a word without a colon is an offset and not data. It is an offset if it is longer than
// the pairs of digits that follow it, or alone and equal to the present place in the dump.
func (p *hexParser) looksLikeOffset(digits, rest string) bool {
	if len(digits) < 4 {
		return false
	}
	if rest == "" {
		at, err := strconv.ParseUint(digits, 16, 32)
		return err == nil && p.offsets && (p.repeat || int(at) == len(p.out))
	}
	next, _, _ := strings.Cut(rest, " ")
	return len(next) == 2
}

// seek demands that the dump goes on at offset at, after filling in the rows
// that a * stands for.
func (p *hexParser) seek(at int) error {
	if p.repeat {
		p.repeat = false
		if at < len(p.out) || at > maxDump {
			return fmt.Errorf("offset 0x%x after *, want 0x%x to 0x%x", at, len(p.out), maxDump)
		}
		row := p.out[len(p.out)-rowBytes:]
		for len(p.out) < at {
			p.out = append(p.out, row[:min(rowBytes, at-len(p.out))]...)
		}
	}
	if at != len(p.out) {
		return fmt.Errorf("offset 0x%x, want 0x%x: a line is missing or from another dump", at, len(p.out))
	}
	return nil
}

// hexEnd returns where the digits of a line end and its ASCII column begins: at two spaces after an offset with a colon.
// After a plain offset it is at the bar of hexdump -C, which has two spaces in the middle of a row, or at three spaces.
func hexEnd(s string, from int, kind offsetKind) int {
	if kind == offsetNone {
		return len(s)
	}
	gap := "  "
	if kind == offsetPlain {
		if bar := strings.Index(s[from:], "|"); bar >= 0 && strings.HasSuffix(s, "|") && onlyHex(s[from:from+bar]) {
			return from + bar
		}
		gap = "   "
	}
	first := len(s) - len(strings.TrimLeft(s[from:], " \t"))
	if i := strings.Index(s[first:], gap); i >= 0 {
		return first + i
	}
	return len(s)
}

func onlyHex(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.Is(unicode.ASCII_Hex_Digit, r) && r != ' ' && r != '\t' }) < 0
}

// digits appends the bytes that s spells from index from on.
func (p *hexParser) digits(s string, from int) error {
	for i := from; i < len(s); {
		if strings.IndexByte(" \t,:", s[i]) >= 0 {
			i++
			continue
		}
		end := i + strings.IndexAny(s[i:]+" ", " \t,:")
		word := strings.TrimPrefix(s[i:end], "0x")
		b, err := hex.DecodeString(word)
		switch {
		case word == "" || !onlyHex(word):
			return fmt.Errorf(" column %d: %q is not hexadecimal", i+1, clip(s[i:end]))
		case err != nil:
			return fmt.Errorf(" column %d: %q has an odd number of digits", i+1, clip(s[i:end]))
		}
		p.out = append(p.out, b...)
		i = end
	}
	return nil
}

// clip keeps errors readable when a whole file is one word.
func clip(s string) string {
	if len(s) <= 32 {
		return s
	}
	return s[:32] + "..."
}
