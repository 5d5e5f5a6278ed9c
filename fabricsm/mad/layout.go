package mad

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"portcullis/fabricsm/ib"
)

// Layout is the compiled table of one attribute: its fields, and the plans by
// which Decode and Encode work. It is immutable.
type Layout struct {
	typ    reflect.Type
	size   int
	fields []Field
	dec    []decOp
	enc    []encOp
	bulk   []bulkOp
}

// Field is one row of the table. Fields of embedded structs and of array
// elements that are structs appear as rows of their own.
type Field struct {
	Name     string // "PortState", "Entry[3].Weight"; empty for reserved bits
	Bit      int    // offset of the most significant bit, bit 0 being the top bit of byte 0
	Width    int    // in bits; for arrays that of one element
	Count    int    // elements of an array, 1 otherwise
	Reserved bool   // sent as zero, ignored on receipt
	Format   Format // how Dump prints it

	offset uintptr
	typ    reflect.Type // of the field, or of one element of an array
	array  bool
}

// Format is how a field is printed.
type Format string

// Formats. Types with a String method print by it whatever the format.
const (
	FormatPlain Format = ""     // numbers in decimal
	FormatHex   Format = "hex"  // numbers in hexadecimal, byte arrays as one string of digits
	FormatText  Format = "text" // a byte array that holds text padded with NUL
	FormatKey   Format = "key"  // a byte array that may hold a key: hexadecimal, redacted like a secret
)

func (f Format) known() bool {
	return f == FormatPlain || f == FormatHex || f == FormatText || f == FormatKey
}

// End is the bit after the field.
func (f *Field) End() int { return f.Bit + f.Width*f.Count }

// reserved marks bits that have no meaning: `_ reserved `mad:"offset,width"“.
type reserved struct{}

// Name is the name of the attribute's type, for example "PortInfo".
func (l *Layout) Name() string { return l.typ.Name() }

// Size is the length of the attribute in bytes.
func (l *Layout) Size() int { return l.size }

// Fields returns the rows of the table in the order of their bits, reserved ones included: they tile the attribute without
// gap or overlap.
func (l *Layout) Fields() []Field { return slices.Clone(l.fields) }

// layouts caches the results of compile by type, keyed by a nil *T. compile is a pure function, so the cache holds no state
// that a caller can observe.
var layouts sync.Map // of *T to *Layout

// LayoutOf returns the layout of T. A type whose tags are not a table that tiles whole bytes is a programming error and
// panics, on first use.
func LayoutOf[T any]() *Layout {
	if l, ok := layouts.Load((*T)(nil)); ok {
		return l.(*Layout)
	}
	l, err := compile(reflect.TypeFor[T]())
	if err != nil {
		panic("mad: " + err.Error())
	}
	layouts.Store((*T)(nil), l)
	return l
}

// maxSize bounds an attribute: it has to fit a MAD behind the header.
const maxSize = Size - HeaderSize

func compile(t reflect.Type) (*Layout, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("layout of %v: want a struct", t)
	}
	l := &Layout{typ: t}
	if err := l.addStruct(t, "", 0, 0); err != nil {
		return nil, fmt.Errorf("layout of %v: %w", t, err)
	}
	slices.SortStableFunc(l.fields, func(a, b Field) int { return cmp.Compare(a.Bit, b.Bit) })
	if err := l.checkTiling(); err != nil {
		return nil, fmt.Errorf("layout of %v: %w", t, err)
	}
	if err := l.plan(); err != nil {
		return nil, fmt.Errorf("layout of %v: %w", t, err)
	}
	return l, nil
}

// checkTiling demands that the rows cover whole bytes, each bit once, and sets
// the size. Reserved bits are rows too, so a forgotten one is found here.
func (l *Layout) checkTiling() error {
	next := 0
	for i := range l.fields {
		f := &l.fields[i]
		if f.Bit != next {
			return fmt.Errorf("field %q begins at bit %d, want %d", f.Name, f.Bit, next)
		}
		next = f.End()
	}
	if next == 0 || next%8 != 0 || next > maxSize*8 {
		return fmt.Errorf("%d bits, want whole bytes, at most %d", next, maxSize)
	}
	l.size = next / 8
	return nil
}

