package qos

import (
	"strconv"
	"strings"
)

// items splits a list at commas.
func items(value string) (all []string) {
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}

// number reads one number.
func (p *parser) number(key, value string, least, most uint64) uint64 {
	n, err := strconv.ParseUint(value, 0, 64)
	if err != nil || n < least || n > most {
		p.wrong("%s %q: want a number %d to %d", key, short(value), least, most)
		return least
	}
	return n
}

// ranges reads a list of numbers and ranges, "7-9,11".
func (p *parser) ranges(value string, bits int) (all []Range) {
	for _, item := range items(value) {
		from, to, ok := strings.Cut(item, "-")
		if !ok {
			to = from
		}
		a, err := strconv.ParseUint(strings.TrimSpace(from), 0, bits)
		b, err2 := strconv.ParseUint(strings.TrimSpace(to), 0, bits)
		if err != nil || err2 != nil || a > b {
			p.wrong("%q: want a number of at most %d bits, or two with a minus, the lower first", short(item), bits)
			continue
		}
		all = append(all, Range{a, b})
	}
	if len(all) == 0 {
		p.wrong("%q: want at least one number", short(value))
	}
	return all
}

// pkeys reads ranges of P_Keys; the membership bit does not matter.
func (p *parser) pkeys(value string) []Range {
	all := p.ranges(value, 16)
	for i, r := range all {
		a, b := r.From&0x7FFF, r.To&0x7FFF
		if a > b {
			p.wrong("%q: without membership bits the range ends before it begins", short(value))
		}
		all[i] = Range{a, b}
	}
	return all
}
