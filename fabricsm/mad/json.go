package mad

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unsafe"
)

// JSON returns v, a pointer to a value of the layout's type, as an object with the fields of the table in the order of the
// wire. A value that Dump names or writes in hexadecimal is a string, other numbers are numbers. Secrets are redacted.
func (l *Layout) JSON(v any) ([]byte, error) {
	p := l.pointer(v).UnsafePointer()
	var b bytes.Buffer
	b.WriteByte('{')
	first := true
	for i := range l.fields {
		f := &l.fields[i]
		if f.Reserved {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		js, err := json.Marshal(f.jsonValue(p))
		if err != nil {
			return nil, fmt.Errorf("%s field %s: %w", l.Name(), f.Name, err)
		}
		fmt.Fprintf(&b, "%q:%s", f.Name, js)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (f *Field) jsonValue(v unsafe.Pointer) any {
	if f.whole() {
		if f.Format == FormatText {
			return printable([]byte(f.bytes(v)))
		}
		return f.wholeString(v, false)
	}
	if !f.array {
		return f.jsonElement(v, 0)
	}
	list := make([]any, f.Count)
	for i := range list {
		list[i] = f.jsonElement(v, i)
	}
	return list
}

func (f *Field) jsonElement(v unsafe.Pointer, i int) any {
	x := f.element(v, i)
	if _, named := x.(fmt.Stringer); named || f.Format == FormatHex {
		return f.elementString(v, i, false)
	}
	return x
}
