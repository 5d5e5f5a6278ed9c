package attest

import (
	"encoding/hex"
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
)

// problems collects what is wrong with a statement.
type problems []error

func (p *problems) add(err error) { *p = append(*p, fmt.Errorf("statement: %w", err)) }

func (p *problems) when(bad bool, format string, args ...any) {
	if bad {
		p.add(fmt.Errorf(format, args...))
	}
}

// text wants printable ASCII: nothing that JSON could write in two ways or
// that could confuse a terminal.
func (p *problems) text(name, v string) {
	p.when(len(v) > maxText, "%s: %d bytes, at most %d", name, len(v), maxText)
	for i := range min(len(v), maxText) {
		if v[i] < 0x20 || v[i] > 0x7e {
			p.when(true, "%s: byte 0x%02x at %d is not printable ASCII", name, v[i], i)
			return
		}
	}
}

// digest wants hex SHA-256, or nothing.
func (p *problems) digest(name, v string) {
	p.when(v != "" && !hexDigest.MatchString(v), "%s %q: want 64 lower-case hexadecimal digits", name, clip(v))
}

// hex wants whole bytes in lower-case hex, at most limit of them.
func (p *problems) hex(name, v string, limit int) {
	b, err := hex.DecodeString(v[:min(len(v), 2*limit+2)])
	p.when(err != nil || len(b) > limit || hex.EncodeToString(b) != v, "%s %q: want at most %d bytes in lower-case hexadecimal", name, clip(v), limit)
}

// ascending wants a bounded list whose keys ascend, none twice.
func ascending[T any](p *problems, name string, list []T, limit int, key func(T) string) {
	p.when(len(list) > limit, "%s: %d of them, at most %d", name, len(list), limit)
	for i := 1; i < min(len(list), limit); i++ {
		p.when(key(list[i]) <= key(list[i-1]), "%s: %q not in ascending order", name, clip(key(list[i])))
	}
}

func (p *problems) unique(seen map[ib.GUID]string, g ib.GUID, where string) {
	if other, ok := seen[g]; ok {
		p.when(true, "%s: GUID %v is that of %s too", where, g, other)
	}
	seen[g] = where
}

// err joins at most 16 problems; a hostile statement may have thousands.
func (p problems) err() error { return errors.Join(p[:min(len(p), 16)]...) }
