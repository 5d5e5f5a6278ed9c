package ib

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestParseGUID(t *testing.T) {
	checkParse(t, ParseGUID, []parseCase[GUID]{
		{in: "0x0002c90300a1b2c3", want: 0x0002C90300A1B2C3},
		{in: "0x1", want: 1},
		{in: "0xFFFFFFFFFFFFFFFF", want: ^GUID(0)},
		{in: "0002:c903:00a1:b2c3", want: 0x0002C90300A1B2C3},
		{in: "", err: `GUID "": want 0x and hexadecimal digits`},
		{in: "0x", err: `GUID "0x": want 0x and hexadecimal digits`},
		{in: "0002c90300a1b2c3", err: `GUID "0002c90300a1b2c3": want 0x and hexadecimal digits`},
		{in: "0x10000000000000000", err: `GUID "0x10000000000000000": value out of range`},
		{in: "0x00000000000000001", err: `GUID "0x00000000000000001": value out of range`},
		{in: "0x-1", err: `GUID "0x-1": want 0x and hexadecimal digits`},
		{in: "0x1_0", err: `GUID "0x1_0": want 0x and hexadecimal digits`},
		{in: "0002:c903:00a1:b2g3", err: `GUID "0002:c903:00a1:b2g3": want xxxx:xxxx:xxxx:xxxx in hexadecimal`},
		{in: "002:c9031:00a1:b2c3", err: `GUID "002:c9031:00a1:b2c3": want xxxx:xxxx:xxxx:xxxx in hexadecimal`},
	})
}

func TestGUIDText(t *testing.T) {
	for _, g := range []GUID{0, 1, 0x0002C90300A1B2C3, ^GUID(0)} {
		checkText(t, g)
	}
}

// TestTextIsThatOfFmt: the names of GUIDs, places and P_Keys are keys of stored records, and stay what they were.
func TestTextIsThatOfFmt(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		g := GUID(random.Uint64() >> random.IntN(64))
		p := Place{g, PortNum(random.IntN(255))}
		k := PKey(random.IntN(1 << 16))
		want := [3]string{fmt.Sprintf("0x%016x", uint64(g)), fmt.Sprintf("0x%016x/%d", uint64(g), p.Port), fmt.Sprintf("0x%04x", uint16(k))}
		if got := [3]string{g.String(), p.String(), k.String()}; got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

func BenchmarkGUIDText(b *testing.B) {
	g := GUID(0x0002C90300A1B2C3)
	for b.Loop() {
		_ = g.String()
		g++
	}
}

func TestGUIDValid(t *testing.T) {
	for g, want := range map[GUID]bool{0: false, 1: true, ^GUID(0): false, ^GUID(0) - 1: true} {
		if got := g.Valid(); got != want {
			t.Errorf("%v: valid %v, want %v", g, got, want)
		}
	}
}

func FuzzParseGUID(f *testing.F) {
	fuzzParse(f, ParseGUID, "0x0002c90300a1b2c3", "0002:c903:00a1:b2c3", "0x", ":::")
}
