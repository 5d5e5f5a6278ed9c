package strictjson

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// CheckBase64 reports whether the strings in data that were decoded into byte strings of v are their only encoding:
// base64 with padding, nothing else in it, and zero in the bits of the last letter that are left over. Package json
// passes over these.
func CheckBase64(data []byte, v any) error {
	t := reflect.TypeOf(v)
	if !hasBytes(t) {
		return nil
	}
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	return checkBytes(raw, t, "body")
}

var (
	byteString  = reflect.TypeFor[[]byte]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	withBytes   sync.Map // of reflect.Type: whether there are byte strings in it
)

// hasBytes reports whether a type has byte strings in it.
func hasBytes(t reflect.Type) bool {
	if known, ok := withBytes.Load(t); ok {
		return known.(bool)
	}
	withBytes.Store(t, false) // of a type in itself
	found := false
	switch {
	case t == byteString:
		found = true
	case reflect.PointerTo(t).Implements(unmarshaler): // reads what it likes
	default:
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			found = hasBytes(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				found = hasBytes(t.Field(i).Type) || found
			}
		default:
		}
	}
	withBytes.Store(t, found)
	return found
}

// checkBytes compares a value in JSON with the result of decoding it into a type.
func checkBytes(raw any, t reflect.Type, place string) error {
	if raw == nil || !hasBytes(t) {
		return nil
	}
	if t == byteString {
		text, _ := raw.(string)
		if b, err := base64.StdEncoding.Strict().DecodeString(text); err != nil || base64.StdEncoding.EncodedLen(len(b)) != len(text) {
			return fmt.Errorf("%s: want base64 with padding, no other character, and zero in the bits that are left over", place)
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return checkBytes(raw, t.Elem(), place)
	case reflect.Slice, reflect.Array:
		list, _ := raw.([]any)
		for i, one := range list {
			if err := checkBytes(one, t.Elem(), fmt.Sprintf("%s[%d]", place, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		object, _ := raw.(map[string]any)
		for key, one := range object {
			if err := checkBytes(one, t.Elem(), place+"."+key); err != nil {
				return err
			}
		}
	case reflect.Struct:
		object, _ := raw.(map[string]any)
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inner, at := any(object), place
			if !f.Anonymous || name != "" {
				inner, at = object[name], place+"."+name
			}
			if err := checkBytes(inner, f.Type, at); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}
