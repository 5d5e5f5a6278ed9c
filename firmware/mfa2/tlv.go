package mfa2

import (
	"encoding/binary"
)

// The types of a TLV.
const (
	tlvMulti     = 0x01
	tlvPackage   = 0x02
	tlvDevice    = 0x03
	tlvComponent = 0x04
	tlvPointer   = 0x22
	tlvSHA256    = 0x27
	tlvPSID      = 0x2A
)

// tlvHead is the size of version, type and length.
const tlvHead = 4

// tlv is one type, length and value.
type tlv struct {
	kind byte
	at   int // of the value in the file
	body []byte
}

// group is a multi-part TLV: a descriptor and its extensions.
type group struct {
	descriptor tlv
	extensions []tlv
}

// reader walks through the descriptors of a package.
type reader struct {
	b  []byte // the file up to the archive
	at int
}

// next reads one TLV and steps over its padding. raw is its size without padding.
func (r *reader) next() (t tlv, raw int, err error) {
	if len(r.b)-r.at < tlvHead {
		return t, 0, malformed("descriptor at 0x%x: it is truncated by the archive", r.at)
	}
	n := int(binary.BigEndian.Uint16(r.b[r.at+2:]))
	from := r.at + tlvHead
	if n > len(r.b)-from {
		return t, 0, malformed("descriptor at 0x%x: its %d bytes run into the archive", r.at, n)
	}
	t = tlv{kind: r.b[r.at+1], at: from, body: r.b[from : from+n]}
	r.at = min(from+(n+3)/4*4, len(r.b))
	return t, tlvHead + n, nil
}

// group reads a multi-part TLV whose descriptor is of a kind.
func (r *reader) group(kind byte) (g group, err error) {
	at := r.at
	head, _, err := r.next()
	if err != nil {
		return g, err
	}
	if head.kind != tlvMulti || len(head.body) != 4 {
		return g, malformed("descriptor at 0x%x: it is of type 0x%02x with %d bytes, want a group", at, head.kind, len(head.body))
	}
	extensions, total := int(binary.BigEndian.Uint16(head.body)), int(binary.BigEndian.Uint16(head.body[2:]))
	raw, begin := 0, r.at
	for i := range extensions + 1 {
		t, n, err := r.next()
		if err != nil {
			return g, err
		}
		if raw += n; i == 0 {
			g.descriptor = t
			continue
		}
		g.extensions = append(g.extensions, t)
	}
	// Packages count the parts without the padding between them; those that
	// count it are right as well.
	if padded := r.at - begin; total < raw || total > padded {
		return g, malformed("group at 0x%x: its parts have %d bytes, but it says %d", at, raw, total)
	}
	if g.descriptor.kind != kind {
		return g, malformed("group at 0x%x: it is of type 0x%02x, want 0x%02x", at, g.descriptor.kind, kind)
	}
	return g, nil
}

// body returns the value of a TLV that must have a size.
func (t tlv) sized(n int) ([]byte, error) {
	if len(t.body) != n {
		return nil, malformed("descriptor at 0x%x: it has %d bytes, not %d", t.at-tlvHead, len(t.body), n)
	}
	return t.body, nil
}
