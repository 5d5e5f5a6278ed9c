package topospec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Digest is the SHA-256 of a revision's content in its normal order. Two files
// that say the same have the same digest, whatever their form. The zero Digest is
// "none".
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// String returns "sha256:" and 64 digits.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// Short returns the first 12 digits, for display.
func (d Digest) Short() string { return hex.EncodeToString(d[:6]) }

// IsZero reports whether it is the zero value, which means none.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText returns the text of String, "" for none.
func (d Digest) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return nil, nil
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads the text of String, and "" as none.
func (d *Digest) UnmarshalText(b []byte) error {
	*d = Digest{}
	if len(b) == 0 {
		return nil
	}
	text, ok := strings.CutPrefix(string(b), digestPrefix)
	raw, err := hex.DecodeString(text)
	if !ok || err != nil || len(raw) != len(d) || strings.ToLower(text) != text {
		return fmt.Errorf("digest %.80q: want %s and 64 hexadecimal digits", b, digestPrefix)
	}
	copy(d[:], raw)
	return nil
}

// Digest returns the digest of a revision. The order of devices and links and the lines they were read from do not count.
func (r *Revision) Digest() Digest {
	n := *r
	n.Devices, n.Links = slices.Clone(r.Devices), slices.Clone(r.Links)
	n.Normalize()
	h := sha256.New()
	var b []byte
	flush := func() {
		b = append(b, '\n')
		h.Write(b)
		b = b[:0]
	}
	b = appendFields(b, "topospec 1", strconv.FormatUint(n.Number, 10), n.Parent.String(), n.Fabric)
	flush()
	for i := range n.Devices {
		b = n.Devices[i].appendTo(b)
		flush()
	}
	for i := range n.Links {
		b = n.Links[i].appendTo(b)
		flush()
	}
	b = n.Policy.appendTo(b)
	flush()
	return Digest(h.Sum(nil))
}

// appendFields quotes each field, so that no two lists lead to the same bytes.
func appendFields(b []byte, fields ...string) []byte {
	for _, f := range fields {
		b = strconv.AppendQuote(b, f)
		b = append(b, ' ')
	}
	return b
}

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = strconv.AppendUint(b, n, 10)
		b = append(b, ' ')
	}
	return b
}

func (d *Device) appendTo(b []byte) []byte {
	b = append(b, "device "...)
	b = appendNumbers(b, uint64(d.GUID), uint64(d.Kind), uint64(d.U), uint64(d.Rail), uint64(d.Role), uint64(d.Stock), uint64(d.Ports), uint64(d.SystemImage), uint64(len(d.PortGUIDs)))
	for _, g := range d.PortGUIDs {
		b = appendNumbers(b, uint64(g))
	}
	return appendFields(b, d.Model, d.Serial, d.Site, d.Room, d.Rack, d.Slot, d.Name, d.Host, d.PSID)
}

func (l *Link) appendTo(b []byte) []byte {
	b = append(b, "link "...)
	b = appendNumbers(b, uint64(l.A.GUID), uint64(l.A.Port), uint64(l.B.GUID), uint64(l.B.Port), uint64(l.State), uint64(l.Class), uint64(l.Cable.Length))
	return appendFields(b, l.Cable.Part, l.Cable.Serial, l.Since, l.Reason)
}

func (p *Policy) appendTo(b []byte) []byte {
	b = append(b, "policy "...)
	f, stocked := p.Fields, uint64(0)
	if p.Stocked {
		stocked = 1
	}
	b = appendNumbers(b, uint64(p.Mode), uint64(f.GUID), uint64(f.Port), uint64(f.Type), uint64(f.PortGUID), uint64(f.SystemImage), uint64(f.NumPorts),
		uint64(p.Unknown), uint64(p.MinScore), uint64(p.MaxFlips), stocked, uint64(len(p.Two)))
	for _, t := range p.Two {
		b = appendNumbers(b, uint64(t))
	}
	for _, w := range p.Freeze {
		b = appendFields(b, w.From.UTC().Format(time.RFC3339Nano), w.To.UTC().Format(time.RFC3339Nano), w.Why)
	}
	return b
}
