package conf

import (
	"errors"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// MaxSize is the size of the largest file that Parse reads, in bytes. Forty
// thousand hosts in ten partitions each need half of it.
const MaxSize = 16 << 20

// maxAlike bounds the members that room is made for before they are read.
const maxAlike = 1024

// maxProblems bounds the problems reported for one file.
const maxProblems = 50

// ErrTooLarge means that a file is larger than MaxSize.
var ErrTooLarge = errors.New("too large")

// Parse reads a file. All problems, at most 50, are reported together, each
// with its place as name:line; then there are no rules.
func Parse(name string, data []byte) (*Rules, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("partition file %s: %w: %d bytes, the most is %d", name, ErrTooLarge, len(data), MaxSize)
	}
	p := parser{file: name, seen: make(map[identity]Multicast)}
	for text := range strings.Lines(string(data)) {
		p.line++
		text, _, _ = strings.Cut(text, "#")
		p.readLine(text)
	}
	r := p.rules()
	if len(p.problems) > 0 {
		return nil, errors.Join(p.problems...)
	}
	return r, nil
}

// parser reads a file line by line.
type parser struct {
	file     string
	line     int
	problems []error
	notices  []string
	inside   bool // after the colon of a definition
	defs     []definition
	seen     map[identity]Multicast
	members  int  // that were read so far
	adapting bool // rules that cannot be applied are collected, and are no problems
	refused  []Refusal
}

// definition is one definition as it was written.
type definition struct {
	line   int
	name   string
	pkey   ib.PKey // base; 0: not given
	member membership
	ipoib  bool
	flags  groupFlags
	named  []named
	indx0  bool
	ports  []entry
}

// refuse records that a rule cannot be applied as written. r has all of it but the reason.
func (p *parser) refuse(r Refusal, format string, args ...any) {
	if !p.adapting {
		p.wrong(r.Line, format, args...)
		return
	}
	r.Why = fmt.Sprintf(format, args...)
	p.refused = append(p.refused, r)
}

// entry is one member of a definition.
type entry struct {
	line int
	nth  int // among the members of the file
	text string
	who  Who
	as   membership
}

func (p *parser) wrong(line int, format string, args ...any) {
	switch n := len(p.problems); {
	case n == maxProblems:
		p.problems = append(p.problems, fmt.Errorf("%s:%d: there are more problems in this file", p.file, line))
	case n < maxProblems:
		p.problems = append(p.problems, fmt.Errorf("%s:%d: %w", p.file, line, fmt.Errorf(format, args...)))
	}
}

func (p *parser) notice(line int, format string, args ...any) {
	p.notices = append(p.notices, fmt.Sprintf("%s:%d: %s", p.file, line, fmt.Sprintf(format, args...)))
}

// readLine reads one line without its comment.
func (p *parser) readLine(text string) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if !p.inside {
			header, rest, ok := strings.Cut(text, ":")
			if !ok || strings.Contains(header, ";") {
				p.wrong(p.line, "%q: want a partition and a colon, all on one line", short(text))
				return
			}
			p.header(header)
			p.inside, text = true, rest
			continue
		}
		part, rest, end := strings.Cut(text, ";")
		p.properties(strings.TrimSpace(part))
		p.inside, text = !end, rest
	}
}

// header reads [name][=pkey]{,flag}.
func (p *parser) header(text string) {
	d := definition{line: p.line}
	first, flags, more := strings.Cut(text, ",")
	name, key, hasKey := strings.Cut(first, "=")
	name, key = strings.TrimSpace(name), strings.TrimSpace(key)
	if !hasKey && name != "" && '0' <= name[0] && name[0] <= '9' {
		name, key, hasKey = "", name, true
	}
	d.name = name
	if hasKey {
		n, err := number(key, 16)
		if d.pkey = ib.PKey(n).Base(); err != nil || d.pkey == 0 {
			p.wrong(p.line, "P_Key %q: want a number of 16 bits whose lower 15 are not all zero", short(key))
		}
	}
	if more {
		for flag := range strings.SplitSeq(flags, ",") {
			p.flag(&d, strings.TrimSpace(flag))
		}
	}
	if n := len(p.defs); n > 0 { // partitions are often alike
		d.ports = make([]entry, 0, min(len(p.defs[n-1].ports), maxAlike))
	}
	p.defs = append(p.defs, d)
}

func (p *parser) flag(d *definition, text string) {
	word, value, hasValue := strings.Cut(text, "=")
	word, value = strings.TrimSpace(word), strings.TrimSpace(value)
	switch {
	case word == "ipoib" && !hasValue:
		d.ipoib = true
		return
	case word == "indx0" && !hasValue:
		d.indx0 = true
		return
	case word == "defmember" && hasValue:
		var err error
		if d.member, err = membershipOf(value); err != nil {
			p.wrong(p.line, "%w", err)
		}
		return
	case hasValue:
		if known, err := d.flags.set(word, value); known {
			if err != nil {
				p.wrong(p.line, "%w", err)
			}
			return
		}
	}
	p.wrong(p.line, "flag %q is not known, or lacks its value", short(text))
}

// properties reads what one line says of the members or groups of the last
// definition.
func (p *parser) properties(text string) {
	if word, value, ok := strings.Cut(text, "="); ok && strings.TrimSpace(word) == "mgid" {
		p.group(value)
		return
	}
	d := &p.defs[len(p.defs)-1]
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			p.member(d, item)
		}
	}
}

func (p *parser) member(d *definition, text string) {
	e := entry{line: p.line, nth: p.members, text: short(text), as: d.member}
	p.members++
	word, as, hasAs := strings.Cut(text, "=")
	word, as = strings.TrimSpace(word), strings.TrimSpace(as)
	if hasAs {
		var err error
		if e.as, err = membershipOf(as); err != nil {
			p.wrong(p.line, "%w", err)
			return
		}
	}
	group, known := groupOf(word)
	e.who.Group = group
	if !known {
		n, err := number(word, 64)
		if e.who.GUID = ib.GUID(n); err != nil || !e.who.GUID.Valid() {
			p.wrong(p.line, "member %q: want a port GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF or NONE", short(word))
			return
		}
	}
	d.ports = append(d.ports, e)
}
