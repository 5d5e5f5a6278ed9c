package attest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// exampleStatement returns the statement that docs/reference/evidence.md has as an example, and the digest that it has of it.
func exampleStatement(t *testing.T) (*attest.Statement, []byte) {
	t.Helper()
	_, rest, ok := strings.Cut(readDoc(t), "```json\n")
	text, _, ended := strings.Cut(rest, "\n```\n")
	if !ok || !ended {
		t.Fatal("docs/reference/evidence.md has no example of a statement")
	}
	s, err := attest.ParseStatement([]byte(text))
	if err != nil {
		t.Fatalf("the example is no statement: %v", err)
	}
	return s, []byte(text)
}

// documentedType says what docs/reference/evidence.md has as the type of a field.
func documentedType(t *testing.T, at reflect.Type) string {
	t.Helper()
	switch {
	case at == reflect.TypeFor[time.Time]():
		return "time"
	case at == reflect.TypeFor[ib.GUID]():
		return "GUID"
	case at.Kind() == reflect.Uint8 && at.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		var words []string
		for v := range 256 {
			value := reflect.New(at).Elem()
			value.SetUint(uint64(v))
			b, err := value.Interface().(encoding.TextMarshaler).MarshalText()
			if err != nil {
				break
			}
			words = append(words, "`"+string(b)+"`")
		}
		return strings.Join(words, " ")
	}
	switch at.Kind() {
	case reflect.String:
		return "text"
	case reflect.Int, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "number"
	case reflect.Pointer:
		return documentedType(t, at.Elem())
	case reflect.Slice:
		return "list of " + map[string]string{"object": "objects", "text": "texts"}[documentedType(t, at.Elem())]
	case reflect.Struct:
		return "object"
	default:
		t.Fatalf("a statement has a field of kind %v, for which docs/reference/evidence.md has no word", at.Kind())
		return ""
	}
}

// TestStatementTable compares the table of the fields of a statement with the parser: names, order, types, and the value
// for a fact that is not known.
func TestStatementTable(t *testing.T) {
	t.Parallel()
	_, rest, ok := strings.Cut(readDoc(t), "| Field | Type | Not known | Content |\n|---|---|---|---|\n")
	if !ok {
		t.Fatal("docs/reference/evidence.md has no table of types")
	}
	var rows []string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.SplitN(line, "|", 5)
		rows = append(rows, strings.Join(cells[1:4], "|"))
	}
	var want []string
	var walk func(prefix string, at reflect.Type, find func(*attest.Statement) reflect.Value)
	walk = func(prefix string, at reflect.Type, find func(*attest.Statement) reflect.Value) {
		for i := range at.NumField() {
			f := at.Field(i)
			name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			here := func(s *attest.Statement) reflect.Value { return find(s).Field(i) }
			want = append(want, fmt.Sprintf(" `%s%s` | %s | %s ", prefix, name, documentedType(t, f.Type), notKnown(t, here, option == "omitzero")))
			inner, next, mark := f.Type, here, "."
			if inner.Kind() == reflect.Pointer {
				inner, next = inner.Elem(), func(s *attest.Statement) reflect.Value { return here(s).Elem() }
			}
			if inner.Kind() == reflect.Slice {
				inner, mark = inner.Elem(), "[]."
				next = func(s *attest.Statement) reflect.Value { return here(s).Index(0) }
			}
			if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
				walk(prefix+name+mark, inner, next)
			}
		}
	}
	walk("", reflect.TypeFor[attest.Statement](), func(s *attest.Statement) reflect.Value { return reflect.ValueOf(s).Elem() })
	for i := range max(len(want), len(rows)) {
		var is, should string
		if i < len(rows) {
			is = rows[i]
		}
		if i < len(want) {
			should = want[i]
		}
		if is != should {
			t.Fatalf("row %d of the table is\n|%s|\nwant\n|%s|\nof all\n|%s|", i+1, is, should, strings.Join(want, "|\n|"))
		}
	}
}

// notKnown says how a fact of the example is written that is not known, "" where it must be known.
func notKnown(t *testing.T, find func(*attest.Statement) reflect.Value, left bool) string {
	t.Helper()
	s, _ := exampleStatement(t)
	v := find(s)
	if v.IsZero() && v.Kind() != reflect.Uint8 {
		t.Errorf("the example does not show a field that is %v", v.Type())
	}
	v.SetZero()
	b, err := s.Encode()
	if err == nil {
		_, err = attest.ParseStatement(b)
	}
	switch {
	case err != nil, v.Type() == reflect.TypeFor[time.Time](): // which is refused as too old
		return "must be known"
	case left:
		return "left out"
	case v.Kind() == reflect.Struct:
		return "its fields"
	}
	zero, err := json.Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return "`" + string(zero) + "`"
}

// TestExampleStatement: the example is canonical, and its digest is the one that the page has.
func TestExampleStatement(t *testing.T) {
	t.Parallel()
	s, text := exampleStatement(t)
	b, err := s.Encode()
	if err != nil || !bytes.Equal(b, text) {
		t.Errorf("the example is written again as\n%s\n%v", b, err)
	}
	sum := sha256.Sum256(text)
	if want := "its S is `" + hex.EncodeToString(sum[:]) + "`"; !strings.Contains(readDoc(t), want) {
		t.Errorf("docs/reference/evidence.md does not say %q", want)
	}
}
