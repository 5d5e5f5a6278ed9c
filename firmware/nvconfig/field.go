package nvconfig

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// errShort is data that ends before the field does.
var errShort = errors.New("the item is too short for it")

// Uint returns a field of at most 64 bits out of the data of its item.
func (f Field) Uint(data []byte) (uint64, error) {
	if f.Width > 64 {
		return 0, fmt.Errorf("%s: %d bits are not a number", f.Name, f.Width)
	}
	if f.Bit+f.Width > 8*len(data) {
		return 0, fmt.Errorf("%s: %w", f.Name, errShort)
	}
	v := uint64(0)
	for bit := f.Bit; bit < f.Bit+f.Width; bit++ {
		v = v<<1 | uint64(data[bit/8]>>(7-bit%8)&1)
	}
	return v, nil
}

// SetUint writes a field of at most 64 bits into the data of its item, and
// leaves all other bits.
func (f Field) SetUint(data []byte, v uint64) error {
	switch {
	case f.Width > 64:
		return fmt.Errorf("%s: %d bits are not a number", f.Name, f.Width)
	case f.Bit+f.Width > 8*len(data):
		return fmt.Errorf("%s: %w", f.Name, errShort)
	case f.Width < 64 && v>>f.Width != 0:
		return fmt.Errorf("%s: %d does not fit into %d bits", f.Name, v, f.Width)
	}
	for bit := f.Bit + f.Width - 1; bit >= f.Bit; bit-- {
		mask := byte(1) << (7 - bit%8)
		data[bit/8] &^= mask
		if v&1 != 0 {
			data[bit/8] |= mask
		}
		v >>= 1
	}
	return nil
}

// bytes returns a field of whole bytes, not copied.
func (f Field) bytes(data []byte) ([]byte, error) {
	if f.Bit+f.Width > 8*len(data) {
		return nil, fmt.Errorf("%s: %w", f.Name, errShort)
	}
	return data[f.Bit/8 : (f.Bit+f.Width)/8], nil
}

// Format returns the field as text that Set takes. Text that an adapter must not hold (not ASCII, or bytes after its end)
// is quoted; Set refuses it.
func (f Field) Format(data []byte) (string, error) {
	if f.Width > 64 {
		b, err := f.bytes(data)
		if err != nil {
			return "", err
		}
		return f.formatBytes(b), nil
	}
	v, err := f.Uint(data)
	if err != nil {
		return "", err
	}
	return f.formatNumber(v), nil
}

func (f Field) formatBytes(b []byte) string {
	switch f.Kind {
	case Text:
		s := string(bytes.TrimRight(b, "\x00"))
		if !plainText(s) {
			return strconv.QuoteToASCII(s)
		}
		return s
	case UUIDs:
		return UUID(b).String()
	default:
		return "0x" + hex.EncodeToString(b)
	}
}

func (f Field) formatNumber(v uint64) string {
	switch f.Kind {
	case Flag:
		if v == 0 {
			return "False"
		}
		return "True"
	case Enum:
		for _, word := range f.Values {
			if word.Number == v {
				return word.Name
			}
		}
		return strconv.FormatUint(v, 10)
	case Hex:
		return fmt.Sprintf("0x%0*x", (f.Width+3)/4, v)
	case GUID:
		return ib.GUID(v).String()
	default:
		return strconv.FormatUint(v, 10)
	}
}

// Set writes a field from its text, and leaves all other bits. Words are those of
// the field in any case; numbers are taken for them.
func (f Field) Set(data []byte, text string) error {
	if f.Width > 64 {
		b, err := f.parseBytes(text)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		own, err := f.bytes(data)
		if err != nil {
			return err
		}
		clear(own[copy(own, b):])
		return nil
	}
	v, err := f.parseNumber(text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return f.SetUint(data, v)
}

func (f Field) parseBytes(text string) ([]byte, error) {
	switch f.Kind {
	case Text:
		if len(text) > f.Width/8 || !plainText(text) {
			return nil, fmt.Errorf("%q: want at most %d printable ASCII characters", clip(text), f.Width/8)
		}
		return []byte(text), nil
	case UUIDs:
		u, err := ParseUUID(text)
		return u[:], err
	default:
		b, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		if err != nil || len(b) != f.Width/8 {
			return nil, fmt.Errorf("%q: want %d hexadecimal digits", clip(text), f.Width/4)
		}
		return b, nil
	}
}

func (f Field) parseNumber(text string) (uint64, error) {
	switch f.Kind {
	case Flag:
		switch strings.ToLower(text) {
		case "false", "0":
			return 0, nil
		case "true", "1":
			return 1, nil
		}
		return 0, fmt.Errorf("%q: want True or False", clip(text))
	case Enum:
		for _, word := range f.Values {
			if strings.EqualFold(word.Name, text) {
				return word.Number, nil
			}
		}
	case GUID:
		g, err := ib.ParseGUID(text)
		return uint64(g), err
	default:
	}
	v, err := strconv.ParseUint(text, 0, f.Width)
	switch {
	case err != nil && f.Kind == Enum:
		return 0, fmt.Errorf("%q: want %s", clip(text), f.Words())
	case err != nil:
		return 0, fmt.Errorf("%q: want a number of at most %d bits", clip(text), f.Width)
	}
	return v, nil
}

// Words lists the words of an Enum, for people.
func (f Field) Words() string {
	names := []string{}
	for _, v := range f.Values {
		names = append(names, v.Name)
	}
	return strings.Join(names, ", ")
}

// plainText reports printable ASCII.
func plainText(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// clip shortens text from outside, for errors.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
