package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// maxDepth bounds the nesting of a request body. The deepest shape of the API
// has 4 levels.
const maxDepth = 16

// maxValues bounds the values of a request body, nested ones included. The
// largest shape of the API, an inventory upload, has some 200. Without it a
// body of a million zeros costs a stranger nothing and the service, which
// explains what is wrong with each, a second and 600 MB.
const maxValues = 4096

// keyLetters are those the keys of the API are made of. Encoding/json would
// match keys in any case, and with a few look-alikes of Unicode.
const keyLetters = "abcdefghijklmnopqrstuvwxyz0123456789_"

var (
	errTooDeep  = fmt.Errorf("nested deeper than %d levels", maxDepth)
	errTooMany  = errors.New("more values than any request has")
	errTrailing = errors.New("more than one JSON value")
)

// strictJSON is huma's JSON format with a decoder that refuses what two
// readers could understand differently: doubled keys, keys in another case,
// trailing values, byte strings in another form of base64.
// Unknown keys are refused later, by the schema.
func strictJSON() huma.Format {
	return huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalStrict}
}

func unmarshalStrict(data []byte, v any) error {
	if err := checkJSON(data, maxValues); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	return checkBase64(data, v)
}

// checkJSON reports whether data is exactly one JSON value, not nested too
// deeply, of at most so many values, and has no object with a key twice or in another case.
func checkJSON(data []byte, most int) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	left := most
	if err := checkValue(dec, 0, &left); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// checkValue reads one value; left is how many more there may be.
func checkValue(dec *json.Decoder, depth int, left *int) error {
	if *left--; *left < 0 {
		return errTooMany
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
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return plainEOF(err)
			}
			name, _ := key.(string) // the decoder lets nothing else be a key
			switch {
			case keys[name]:
				return fmt.Errorf("key %q appears twice", name)
			case strings.Trim(name, keyLetters) != "":
				return fmt.Errorf("key %q: keys are lower case", name)
			}
			keys[name] = true
		}
		if err := checkValue(dec, depth+1, left); err != nil {
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
