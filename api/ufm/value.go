package ufm

import (
	"fmt"
	"strconv"
	"strings"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Bounds of what a request names.
const (
	maxText  = 64   // of a P_Key or GUID
	maxGUIDs = 4096 // of one request
	maxHosts = 512  // of one request
)

// codeInvalid is the code of what makes no sense.
const codeInvalid = v1.CodeInvalid

func invalid(format string, args ...any) error {
	return refusal.New(refusal.Invalid, codeInvalid, "docs/operate/ufm.md has the forms of requests", format, args...)
}

// parsePKey reads a P_Key of 15 bits: hexadecimal digits after 0x, or a decimal number.
func parsePKey(text string) (ib.PKey, error) {
	if len(text) > maxText {
		return 0, invalid("a P_Key of %d characters: want 0x1 to 0x7ffe", len(text))
	}
	digits, base := text, 10
	if rest, hex := strings.CutPrefix(strings.ToLower(text), "0x"); hex {
		digits, base = rest, 16
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil || n > uint64(ib.DefaultPKeyLimited) {
		return 0, invalid("P_Key %q: want 0x1 to 0x7ffe", text)
	}
	return ib.PKey(n), nil
}

// showPKey is how clients expect a P_Key: without leading zeros.
func showPKey(k ib.PKey) string { return fmt.Sprintf("0x%x", uint16(k.Base())) }

// parseGUID reads a GUID: 16 hexadecimal digits in any case, with or without 0x.
func parseGUID(text string) (ib.GUID, error) {
	digits := strings.TrimPrefix(strings.ToLower(text), "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	g := ib.GUID(n)
	if len(text) > maxText || len(digits) != 16 || err != nil || !g.Valid() {
		return 0, invalid("GUID %q: want 16 hexadecimal digits", refusal.Clip(text))
	}
	return g, nil
}

// showGUID is how clients expect a GUID: digits alone, between which some of them put colons.
func showGUID(g ib.GUID) string { return fmt.Sprintf("%016x", uint64(g)) }

// parseGUIDs reads the GUIDs of a request, each once.
func parseGUIDs(texts []string) ([]ib.GUID, error) {
	if len(texts) > maxGUIDs {
		return nil, invalid("%d GUIDs: want at most %d in one request", len(texts), maxGUIDs)
	}
	seen := make(map[ib.GUID]bool, len(texts))
	out := make([]ib.GUID, 0, len(texts))
	for _, text := range texts {
		g, err := parseGUID(text)
		if err != nil {
			return nil, err
		}
		if !seen[g] {
			seen[g] = true
			out = append(out, g)
		}
	}
	return out, nil
}

// isTrue reads a flag of a query, which clients in Python write as True.
func isTrue(text string) bool { return strings.EqualFold(text, "true") || text == "1" }

// split returns the parts of a list in a path.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}
