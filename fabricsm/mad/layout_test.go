package mad

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

// row is a line of testdata/layouts.txt.
type row struct {
	Bit, Width, Count int
	Name              string // "-": reserved
}

// readLayouts reads the published tables, which were taken down independently
// of the struct tags.
func readLayouts(t *testing.T) map[string][]row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "layouts.txt"))
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]row{}
	for _, part := range strings.Split(string(text), "\n= ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		for line := range strings.Lines(strings.TrimSpace(rest)) {
			r := row{Count: 1}
			if _, err := fmt.Sscanf(line, "%d %d %s", &r.Bit, &r.Width, &r.Name); err != nil {
				t.Fatalf("%s: %q: %v", name, line, err)
			}
			if n, count, ok := strings.Cut(r.Name, "*"); ok {
				r.Name = n
				if _, err := fmt.Sscan(count, &r.Count); err != nil {
					t.Fatalf("%s: %q: %v", name, line, err)
				}
			}
			tables[name] = append(tables[name], r)
		}
	}
	return tables
}

// rows returns a layout in the form of the published table.
func (l *Layout) rows() []row {
	var rows []row
	for _, f := range l.Fields() {
		if !f.Reserved {
			rows = append(rows, row{f.Bit, f.Width, f.Count, f.Name})
			continue
		}
		if n := len(rows); n > 0 && rows[n-1].Name == "-" {
			rows[n-1].Width += f.Width
			continue
		}
		rows = append(rows, row{f.Bit, f.Width, 1, "-"})
	}
	return rows
}

// TestLayoutsArePublishedTables: every layout is the published table, row by row: no field at another place, no overlap,
// and reserved bits only where the table has them.
func TestLayoutsArePublishedTables(t *testing.T) {
	tables := readLayouts(t)
	for _, c := range allTypes() {
		if d := cmp.Diff(tables[c.layout.Name()], c.layout.rows()); d != "" {
			t.Errorf("%s (-table +layout):\n%s", c.layout.Name(), d)
		}
		delete(tables, c.layout.Name())
	}
	for name := range tables {
		t.Errorf("the table of %s has no type", name)
	}
}

