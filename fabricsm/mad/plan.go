package mad

import (
	"fmt"
	"reflect"

	"portcullis/fabricsm/ib"
)

// kind is how a field is held in memory.
type kind uint8

const (
	kind8     kind = iota // uint8 and bool
	kind16                // uint16
	kind32                // uint32
	kind64                // uint64
	kindMKey              // ib.MKey
	kindSMKey             // ib.SMKey
)

// decOp moves one field of at most 64 bits out of the attribute: load the
// eight bytes at src, shift right, mask, store at dst.
type decOp struct {
	dst   uintptr
	mask  uint64
	src   uint16
	shift uint8
	kind  kind
}

// encOp moves one field into one big-endian 64-bit word of the attribute. A
// field that crosses a word boundary has two of them.
type encOp struct {
	src   uintptr
	mask  uint64 // bits the value may have
	word  uint16
	right uint8 // shift right by this, then
	left  uint8 // shift left by this
	kind  kind
}

// bulkOp moves an array of whole bytes or of 16-bit words at once, or a key of 128
// bits.
type bulkOp struct {
	off   uintptr // in the value
	at    uint16  // byte in the attribute
	count uint16
	wide  bool // elements of 16 bits
	key   bool // an ib.ServiceKey
}

const (
	wordBits  = 64
	wordBytes = 8
	// maxWidth is the widest field that is not aligned to a byte: it must
	// lie inside eight bytes wherever it begins.
	maxUnaligned = wordBits - 7
)

// plan compiles the rows into operations.
func (l *Layout) plan() error {
	for i := range l.fields {
		f := &l.fields[i]
		if f.Reserved {
			continue
		}
		if ok, err := l.planBulk(f); ok || err != nil {
			if err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
			continue
		}
		for e := range f.Count {
			if err := l.planScalar(f, e); err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

// planBulk takes GIDs, ServiceKeys and long arrays whose elements are whole bytes or 16-bit
// words, and reports whether it did.
func (l *Layout) planBulk(f *Field) (bool, error) {
	op := bulkOp{off: f.offset, at: uint16(f.Bit / 8), count: uint16(f.Count)}
	switch {
	case f.typ == reflect.TypeFor[ib.GID]():
		if f.Bit%8 != 0 || f.Width != 128 || f.array {
			return false, fmt.Errorf("a GID is 128 bits at a byte boundary")
		}
		op.count = 16
	case f.typ == reflect.TypeFor[ib.ServiceKey]():
		if f.Bit%8 != 0 || f.Width != 128 || f.array {
			return false, fmt.Errorf("a ServiceKey is 128 bits at a byte boundary")
		}
		op.key = true
	case f.array && f.typ.Kind() == reflect.Uint8 && f.Width == 8 && f.Bit%8 == 0:
	case f.array && f.typ.Kind() == reflect.Uint16 && f.Width == 16 && f.Bit%8 == 0:
		op.wide = true
	default:
		return false, nil
	}
	l.bulk = append(l.bulk, op)
	return true, nil
}

// planScalar adds the operations of element e of f.
func (l *Layout) planScalar(f *Field, e int) error {
	k, bits, err := kindOf(f.typ)
	if err != nil {
		return err
	}
	bit := f.Bit + e*f.Width
	if f.Width > bits || f.Width > maxUnaligned && bit%8 != 0 {
		return fmt.Errorf("%d bits at bit %d do not fit %v", f.Width, bit, f.typ)
	}
	mask := ^uint64(0) >> (wordBits - f.Width)
	off := f.offset + uintptr(e)*f.typ.Size()
	l.planDecode(decOp{dst: off, kind: k, mask: mask}, bit, f.Width)
	l.planEncode(encOp{src: off, kind: k, mask: mask}, bit, f.Width)
	return nil
}

// planDecode chooses a window of eight bytes that holds the field and does not
// reach past the end of the attribute. An attribute shorter than a window is
// decoded from a padded copy.
func (l *Layout) planDecode(op decOp, bit, width int) {
	window := min(bit/8, max(l.size, wordBytes)-wordBytes)
	op.src = uint16(window)
	op.shift = uint8(wordBits - (bit - window*8) - width)
	l.dec = append(l.dec, op)
}

func (l *Layout) planEncode(op encOp, bit, width int) {
	op.word = uint16(bit / wordBits)
	room := wordBits - bit%wordBits // bits from the field's start to the end of its word
	if width <= room {
		op.left = uint8(room - width)
		l.enc = append(l.enc, op)
		return
	}
	over := width - room // bits that go to the next word
	op.right = uint8(over)
	l.enc = append(l.enc, op)
	op.word, op.right, op.left = op.word+1, 0, uint8(wordBits-over)
	l.enc = append(l.enc, op)
}

// kindOf returns how a value of type t is stored and how many bits it can hold.
func kindOf(t reflect.Type) (k kind, bits int, err error) {
	switch t {
	case reflect.TypeFor[ib.MKey]():
		return kindMKey, 64, nil
	case reflect.TypeFor[ib.SMKey]():
		return kindSMKey, 64, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return kind8, 1, nil
	case reflect.Uint8:
		return kind8, 8, nil
	case reflect.Uint16:
		return kind16, 16, nil
	case reflect.Uint32:
		return kind32, 32, nil
	case reflect.Uint64:
		return kind64, 64, nil
	default:
		return 0, 0, fmt.Errorf("type %v has no wire form", t)
	}
}
