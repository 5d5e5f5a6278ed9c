package mad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"portcullis/fabricsm/ib"
)

// ErrShort means that the bytes end before the attribute does.
var ErrShort = errors.New("too few bytes")

// ErrRange means that a field's value needs more bits than the wire has for
// it.
var ErrRange = errors.New("value does not fit its field")

// Decode reads an attribute from the start of p. p must hold at least its
// size, LayoutOf[T]().Size(); otherwise the error wraps ErrShort and *v is
// untouched. Every bit pattern decodes; reserved bits are ignored.
func Decode[T any](p []byte, v *T) error {
	return LayoutOf[T]().decode(p, unsafe.Pointer(v))
}

// Encode writes exactly the attribute's bytes to the start of p, reserved bits
// as zero. If p is too short (ErrShort) it is untouched; if a field's value
// does not fit its width (ErrRange) the attribute's bytes in p are zero.
func Encode[T any](p []byte, v *T) error {
	return LayoutOf[T]().encode(p, unsafe.Pointer(v))
}

// MustEncode is Encode for values that are in range by construction. It panics on an error.
func MustEncode[T any](p []byte, v *T) {
	if err := Encode(p, v); err != nil {
		panic(err)
	}
}

func (l *Layout) short(p []byte) error {
	return fmt.Errorf("%s: %w: %d, want %d", l.Name(), ErrShort, len(p), l.size)
}

// decode fills the value at v, which must be of type l.typ.
//
// The stores go through unsafe pointers at offsets from reflect for this type, and the compiled kinds name the type at each
// offset, so each store has the size of its field. Fields that hold pointers (secrets) are stored as their own type, never
// as bits.
func (l *Layout) decode(p []byte, v unsafe.Pointer) error {
	if len(p) < l.size {
		return l.short(p)
	}
	p = p[:l.size]
	var padded [wordBytes]byte
	if l.size < wordBytes {
		copy(padded[:], p)
		p = padded[:]
	}
	for i := range l.dec {
		o := &l.dec[i]
		x := binary.BigEndian.Uint64(p[o.src:]) >> (o.shift & 63) & o.mask
		at := unsafe.Add(v, o.dst)
		switch o.kind {
		case kind8:
			*(*uint8)(at) = uint8(x)
		case kind16:
			*(*uint16)(at) = uint16(x)
		case kind32:
			*(*uint32)(at) = uint32(x)
		case kind64:
			*(*uint64)(at) = x
		case kindMKey:
			*(*ib.MKey)(at) = ib.NewMKey(x)
		case kindSMKey:
			*(*ib.SMKey)(at) = ib.NewSMKey(x)
		}
	}
	for i := range l.bulk {
		l.bulk[i].decode(p, v)
	}
	return nil
}

// encode writes the value at v; the remarks at decode hold here too.
func (l *Layout) encode(p []byte, v unsafe.Pointer) error {
	if len(p) < l.size {
		return l.short(p)
	}
	p = p[:l.size]
	clear(p)
	var acc, over uint64
	word := uint16(0)
	for i := range l.enc {
		o := &l.enc[i]
		if o.word != word {
			putWord(p, word, acc)
			word, acc = o.word, 0
		}
		x := o.load(v)
		over |= x &^ o.mask
		acc |= x >> (o.right & 63) << (o.left & 63)
	}
	if len(l.enc) > 0 {
		putWord(p, word, acc)
	}
	for i := range l.bulk {
		l.bulk[i].encode(p, v)
	}
	if over != 0 {
		clear(p)
		return l.rangeError(v)
	}
	return nil
}

func (o *encOp) load(v unsafe.Pointer) uint64 {
	at := unsafe.Add(v, o.src)
	switch o.kind {
	case kind8:
		return uint64(*(*uint8)(at))
	case kind16:
		return uint64(*(*uint16)(at))
	case kind32:
		return uint64(*(*uint32)(at))
	case kind64:
		return *(*uint64)(at)
	case kindMKey:
		return (*(*ib.MKey)(at)).Reveal()
	default:
		return (*(*ib.SMKey)(at)).Reveal()
	}
}

// putWord stores 64 bits, or as many whole bytes of them as the attribute has.
func putWord(p []byte, word uint16, x uint64) {
	p = p[int(word)*wordBytes:]
	if len(p) >= wordBytes {
		binary.BigEndian.PutUint64(p, x)
		return
	}
	var last [wordBytes]byte
	binary.BigEndian.PutUint64(last[:], x)
	copy(p, last[:])
}

func (o *bulkOp) decode(p []byte, v unsafe.Pointer) {
	if o.key {
		*(*ib.ServiceKey)(unsafe.Add(v, o.off)) = ib.NewServiceKey([16]byte(p[o.at:]))
		return
	}
	if !o.wide {
		copy(unsafe.Slice((*byte)(unsafe.Add(v, o.off)), o.count), p[o.at:])
		return
	}
	p = p[o.at:]
	for i, dst := 0, unsafe.Slice((*uint16)(unsafe.Add(v, o.off)), o.count); i < len(dst) && len(p) >= 2; i++ {
		dst[i] = binary.BigEndian.Uint16(p)
		p = p[2:]
	}
}

func (o *bulkOp) encode(p []byte, v unsafe.Pointer) {
	if o.key {
		b := (*ib.ServiceKey)(unsafe.Add(v, o.off)).Reveal()
		copy(p[o.at:], b[:])
		return
	}
	if !o.wide {
		copy(p[o.at:], unsafe.Slice((*byte)(unsafe.Add(v, o.off)), o.count))
		return
	}
	p = p[o.at:]
	for _, x := range unsafe.Slice((*uint16)(unsafe.Add(v, o.off)), o.count) {
		binary.BigEndian.PutUint16(p, x)
		p = p[2:]
	}
}

// rangeError names the first field whose value is too large. Only the slow
// path of encode comes here.
func (l *Layout) rangeError(v unsafe.Pointer) error {
	for i := range l.enc {
		o := &l.enc[i]
		if x := o.load(v); x&^o.mask != 0 {
			return fmt.Errorf("%s field %s: %w: %d, largest is %d", l.Name(), l.fieldAt(o.src), ErrRange, x, o.mask)
		}
	}
	return fmt.Errorf("%s: %w", l.Name(), ErrRange)
}

// fieldAt names the field that holds the byte at off of the value.
func (l *Layout) fieldAt(off uintptr) string {
	for i := range l.fields {
		f := &l.fields[i]
		if f.Reserved || off < f.offset || off >= f.offset+uintptr(f.Count)*f.typ.Size() {
			continue
		}
		return f.elementName(int((off - f.offset) / f.typ.Size()))
	}
	return "?"
}
