package native

import (
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/topospec"
)

// Limits of a file.
const (
	maxSize  = 512 << 20
	maxDepth = 6
)

// shape is the shape of a value.
type shape uint8

const (
	scalar shape = iota // a word: string, number or boolean, depending on the field
	list
	table
)

var shapeNames = []string{"a single value", "a list", "a table of keys"}

// value is a part of a file, of either form.
type value struct {
	shape shape
	text  bool // a scalar that was quoted
	line  int
	word  string
	keys  []string // of a table
	items []value  // of a table or list
}

// reader turns a tree into a revision and records the problems in it.
type reader struct{ topospec.Problems }

func (r *reader) wrong(v *value, object, cause, do string) { r.Add(v.line, object, cause, do) }

func (r *reader) is(v *value, s shape, object string) bool {
	if v.shape != s {
		r.wrong(v, object, "it is "+shapeNames[v.shape], "want "+shapeNames[s])
		return false
	}
	return true
}

// field says how one key of a table is read.
type field struct {
	key  string
	read func(v *value, object string)
}

// table reads the keys of a table by their fields; each may be there once.
func (r *reader) table(v *value, object string, fields []field) {
	if !r.is(v, table, object) {
		return
	}
	for i, key := range v.keys {
		for _, earlier := range v.keys[:i] {
			if earlier == key {
				r.wrong(&v.items[i], object, fmt.Sprintf("key %q is there twice", key), "remove one")
			}
		}
		known := false
		for j := range fields {
			if fields[j].key == key {
				known = true
				fields[j].read(&v.items[i], join(object, key))
			}
		}
		if !known {
			var keys []string
			for j := range fields {
				keys = append(keys, fields[j].key)
			}
			r.wrong(&v.items[i], object, fmt.Sprintf("unknown key %.40q", key), "the keys are "+strings.Join(keys, ", "))
		}
	}
}

func join(object, key string) string {
	if object == "" {
		return key
	}
	return object + " " + key
}

// list calls read for each item of a list, at most most of them.
func (r *reader) list(v *value, object string, most int, read func(v *value, object string)) {
	if !r.is(v, list, object) {
		return
	}
	if len(v.items) > most {
		r.wrong(v, object, fmt.Sprintf("%d items, the most is %d", len(v.items), most), "")
		return
	}
	for i := range v.items {
		if r.Full() {
			return
		}
		read(&v.items[i], object)
	}
}

func (r *reader) string(to *string) func(*value, string) {
	return func(v *value, object string) {
		if r.is(v, scalar, object) {
			*to = v.word
		}
	}
}

// number reads a decimal number up to most.
func number[T ~uint8 | ~uint16 | ~int | ~uint64](r *reader, to *T, most uint64) func(*value, string) {
	return func(v *value, object string) {
		if !r.is(v, scalar, object) {
			return
		}
		n, err := strconv.ParseUint(v.word, 10, 64)
		if err != nil || n > most || v.text {
			r.wrong(v, object, fmt.Sprintf("%.40q", v.word), fmt.Sprintf("want a number from 0 to %d", most))
			return
		}
		*to = T(n)
	}
}

func (r *reader) boolean(to *bool) func(*value, string) {
	return func(v *value, object string) {
		if !r.is(v, scalar, object) {
			return
		}
		if v.text || v.word != "true" && v.word != "false" {
			r.wrong(v, object, fmt.Sprintf("%.40q", v.word), "want true or false")
			return
		}
		*to = v.word == "true"
	}
}

// parsed reads a word by a function of its own.
func (r *reader) parsed(parse func(string) error) func(*value, string) {
	return func(v *value, object string) {
		if !r.is(v, scalar, object) {
			return
		}
		if err := parse(v.word); err != nil {
			r.wrong(v, object, err.Error(), "")
		}
	}
}

// unmarshaler is what names itself in text.
type unmarshaler interface{ UnmarshalText([]byte) error }

func (r *reader) named(to unmarshaler) func(*value, string) {
	return r.parsed(func(s string) error { return to.UnmarshalText([]byte(s)) })
}
