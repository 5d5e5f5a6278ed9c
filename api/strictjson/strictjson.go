// Package strictjson refuses JSON that two readers could understand differently, and JSON that costs its reader more than
// its sender.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxDepth bounds the nesting of a request body. The deepest shape of the API
// has 4 levels.
const maxDepth = 16

// keyLetters are those the keys of the API are made of. Encoding/json would
// match keys in any case, and with a few look-alikes of Unicode.
const keyLetters = "abcdefghijklmnopqrstuvwxyz0123456789_"

// ErrTooMany is that a body has more values than it may have.
var ErrTooMany = errors.New("more values than any request has")

var (
	errTooDeep  = fmt.Errorf("nested deeper than %d levels", maxDepth)
	errTrailing = errors.New("more than one JSON value")
)

// Check reports whether data is exactly one JSON value, not nested too
// deeply, of at most so many values, and has no object with a key twice or in another case.
func Check(data []byte, most int) error { return CheckOther(data, most) }

// CheckOther is as Check, for a form that others defined: these keys may be in it, though not all of their letters are lower case.
func CheckOther(data []byte, most int, also ...string) error {
	return check(data, &form{left: most, also: also})
}

// Unmarshal decodes data into v as encoding/json does, if CheckMaps and CheckBase64 find nothing.
func Unmarshal(data []byte, v any, most int, maps ...string) error {
	if err := CheckMaps(data, most, maps...); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	return CheckBase64(data, v)
}

// CheckMaps is as Check, for a form in which the objects that are values of these keys map names to values: their own keys are data,
// and may be written in any way. None of them may be read into a struct.
func CheckMaps(data []byte, most int, maps ...string) error {
	return check(data, &form{left: most, maps: maps})
}

// form is what a value is held to while it is read.
type form struct {
	left int      // how many more values there may be
	also []string // keys that need not be lower case
	maps []string // keys whose objects have keys that are data
}

func check(data []byte, f *form) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := f.value(dec, 0, false); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// value reads one value. The keys of a map are data.
func (f *form) value(dec *json.Decoder, depth int, isMap bool) error {
	if f.left--; f.left < 0 {
		return ErrTooMany
	}
	tok, err := dec.Token()
	if err != nil {
		return plainEOF(err)
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return errTooDeep
	}
	keys := map[string]bool{}
	for dec.More() {
		name := ""
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return plainEOF(err)
			}
			name, _ = key.(string) // the decoder lets nothing else be a key
			switch {
			case keys[name]:
				return fmt.Errorf("key %q appears twice", name)
			case isMap, slices.Contains(f.also, name):
			case strings.Trim(name, keyLetters) != "":
				return fmt.Errorf("key %q: keys are lower case", name)
			case slices.ContainsFunc(f.also, func(key string) bool { return strings.EqualFold(key, name) }):
				return fmt.Errorf("key %q: it is written in another case", name)
			}
			keys[name] = true
		}
		if err := f.value(dec, depth+1, delim == '{' && !isMap && slices.Contains(f.maps, name)); err != nil {
			return err
		}
	}
	_, err = dec.Token() // the closing bracket
	return plainEOF(err)
}

func plainEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
