package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// algorithm is a hash of the TCG's registry.
type algorithm uint16

const (
	sha1ID   algorithm = 0x0004
	sha256ID algorithm = 0x000b

	maxAlgorithms = 16
)

// digestSizes are the sizes of digests that are known; a header that claims
// another is refused.
var digestSizes = map[algorithm]int{
	sha1ID: 20, sha256ID: sha256.Size, 0x000c: 48, 0x000d: 64, // SHA-2
	0x0012: 32, 0x0027: 32, 0x0028: 48, 0x0029: 64, // SM3, SHA-3
}

// Signatures of events that are not measured.
const (
	specID          = "Spec ID Event03\x00"
	startupLocality = "StartupLocality\x00"
)

// noPCR is the index of events that belong to no register, such as those of
// SP 800-155.
const noPCR = 0xffffffff

// Parse reads a log. It is an error when anything is left over, cut short or
// not as the profile says.
func Parse(b []byte) (*Log, error) {
	if len(b) > MaxSize {
		return nil, fmt.Errorf("event log: %d bytes, at most %d are read", len(b), MaxSize)
	}
	p := parser{r: reader{b: b}, log: &Log{}}
	if err := p.header(); err != nil {
		return nil, fmt.Errorf("event log: header: %w", err)
	}
	for n := 1; len(p.r.b) > 0; n++ {
		if n > MaxEvents {
			return nil, fmt.Errorf("event log: more than %d events", MaxEvents)
		}
		if err := p.event(); err != nil {
			return nil, fmt.Errorf("event log: event %d: %w", n, err)
		}
	}
	return p.log, nil
}

// parser holds a log as far as it is read.
type parser struct {
	r     reader
	sizes []bank
	log   *Log
	// Whether there was a StartupLocality, and a measurement into PCR 0.
	located, measured0 bool
}

// bank is an algorithm of the header.
type bank struct {
	id   algorithm
	size int
}

// header reads the first event, which has the layout of TPM 1.2.
func (p *parser) header() error {
	pcr, typ, digest := p.r.u32(), Type(p.r.u32()), p.r.bytes(digestSizes[sha1ID])
	data := p.r.data()
	switch {
	case p.r.short:
		return errShort
	case pcr != 0 || typ != NoAction || !bytes.Equal(digest, make([]byte, len(digest))):
		return fmt.Errorf("PCR %d, type %v: want an event that measures nothing", pcr, typ)
	}
	h := reader{b: data}
	if string(h.bytes(len(specID))) != specID {
		return errors.New(`no "Spec ID Event03": the log is in the format of TPM 1.2, or of no known one`)
	}
	h.bytes(4 + 4) // platform class, minor, major, errata, size of a UINTN
	if err := p.algorithms(&h); err != nil {
		return err
	}
	h.bytes(int(h.u8())) // vendor's
	if h.short || len(h.b) > 0 {
		return errors.New("not exactly one specification identifier")
	}
	return nil
}

func (p *parser) algorithms(h *reader) error {
	n := h.u32()
	if n > maxAlgorithms {
		return fmt.Errorf("%d digest algorithms, at most %d", n, maxAlgorithms)
	}
	with256 := false
	for range n {
		b := bank{algorithm(h.u16()), int(h.u16())}
		if h.short {
			return errShort
		}
		if want, known := digestSizes[b.id]; b.size == 0 || b.size > 64 || known && b.size != want {
			return fmt.Errorf("digests of algorithm 0x%04x have %d bytes", uint16(b.id), b.size)
		}
		for _, other := range p.sizes {
			if other.id == b.id {
				return fmt.Errorf("algorithm 0x%04x occurs twice", uint16(b.id))
			}
		}
		p.sizes = append(p.sizes, b)
		with256 = with256 || b.id == sha256ID
	}
	if !with256 {
		return errors.New("no SHA-256 digests: switch on the firmware's SHA-256 bank")
	}
	return nil
}

// event reads one event after the header.
func (p *parser) event() error {
	pcr, typ := p.r.u32(), Type(p.r.u32())
	digest, err := p.digests()
	if err != nil {
		return err
	}
	data := p.r.data()
	switch {
	case p.r.short:
		return errShort
	case pcr >= NumPCRs && (typ != NoAction || pcr != noPCR):
		return fmt.Errorf("PCR %d, want 0 to %d", pcr, NumPCRs-1)
	case typ == NoAction:
		return p.locality(data)
	case typ == HCRTM:
		return errors.New("measurements of an H-CRTM are not supported")
	}
	p.measured0 = p.measured0 || pcr == 0
	p.log.Events = append(p.log.Events, Event{PCR: int(pcr), Type: typ, Digest: digest, Data: data})
	return nil
}

// digests reads one digest of every algorithm of the header, in any order, and returns that of SHA-256.
func (p *parser) digests() (out Digest, err error) {
	n := p.r.u32()
	if p.r.short {
		return out, errShort
	}
	if int64(n) != int64(len(p.sizes)) {
		return out, fmt.Errorf("%d digests, the header says %d", n, len(p.sizes))
	}
	seen := make([]bool, len(p.sizes))
	for range p.sizes {
		id, i := algorithm(p.r.u16()), 0
		for i < len(p.sizes) && p.sizes[i].id != id {
			i++
		}
		if p.r.short {
			return out, errShort
		}
		if i == len(p.sizes) || seen[i] {
			return out, fmt.Errorf("a digest of algorithm 0x%04x is unknown, or occurs twice", uint16(id))
		}
		seen[i] = true
		if d := p.r.bytes(p.sizes[i].size); id == sha256ID && d != nil {
			out = Digest(d)
		}
	}
	if p.r.short {
		return out, errShort
	}
	return out, nil
}

// locality takes the locality of TPM2_Startup from an event that is not measured. Other events of this kind are ignored.
func (p *parser) locality(data []byte) error {
	l, is := bytes.CutPrefix(data, []byte(startupLocality))
	switch {
	case !is:
		return nil
	case p.located || p.measured0:
		return errors.New("StartupLocality occurs twice, or after a measurement into PCR 0")
	case len(l) != 1 || l[0] != 0 && l[0] != 3 && l[0] != 4:
		return fmt.Errorf("StartupLocality %x, want 00, 03 or 04", l)
	}
	p.located, p.log.Locality = true, l[0]
	return nil
}

var errShort = errors.New("is truncated, or over its size")

// reader takes little-endian values off its front. Once short, it returns zeros.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) bytes(n int) []byte {
	if r.short || n > len(r.b) {
		r.short = true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() uint8 {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// data reads an event's data after its size.
func (r *reader) data() []byte {
	n := r.u32()
	if n > MaxEvent {
		r.short = true
	}
	return r.bytes(int(n))
}