// TestCodecAgreesWithTables: the compiled plans agree with a slow reader that takes bit after bit from the places of the
// published tables.
func TestCodecAgreesWithTables(t *testing.T) {
	tables := readLayouts(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range allTypes() {
		t.Run(c.layout.Name(), func(t *testing.T) {
			for range 20 {
				v := c.fresh()
				v.fill(rnd.Uint64)
				p := make([]byte, c.layout.Size())
				if err := v.encode(p); err != nil {
					t.Fatal(err)
				}
				checkAgainstTable(t, c.layout, v, p, tables[c.layout.Name()])
			}
		})
	}
}

func checkAgainstTable(t *testing.T, l *Layout, v codec, p []byte, table []row) {
	t.Helper()
	fields := map[string]*Field{}
	for i := range l.fields {
		fields[l.fields[i].Name] = &l.fields[i]
	}
	for _, r := range table {
		for i := range r.Count {
			at := r.Bit + i*r.Width
			if r.Name == "-" {
				for b := range r.Width {
					if slowBits(p, at+b, 1) != 0 {
						t.Errorf("reserved bit %d is set", at+b)
					}
				}
				continue
			}
			want, ok := fieldBits(fields[r.Name], v.at, i)
			if !ok {
				if got, want := [16]byte(p[at/8:]), wideBits(fields[r.Name].element(v.at, i)); got != want {
					t.Errorf("%s is %x on the wire, want %x", r.Name, got, want)
				}
				continue
			}
			if got := slowBits(p, at, r.Width); got != want {
				t.Errorf("%s[%d] is %#x on the wire, want %#x", r.Name, i, got, want)
			}
		}
	}
}

// wideBits returns a value that is wider than a number.
func wideBits(v any) [16]byte {
	if k, ok := v.(ib.ServiceKey); ok {
		return k.Reveal()
	}
	return v.(ib.GID)
}

func slowBits(p []byte, bit, width int) (v uint64) {
	for i := bit; i < bit+width; i++ {
		v = v<<1 | uint64(p[i/8]>>(7-i%8)&1)
	}
	return v
}

func TestCompileRefuses(t *testing.T) {
	type element struct {
		A uint8 `mad:"0,8"`
	}
	tests := []struct {
		name string
		v    any
		want string
	}{
		{"no struct", 1, "layout of int: want a struct"},
		{"gap", struct {
			A uint8 `mad:"0,8"`
			B uint8 `mad:"9,7"`
		}{}, `field "B" begins at bit 9, want 8`},
		{"overlap", struct {
			A uint16 `mad:"0,16"`
			B uint8  `mad:"8,8"`
		}{}, `field "B" begins at bit 8, want 16`},
		{"not whole bytes", struct {
			A uint8 `mad:"0,7"`
		}{}, "7 bits, want whole bytes"},
		{"nothing", struct{}{}, "0 bits, want whole bytes"},
		{"too long", struct {
			A [300]uint8 `mad:"0,8"`
		}{}, "2400 bits, want whole bytes, at most 232"},
		{"no tag", struct{ A uint8 }{}, `field A: tag ""`},
		{"bad format", struct {
			A uint8 `mad:"0,8,oct"`
		}{}, `tag "0,8,oct"`},
		{"bad offset", struct {
			A uint8 `mad:"x,8"`
		}{}, "bad bit offset"},
		{"bad width", struct {
			A uint8 `mad:"0,0"`
		}{}, "bad width"},
		{"hidden", struct {
			a uint8 `mad:"0,8"`
		}{}, "field a: not exported"},
		{"too wide", struct {
			A uint8 `mad:"0,16"`
		}{}, "16 bits at bit 0 do not fit uint8"},
		{"wide and unaligned", struct {
			A uint8  `mad:"0,1"`
			B uint64 `mad:"1,63"`
		}{}, "63 bits at bit 1 do not fit uint64"},
		{"no wire form", struct {
			A string `mad:"0,8"`
		}{}, "type string has no wire form"},
		{"unaligned GID", struct {
			A uint8  `mad:"0,4"`
			B ib.GID `mad:"4,128"`
			C uint8  `mad:"132,4"`
		}{}, "a GID is 128 bits at a byte boundary"},
		{"unaligned ServiceKey", struct {
			A uint8         `mad:"0,4"`
			B ib.ServiceKey `mad:"4,128"`
			C uint8         `mad:"132,4"`
		}{}, "a ServiceKey is 128 bits at a byte boundary"},
		{"embedded at another place", struct {
			A      uint8 `mad:"0,8"`
			SMInfo `mad:"16,168"`
		}{}, `field "GUID" begins at bit 16, want 8`},
		{"embedded at no place", struct {
			SMInfo `mad:"far"`
		}{}, `embedded SMInfo: tag "far"`},
		{"overlapping elements", struct {
			A [2]element `mad:"0,4"`
		}{}, "begins at bit 4, want 8"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			l, err := compile(reflect.TypeOf(c.v))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("layout %v, error %v, want one with %q", l, err, c.want)
			}
		})
	}
}

func TestLayoutOfPanics(t *testing.T) {
	defer func() {
		if got, want := fmt.Sprint(recover()), "mad: layout of string: want a struct"; got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
	}()
	LayoutOf[string]()
}

// TestNestedStruct: a struct may hold another, as records of subnet administration hold attributes.
func TestNestedStruct(t *testing.T) {
	type record struct {
		LID    ib.LID   `mad:"0,16"`
		_      reserved `mad:"16,48"`
		SMInfo SMInfo   `mad:"64,168"`
	}
	want := record{LID: 0x1234, SMInfo: SMInfo{GUID: 0x0102030405060708, Priority: 5, SMState: ib.SMMaster}}
	p := make([]byte, LayoutOf[record]().Size())
	if err := Encode(p, &want); err != nil {
		t.Fatal(err)
	}
	var got record
	if err := Decode(p, &got); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if len(p) != 29 || p[8] != 1 || p[28] != 0x53 {
		t.Errorf("bytes %x", p)
	}
	if d := Diff(&want, &record{}); len(d) != 4 || d[3].Field != "SMInfo.SMState" {
		t.Errorf("differences %v", d)
	}
}
