package mad

import "unsafe"

// Difference is a field that two values of an attribute do not share, printed
// as Dump does. Secrets stay redacted.
type Difference struct {
	Field string // "LID", "PKey[3]"
	A, B  string
}

// Diff lists the fields in which a and b differ, in the order of the wire. It
// is empty if and only if both encode to the same bytes.
func Diff[T any](a, b *T) []Difference {
	l := LayoutOf[T]()
	var out []Difference
	for i := range l.fields {
		f := &l.fields[i]
		switch {
		case f.Reserved:
		case f.whole():
			x, y := f.bytes(unsafe.Pointer(a)), f.bytes(unsafe.Pointer(b))
			if x != y {
				out = append(out, Difference{f.Name, f.wholeString(unsafe.Pointer(a), false), f.wholeString(unsafe.Pointer(b), false)})
			}
		default:
			out = f.appendDifferences(out, unsafe.Pointer(a), unsafe.Pointer(b))
		}
	}
	return out
}

func (f *Field) appendDifferences(out []Difference, a, b unsafe.Pointer) []Difference {
	for i := range f.Count {
		if f.element(a, i) == f.element(b, i) {
			continue
		}
		out = append(out, Difference{f.elementName(i), f.elementString(a, i, false), f.elementString(b, i, false)})
	}
	return out
}
