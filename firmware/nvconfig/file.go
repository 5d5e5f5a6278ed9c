package nvconfig

import (
	"bytes"
	"errors"
	"fmt"
)

// Fingerprint is what a file begins with.
const Fingerprint = "MLNX.CONFIG.BIN!"

// MaxFile bounds a file in bytes. Those of a whole hardening list have about 1000.
const MaxFile = 64 << 10

// File is a file that was read.
type File struct {
	Component Component
	// Items are all but those of the signature, in the order of the file.
	Items     []Item
	Signature Signature
	covered   []byte // what the signature is over
}

// Parse reads a file. It refuses all that another reader might take otherwise:
// unknown classes, reserved bits, lengths that do not fit, a setting that is
// there twice, an order that create_conf does not make, bytes behind the
// signature. It does not verify: see File.Verify. Data is not copied.
func Parse(b []byte) (*File, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("NVCONFIG file: %d bytes, more than %d", len(b), MaxFile)
	}
	rest, ok := bytes.CutPrefix(b, []byte(Fingerprint))
	if !ok {
		return nil, errors.New("NVCONFIG file: does not begin with " + Fingerprint + ": it is not such a file")
	}
	f := &File{covered: b}
	for len(rest) > 0 {
		at := len(b) - len(rest)
		var i Item
		var err error
		if i, rest, err = ParseItem(rest); err != nil {
			return nil, fmt.Errorf("NVCONFIG file, byte %d: %w", at, err)
		}
		if isSignature(i.Address) {
			f.covered = b[:at]
			if f.Signature, err = parseSignature(b[at:]); err != nil {
				return nil, fmt.Errorf("NVCONFIG file, byte %d: %w", at, err)
			}
			break
		}
		f.Items = append(f.Items, i)
	}
	c, err := checkItems(f.Items)
	if err == nil {
		err = checkOrder(f.Items, c)
	}
	if err == nil {
		err = checkFileID(f.Items[0], c)
	}
	if err != nil {
		return nil, fmt.Errorf("NVCONFIG file: %w", err)
	}
	f.Component = c
	return f, nil
}

// Settings returns the items that do not describe the file or the devices it is for.
func (f *File) Settings() []Item {
	var out []Item
	for _, i := range f.Items {
		if _, ok := componentOf(i.Address); !ok && i.Address.Class() != FileItem {
			out = append(out, i)
		}
	}
	return out
}

// PSIDs returns the boards that the file is for, as text; a branch follows after a slash. If there are none, the file is
// for named devices (DeviceIDs).
func (f *File) PSIDs() []string {
	var out []string
	for _, i := range f.Items {
		if i.Address == FileItemAddress(idApplicable) {
			l, _ := LayoutOf(i.Address)
			psid, branch := l.Fields[0].formatBytes(i.Data[:16]), l.Fields[1].formatBytes(i.Data[16:])
			if branch != "" {
				psid += "/" + branch
			}
			out = append(out, psid)
		}
	}
	return out
}

// DeviceIDs returns the devices that the file is for.
func (f *File) DeviceIDs() [][DeviceIDSize]byte {
	var out [][DeviceIDSize]byte
	for _, i := range f.Items {
		if i.Address == FileItemAddress(idDeviceID) {
			out = append(out, [DeviceIDSize]byte(i.Data))
		}
	}
	return out
}

// unsigned returns fingerprint and items: the bytes that a signature covers.
func unsigned(items []Item) ([]byte, error) {
	items, c, err := Arrange(items)
	if err != nil {
		return nil, fmt.Errorf("make NVCONFIG file: %w", err)
	}
	if err := checkFileID(items[0], c); err != nil {
		return nil, fmt.Errorf("make NVCONFIG file: %w", err)
	}
	b := []byte(Fingerprint)
	for _, i := range items {
		b = i.Append(b)
	}
	return b, nil
}
