package nvconfig

import "fmt"

// Item is a setting: a header, and data of a multiple of 4 bytes, at most MaxData.
type Item struct {
	Header
	Data []byte
}

// OEMItem returns an item as our files carry it: priority OEM, and no later priority may write over it.
func OEMItem(a Address, data []byte) Item {
	return Item{Header{Priority: OEM, ReadEnabled: true, Address: a}, data}
}

// Check refuses a header that Header.Check refuses, and data of a length that
// the item cannot have: that of its layout where there is one.
func (i Item) Check() error {
	if err := i.Header.Check(); err != nil {
		return err
	}
	if err := checkLength(i.Address, len(i.Data)); err != nil {
		return err
	}
	if l, ok := LayoutOf(i.Address); ok && len(i.Data) != l.Size {
		return fmt.Errorf("%v (%s): %d bytes of data, want %d", i.Address, l.Name, len(i.Data), l.Size)
	}
	return nil
}

func checkLength(a Address, n int) error {
	if n == 0 || n%4 != 0 || n > MaxData {
		return fmt.Errorf("%v: %d bytes of data, want 4 to %d, a multiple of 4", a, n, MaxData)
	}
	return nil
}

// Append adds header and data. It panics if the data is longer than an item's can be.
func (i Item) Append(b []byte) []byte {
	return append(i.Header.Append(b, len(i.Data)), i.Data...)
}

// ParseItem reads the item at the start of b, and returns the bytes after it. The data is not copied. It refuses the items
// that Check refuses.
func ParseItem(b []byte) (i Item, rest []byte, err error) {
	h, n, err := ParseHeader(b)
	if err != nil {
		return Item{}, nil, err
	}
	if b = b[HeaderSize:]; n > len(b) {
		return Item{}, nil, fmt.Errorf("%v: its header says %d bytes of data, %d are there", h.Address, n, len(b))
	}
	i = Item{h, b[:n:n]}
	if err := i.Check(); err != nil {
		return Item{}, nil, err
	}
	return i, b[n:], nil
}