// addStruct appends the rows of struct t that lies at offset in the value and
// whose bits count from base.
func (l *Layout) addStruct(t reflect.Type, prefix string, base int, offset uintptr) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous {
			at, err := embeddedAt(sf)
			if err != nil {
				return fmt.Errorf("embedded %s: %w", sf.Name, err)
			}
			if err := l.addStruct(sf.Type, prefix, base+at, offset+sf.Offset); err != nil {
				return err
			}
			continue
		}
		if err := l.addField(sf, prefix, base, offset+sf.Offset); err != nil {
			return fmt.Errorf("field %s: %w", prefix+sf.Name, err)
		}
	}
	return nil
}

// embeddedAt returns the bit at which an embedded struct begins: that of its tag, or 0. It ignores the width in the tag;
// the rows that follow show whether it is true.
func embeddedAt(sf reflect.StructField) (int, error) {
	tag, ok := sf.Tag.Lookup("mad")
	if !ok {
		return 0, nil
	}
	f, err := parseTag(tag)
	return f.Bit, err
}

func (l *Layout) addField(sf reflect.StructField, prefix string, base int, offset uintptr) error {
	f, err := parseTag(sf.Tag.Get("mad"))
	if err != nil {
		return err
	}
	f.Name, f.Bit, f.offset, f.typ = prefix+sf.Name, f.Bit+base, offset, sf.Type
	if sf.Type == reflect.TypeFor[reserved]() {
		f.Name, f.Reserved = "", true
		l.fields = append(l.fields, f)
		return nil
	}
	if !sf.IsExported() {
		return fmt.Errorf("not exported")
	}
	if isArray(sf.Type) {
		f.array, f.Count, f.typ = true, sf.Type.Len(), sf.Type.Elem()
	}
	if f.typ.Kind() == reflect.Struct && !isSecret(f.typ) {
		return l.addElements(&f)
	}
	l.fields = append(l.fields, f)
	return nil
}

// addElements appends the rows of a struct, or of an array of structs element
// by element.
func (l *Layout) addElements(f *Field) error {
	for i := range f.Count {
		name := f.Name + "."
		if f.array {
			name = fmt.Sprintf("%s[%d].", f.Name, i)
		}
		if err := l.addStruct(f.typ, name, f.Bit+i*f.Width, f.offset+uintptr(i)*f.typ.Size()); err != nil {
			return err
		}
	}
	return nil
}

// parseTag reads "offset,width" with an optional format, "offset,width,hex".
func parseTag(tag string) (f Field, err error) {
	parts := strings.Split(tag, ",")
	if len(parts) == 3 {
		f.Format, parts = Format(parts[2]), parts[:2]
	}
	if len(parts) != 2 || !f.Format.known() {
		return f, fmt.Errorf("tag %q: want mad:\"offset,width\", then optionally ,hex, ,text or ,key", tag)
	}
	if f.Bit, err = strconv.Atoi(parts[0]); err != nil || f.Bit < 0 {
		return f, fmt.Errorf("tag %q: bad bit offset", tag)
	}
	if f.Width, err = strconv.Atoi(parts[1]); err != nil || f.Width <= 0 {
		return f, fmt.Errorf("tag %q: bad width", tag)
	}
	f.Count = 1
	return f, nil
}

// isArray distinguishes arrays of elements from ib.GID, which is an array but one value.
func isArray(t reflect.Type) bool {
	return t.Kind() == reflect.Array && t != reflect.TypeFor[ib.GID]()
}

func isSecret(t reflect.Type) bool {
	return t == reflect.TypeFor[ib.MKey]() || t == reflect.TypeFor[ib.SMKey]() || t == reflect.TypeFor[ib.ServiceKey]()
}
