package mad

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
)

func TestRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, c := range allTypes() {
		t.Run(c.layout.Name(), func(t *testing.T) {
			for range 50 {
				v, back := c.fresh(), c.fresh()
				v.fill(rnd.Uint64)
				back.fill(rnd.Uint64) // decoding must overwrite every field
				p := bytes.Repeat([]byte{0xA5}, c.layout.Size()+3)
				if err := v.encode(p); err != nil {
					t.Fatal(err)
				}
				if tail := p[c.layout.Size():]; !bytes.Equal(tail, []byte{0xA5, 0xA5, 0xA5}) {
					t.Errorf("bytes behind the attribute became %x", tail)
				}
				if err := back.decode(p); err != nil {
					t.Fatal(err)
				}
				if !v.same(back) {
					t.Errorf("got %+v, want %+v", back.value, v.value)
				}
			}
		})
	}
}

func TestEveryPrefixIsShort(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, c := range allTypes() {
		t.Run(c.layout.Name(), func(t *testing.T) {
			for n := range c.layout.Size() {
				v, before := c.fresh(), c.fresh()
				v.fill(rnd.Uint64)
				p := make([]byte, c.layout.Size())
				if err := v.encode(p); err != nil {
					t.Fatal(err)
				}
				if err := before.decode(p); err != nil {
					t.Fatal(err)
				}
				short := bytes.Repeat([]byte{0x5A}, n)
				if err := v.decode(short); !errors.Is(err, ErrShort) {
					t.Fatalf("decode %d bytes: %v, want ErrShort", n, err)
				}
				if !v.same(before) {
					t.Fatalf("decode %d bytes changed the value", n)
				}
				if err := v.encode(short); !errors.Is(err, ErrShort) || !bytes.Equal(short, bytes.Repeat([]byte{0x5A}, n)) {
					t.Fatalf("encode into %d bytes: %v, left %x", n, err, short)
				}
			}
		})
	}
	if err, want := Decode(nil, &LedInfo{}), "LedInfo: too few bytes: 0, want 4"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestEncodeRange(t *testing.T) {
	tests := []struct {
		name   string
		encode func(p []byte) error
		want   string
	}{
		{
			"scalar", func(p []byte) error { return Encode(p, &PortInfo{LMC: 8}) },
			"PortInfo field LMC: value does not fit its field: 8, largest is 7",
		},
		{
			"across words", func(p []byte) error { return Encode(p, &NodeInfo{VendorID: 1 << 24}) },
			"NodeInfo field VendorID: value does not fit its field: 16777216, largest is 16777215",
		},
		{
			"array", func(p []byte) error { return Encode(p, &SLtoVLMappingTable{VL: [16]ib.VL{3: 16}}) },
			"SLtoVLMappingTable field VL[3]: value does not fit its field: 16, largest is 15",
		},
		{
			"element of an array", func(p []byte) error { return Encode(p, &VLArbitration{Entry: [32]VLArbEntry{7: {VL: 99}}}) },
			"VLArbitration field Entry[7].VL: value does not fit its field: 99, largest is 15",
		},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			p := bytes.Repeat([]byte{0xFF}, DataSize)
			err := c.encode(p)
			if !errors.Is(err, ErrRange) || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if p[0] != 0 || p[7] != 0 {
				t.Errorf("bytes after the error %x, want zeros", p)
			}
		})
	}
}

func TestNoAllocations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, c := range allTypes() {
		v := c.fresh()
		v.fill(rnd.Uint64)
		kept := c.fresh() // holds the same keys, as a core that knows them does
		p := make([]byte, c.layout.Size())
		if err := errors.Join(v.encode(p), kept.decode(p)); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _ = v.decode(p) }); n != 0 {
			t.Errorf("decode %s: %v allocations", c.layout.Name(), n)
		}
		if n := testing.AllocsPerRun(100, func() { _ = v.encode(p) }); n != 0 {
			t.Errorf("encode %s: %v allocations", c.layout.Name(), n)
		}
		if !v.same(kept) {
			t.Errorf("%s changed", c.layout.Name())
		}
	}
}

func TestDynamicCodec(t *testing.T) {
	l, ok := LookupLayout(ClassSubn, AttrSMInfo)
	if !ok || l.Name() != "SMInfo" || l.Size() != 21 {
		t.Fatalf("layout %v, %v", l, ok)
	}
	want := SMInfo{GUID: 7, SMKey: ib.NewSMKey(9), ActCount: 1, Priority: 14, SMState: ib.SMStandby}
	p := make([]byte, DataSize)
	if err := l.Encode(p, &want); err != nil {
		t.Fatal(err)
	}
	got, err := l.Decode(p)
	if err != nil || *got.(*SMInfo) != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := l.Decode(p[:20]); !errors.Is(err, ErrShort) {
		t.Errorf("error %v, want ErrShort", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a value of another type did not panic")
		}
	}()
	_ = l.Encode(p, &NodeInfo{})
}

func BenchmarkCodec(b *testing.B) {
	rnd := rand.New(rand.NewPCG(9, 10))
	for _, c := range allTypes() {
		v := c.fresh()
		v.fill(rnd.Uint64)
		kept := c.fresh()
		p := make([]byte, c.layout.Size())
		if err := errors.Join(v.encode(p), kept.decode(p)); err != nil {
			b.Fatal(err)
		}
		b.Run("Decode/"+c.layout.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := v.decode(p); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Encode/"+c.layout.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := v.encode(p); err != nil {
					b.Fatal(err)
				}
			}
		})
		if !v.same(kept) {
			b.Errorf("%s changed", c.layout.Name())
		}
	}
}

// FuzzCodec reads any bytes as any attribute. The value is written to the same bytes, reserved bits aside, and read again
// as the same value.
func FuzzCodec(f *testing.F) {
	for i, m := range frames(f) {
		f.Add(uint8(i), m.mad.Data())
	}
	types := allTypes()
	for i, c := range types {
		if strings.HasSuffix(c.layout.Name(), "Record") {
			f.Add(uint8(i), saFrames(f, "answer", "NR")[0][offSAData:])
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, p []byte) {
		c := types[int(kind)%len(types)]
		v, back := c.fresh(), c.fresh()
		if err := v.decode(p); err != nil {
			if len(p) >= c.layout.Size() || !errors.Is(err, ErrShort) {
				t.Fatalf("decode %s from %d bytes: %v", c.layout.Name(), len(p), err)
			}
			return
		}
		q := make([]byte, c.layout.Size())
		if err := v.encode(q); err != nil {
			t.Fatal(err)
		}
		if want := meant(c.layout, p); !bytes.Equal(q, want) {
			t.Fatalf("%s re-encoded to\n%x, want\n%x", c.layout.Name(), q, want)
		}
		if err := back.decode(q); err != nil || !v.same(back) {
			t.Fatalf("%s read again as %+v, %v, want %+v", c.layout.Name(), back.value, err, v.value)
		}
	})
}

// meant is the attribute at the start of p with its reserved bits cleared.
func meant(l *Layout, p []byte) []byte {
	q := bytes.Clone(p[:l.Size()])
	for _, f := range l.Fields() {
		for b := f.Bit; f.Reserved && b < f.End(); b++ {
			q[b/8] &^= 0x80 >> (b % 8)
		}
	}
	return q
}
