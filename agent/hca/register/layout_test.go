package register

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

// codec is one layout, with its type hidden.
type codec struct {
	name   string
	typ    reflect.Type
	size   int
	decode func(p []byte) (any, error)
	encode func(v any) ([]byte, error)
}

func codecOf[T Sized]() codec {
	var zero T
	typ := reflect.TypeFor[T]()
	return codec{
		name: typ.Name(), typ: typ, size: zero.Size(),
		decode: func(p []byte) (any, error) { return Decode[T](p) },
		encode: func(v any) ([]byte, error) { return Encode(v.(T)) },
	}
}

func codecs() []codec {
	return []codec{
		codecOf[MGIR](), codecOf[MCAM](), codecOf[MFSV](), codecOf[MQIS](), codecOf[MLOCK](),
		codecOf[MNVQC](), codecOf[MNVGC](), codecOf[MNVIA](), codecOf[MNVGN](), codecOf[MFRL](),
		codecOf[MCQS](), codecOf[MCQI](), codecOf[MCC](), codecOf[MCDA](), codecOf[MTCQ](), codecOf[MDSR](),
		codecOf[ComponentCapabilities](), codecOf[ComponentVersion](), codecOf[ComponentActivation](),
		codecOf[VportContext](),
	}
}

// spot is where a field lies: bits from its lowest one up, or whole dwords.
type spot struct{ at, bit, width int }

const whole = -1

// spots lists the fields of a layout.
func spots(typ reflect.Type, base int) map[string]spot {
	all := map[string]spot{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		p := parsePlace(f.Tag.Get("reg"))
		switch {
		case p.width > 0:
			all[f.Name] = spot{base + p.at, p.shift, p.width}
		case f.Type.Kind() == reflect.Array:
			all[f.Name] = spot{base + p.at, whole, int(f.Type.Size()) * 8}
		default:
			for name, s := range spots(f.Type, base+p.at) {
				all[f.Name+"."+name] = s
			}
		}
	}
	return all
}

// published reads the vendor's tables, which were taken down apart from the
// tags.
func published(t *testing.T) map[string]map[spot]string {
	t.Helper()
	text, err := os.ReadFile("testdata/layouts.txt")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]map[spot]string{}
	for _, part := range strings.Split(string(text), "\n= ")[1:] {
		table, rest, _ := strings.Cut(part, "\n")
		tables[table] = map[spot]string{}
		for line := range strings.Lines(strings.TrimSpace(rest)) {
			var s spot
			var name string
			line = strings.Replace(line, " - ", " -1 ", 1)
			if _, err := fmt.Sscanf(line, "0x%x %d %d %s", &s.at, &s.bit, &s.width, &name); err != nil {
				t.Fatalf("%s: %q: %v", table, line, err)
			}
			tables[table][s] = name
		}
	}
	return tables
}

func TestLayoutsArePublished(t *testing.T) {
	tables := published(t)
	for _, c := range codecs() {
		table, ok := tables[c.name]
		if !ok && c.name != "VportContext" { // its table is of Linux, by hand
			t.Errorf("%s: no published table", c.name)
		}
		for name, s := range spots(c.typ, 0) {
			if _, found := table[s]; ok && !found {
				t.Errorf("%s.%s lies at %+v: nothing is published there", c.name, name, s)
			}
		}
	}
}

// Each bit belongs to at most one field, and lies inside the layout.
func TestLayoutsDoNotOverlap(t *testing.T) {
	for _, c := range codecs() {
		owner := map[int]string{}
		for name, s := range spots(c.typ, 0) {
			for i := range s.width {
				bit := 8*s.at + i // of whole dwords
				if s.bit != whole {
					word := 32
					if s.bit+s.width > 32 {
						word = 64
					}
					bit = 8*s.at + word - 1 - s.bit - i
				}
				if before, taken := owner[bit]; taken || bit < 0 || bit >= 8*c.size {
					t.Fatalf("%s.%s: bit %d is outside of %d bytes, or of %q", c.name, name, bit, c.size, before)
				}
				owner[bit] = name
			}
		}
	}
}

// TestRoundTrip checks that a value decoded from any bytes is encoded to bytes that decode to the same value.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range codecs() {
		p := make([]byte, c.size)
		for range 50 {
			for i := range p {
				p[i] = byte(rng.Uint32())
			}
			again(t, c, p)
		}
	}
}

// keys lets cmp compare what does not show itself.
var keys = cmp.Comparer(func(a, b ib.LockKey) bool { return a.Equal(b) })

func again(t *testing.T, c codec, p []byte) {
	t.Helper()
	v, err := c.decode(p)
	if len(p) < c.size {
		if !errors.Is(err, ErrShort) {
			t.Fatalf("%s: decode of %d bytes: %v, want too few", c.name, len(p), err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	q, err := c.encode(v)
	if err != nil || len(q) != c.size {
		t.Fatalf("%s: encode gives %d bytes, %v", c.name, len(q), err)
	}
	for i := range q {
		if q[i]&^p[i] != 0 {
			t.Fatalf("%s: byte %d is %02x, decoded from %02x", c.name, i, q[i], p[i])
		}
	}
	w, err := c.decode(q)
	if diff := cmp.Diff(v, w, keys); diff != "" || err != nil {
		t.Fatalf("%s: %v; it is not read back (-was +is):\n%s", c.name, err, diff)
	}
}

func TestShort(t *testing.T) {
	for _, c := range codecs() {
		for n := range c.size {
			again(t, c, make([]byte, n))
		}
	}
}

func TestRange(t *testing.T) {
	for _, v := range []Sized{MCDA{Handle: 1 << 24}, MGIR{Hardware: HardwareInfo{BaseMAC: 1 << 48}}, MCC{Error: 0xFF, State: 16}} {
		var err error
		switch v := v.(type) {
		case MCDA:
			_, err = Encode(v)
		case MGIR:
			_, err = Encode(v)
		case MCC:
			_, err = Encode(v)
		}
		if !errors.Is(err, ErrRange) {
			t.Errorf("encode %+v: %v, want a value out of range", v, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xA5}, 0x200))
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, c := range codecs() {
			again(t, c, p)
		}
	})
}
