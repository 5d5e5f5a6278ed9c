package register

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// Sized is a layout of fixed size. A field carries one of two tags:
//
//	`reg:"0x34.2,1"`  bits of the dword at 0x34, from bit 2 (0 is the least) up: 1 of them;
//	                  where more than 32 bits are left, of the two dwords at 0x34, as one number
//	`reg:"0x10"`      an array of bytes, or of dwords, or a layout inside this one
type Sized interface {
	// Size is how many bytes there are on the wire.
	Size() int
}

// Layout is the layout of a register.
type Layout interface {
	Sized
	// ID is the register's number.
	ID() ID
}

// ErrShort means that the bytes end before the layout does.
var ErrShort = errors.New("too few bytes")

// ErrRange means that a value needs more bits than its field has.
var ErrRange = errors.New("value does not fit its field")

// Decode reads a layout from the start of p. Every pattern of bits decodes;
// fewer bytes than Size are ErrShort.
func Decode[T Sized](p []byte) (v T, err error) {
	if len(p) < v.Size() {
		return v, fmt.Errorf("%T: %w: %d, want %d", v, ErrShort, len(p), v.Size())
	}
	decode(p[:v.Size()], reflect.ValueOf(&v).Elem())
	return v, nil
}

// Encode writes a layout: Size bytes, reserved bits as zero.
func Encode[T Sized](v T) ([]byte, error) {
	p := make([]byte, v.Size())
	if err := encode(p, reflect.ValueOf(v)); err != nil {
		return nil, fmt.Errorf("%T: %w", v, err)
	}
	return p, nil
}

// place is where a field lies.
type place struct {
	at, shift, width int // bytes, bits, bits; width 0: a whole field
}

// parsePlace reads a tag. Tags are part of the program: a bad one panics.
func parsePlace(tag string) (p place) {
	offset, bits, isBits := strings.Cut(tag, ".")
	at, err := strconv.ParseUint(offset, 0, 16)
	p.at = int(at)
	if err == nil && isBits {
		_, err = fmt.Sscanf(bits, "%d,%d", &p.shift, &p.width)
	}
	if err != nil || isBits && (p.width < 1 || p.shift < 0 || p.shift+p.width > 64) {
		panic("register: bad tag " + strconv.Quote(tag))
	}
	return p
}

// wide reports a field of two dwords.
func (p place) wide() bool { return p.shift+p.width > 32 }

func (p place) mask() uint64 { return 1<<p.width - 1 } // a shift by 64 yields 0

func (p place) load(b []byte) uint64 {
	word := uint64(binary.BigEndian.Uint32(b[p.at:]))
	if p.wide() {
		word = binary.BigEndian.Uint64(b[p.at:])
	}
	return word >> p.shift & p.mask()
}

func (p place) store(b []byte, v uint64) error {
	if v&^p.mask() != 0 {
		return fmt.Errorf("%w: %d, largest is %d", ErrRange, v, p.mask())
	}
	if p.wide() {
		binary.BigEndian.PutUint64(b[p.at:], binary.BigEndian.Uint64(b[p.at:])|v<<p.shift)
		return nil
	}
	binary.BigEndian.PutUint32(b[p.at:], binary.BigEndian.Uint32(b[p.at:])|uint32(v<<p.shift))
	return nil
}

func decode(b []byte, v reflect.Value) {
	for i := range v.NumField() {
		p, f := parsePlace(v.Type().Field(i).Tag.Get("reg")), v.Field(i)
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(p.load(b) != 0)
		case reflect.Array:
			decodeArray(b[p.at:], f)
		case reflect.Struct:
			if key, ok := f.Addr().Interface().(*ib.LockKey); ok {
				*key = ib.NewLockKey(p.load(b))
				continue
			}
			decode(b[p.at:], f)
		default:
			f.SetUint(p.load(b))
		}
	}
}

func decodeArray(b []byte, f reflect.Value) {
	if f.Type().Elem().Kind() == reflect.Uint8 {
		reflect.Copy(f, reflect.ValueOf(b[:f.Len()]))
		return
	}
	for i := range f.Len() {
		f.Index(i).SetUint(uint64(binary.BigEndian.Uint32(b[4*i:])))
	}
}

func encode(b []byte, v reflect.Value) error {
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		if err := encodeField(b, parsePlace(field.Tag.Get("reg")), f); err != nil {
			return fmt.Errorf("%s: %w", field.Name, err)
		}
	}
	return nil
}

func encodeField(b []byte, p place, f reflect.Value) error {
	switch f.Kind() {
	case reflect.Bool:
		if f.Bool() {
			return p.store(b, 1)
		}
		return nil
	case reflect.Array:
		encodeArray(b[p.at:], f)
		return nil
	case reflect.Struct:
		if key, ok := f.Interface().(ib.LockKey); ok {
			return p.store(b, key.Reveal())
		}
		return encode(b[p.at:], f)
	default:
		return p.store(b, f.Uint())
	}
}

func encodeArray(b []byte, f reflect.Value) {
	for i := range f.Len() {
		if f.Type().Elem().Kind() == reflect.Uint8 {
			b[i] = byte(f.Index(i).Uint())
			continue
		}
		binary.BigEndian.PutUint32(b[4*i:], uint32(f.Index(i).Uint()))
	}
}
