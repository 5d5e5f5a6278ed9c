package mad

import (
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"unsafe"

	"portcullis/fabricsm/ib"
)

// DumpOptions say how attributes are printed.
type DumpOptions struct {
	Indent  string // put before each line
	Secrets bool   // print keys instead of ib.Redacted
}

// Dump writes v as text, one "Field: value" a line in the order of the wire. Equal neighbours in an array share a line.
func Dump[T any](w io.Writer, v *T, o DumpOptions) error {
	return LayoutOf[T]().dump(w, unsafe.Pointer(v), o)
}

// Dump writes v, a pointer to a value of the layout's type, as the generic
// Dump does.
func (l *Layout) Dump(w io.Writer, v any, o DumpOptions) error {
	return l.dump(w, l.pointer(v).UnsafePointer(), o)
}

func (l *Layout) dump(w io.Writer, v unsafe.Pointer, o DumpOptions) error {
	for _, line := range l.lines(v, o.Secrets) {
		if _, err := fmt.Fprintf(w, "%s%s: %s\n", o.Indent, line.name, line.value); err != nil {
			return err
		}
	}
	return nil
}

// line is one printed row.
type line struct{ name, value string }

// lines prints every row of the layout that is not reserved.
func (l *Layout) lines(v unsafe.Pointer, secrets bool) []line {
	var out []line
	for i := range l.fields {
		f := &l.fields[i]
		switch {
		case f.Reserved:
		case f.whole():
			out = append(out, line{f.Name, f.wholeString(v, secrets)})
		case !f.array:
			out = append(out, line{f.Name, f.elementString(v, 0, secrets)})
		default:
			out = f.appendRuns(out, v, secrets)
		}
	}
	return out
}

// appendRuns prints an array, one line for each run of equal elements.
func (f *Field) appendRuns(out []line, v unsafe.Pointer, secrets bool) []line {
	for first := 0; first < f.Count; {
		value := f.elementString(v, first, secrets)
		next := first + 1
		for next < f.Count && f.elementString(v, next, secrets) == value {
			next++
		}
		name := fmt.Sprintf("%s[%d]", f.Name, first)
		if next-first > 1 {
			name = fmt.Sprintf("%s[%d..%d]", f.Name, first, next-1)
		}
		out = append(out, line{name, value})
		first = next
	}
	return out
}

// whole reports whether a field is a byte array that is printed as one value.
func (f *Field) whole() bool {
	return f.array && f.Width == 8 && f.typ == reflect.TypeFor[uint8]() && f.Format != FormatPlain
}

func (f *Field) wholeString(v unsafe.Pointer, secrets bool) string {
	b := f.bytes(v)
	switch {
	case f.Format == FormatText:
		return strconv.Quote(printable([]byte(b)))
	case f.Format == FormatKey && !secrets && !allZero([]byte(b)):
		return ib.Redacted
	default:
		return hex.EncodeToString([]byte(b))
	}
}

// element is element i of the field as a value of its own type.
func (f *Field) element(v unsafe.Pointer, i int) any {
	return reflect.NewAt(f.typ, unsafe.Add(v, f.offset+uintptr(i)*f.typ.Size())).Elem().Interface()
}

func (f *Field) elementString(v unsafe.Pointer, i int, secrets bool) string {
	x := f.element(v, i)
	switch x := x.(type) {
	case ib.MKey:
		return keyString(x.Reveal(), x.String(), secrets)
	case ib.SMKey:
		return keyString(x.Reveal(), x.String(), secrets)
	case ib.ServiceKey:
		if secrets && !x.IsZero() {
			b := x.Reveal()
			return hex.EncodeToString(b[:])
		}
		return x.String()
	case ib.ExpTime:
		return fmt.Sprintf("%d (%v)", uint8(x), x.Duration())
	case fmt.Stringer:
		return x.String()
	}
	if f.Format == FormatHex {
		return fmt.Sprintf("0x%0*x", (f.Width+3)/4, x)
	}
	return fmt.Sprint(x)
}

func keyString(bits uint64, redacted string, secrets bool) string {
	if !secrets || bits == 0 {
		return redacted
	}
	return fmt.Sprintf("0x%016x", bits)
}

// bytes is a whole byte array.
func (f *Field) bytes(v unsafe.Pointer) string {
	return string(unsafe.Slice((*byte)(unsafe.Add(v, f.offset)), f.Count))
}

// elementName is the name of element i: that of the field, with an index in an
// array.
func (f *Field) elementName(i int) string {
	if !f.array {
		return f.Name
	}
	return fmt.Sprintf("%s[%d]", f.Name, i)
}
