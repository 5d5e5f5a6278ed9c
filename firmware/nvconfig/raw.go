package nvconfig

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// RawFingerprint is the first line of the text form.
const RawFingerprint = "MLNX_RAW_TLV_FILE"

// FormatRaw returns items as mstconfig's set_raw takes them: a line of dwords each.
func FormatRaw(items []Item) string {
	var out strings.Builder
	out.WriteString(RawFingerprint)
	for _, i := range items {
		out.WriteString("\n")
		for b := i.Append(nil); len(b) >= 4; b = b[4:] {
			fmt.Fprintf(&out, "0x%08x ", binary.BigEndian.Uint32(b))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// ParseRaw reads what FormatRaw and mstconfig write. Empty lines mean nothing. It
// refuses items that Item.Check refuses.
func ParseRaw(text string) ([]Item, error) {
	if len(text) > 4*MaxFile {
		return nil, fmt.Errorf("raw settings: %d bytes, more than %d", len(text), 4*MaxFile)
	}
	first, rest, _ := strings.Cut(text, "\n")
	if first != RawFingerprint {
		return nil, errors.New("raw settings: the first line is not " + RawFingerprint)
	}
	var items []Item
	number := 1
	for line := range strings.SplitSeq(rest, "\n") {
		number++
		if strings.Trim(line, " ") == "" {
			continue
		}
		i, err := parseRawLine(line)
		if err != nil {
			return nil, fmt.Errorf("raw settings, line %d: %w", number, err)
		}
		items = append(items, i)
	}
	return items, nil
}

func parseRawLine(line string) (Item, error) {
	var b []byte
	for word := range strings.FieldsSeq(line) {
		digits, ok := strings.CutPrefix(word, "0x")
		v, err := strconv.ParseUint(digits, 16, 32)
		if !ok || err != nil || len(digits) != 8 {
			return Item{}, fmt.Errorf("%q: want 0x and 8 hexadecimal digits", clip(word))
		}
		if b = binary.BigEndian.AppendUint32(b, uint32(v)); len(b) > HeaderSize+MaxData {
			return Item{}, fmt.Errorf("more than %d dwords", (HeaderSize+MaxData)/4)
		}
	}
	i, rest, err := ParseItem(b)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%v: %d dwords more than its header says", i.Address, len(rest)/4)
	}
	return i, err
}
