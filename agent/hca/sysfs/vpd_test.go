package sysfs_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent/hca/sysfs"
)

func large(tag byte, data ...[]byte) []byte {
	var all []byte
	for _, d := range data {
		all = append(all, d...)
	}
	return append(binary.LittleEndian.AppendUint16([]byte{tag}, uint16(len(all))), all...)
}

func field(keyword, value string) []byte {
	return append([]byte{keyword[0], keyword[1], byte(len(value))}, value...)
}

// summed makes VPD of a name and the fields of its read-only part, with a right checksum and two reserved bytes behind it,
// and then the bytes in behind.
func summed(fields [][]byte, behind ...byte) []byte {
	name := large(0x82, []byte("ConnectX-7"))
	fields = append(fields, []byte("RV\x03\x00\x00\x00"))
	b := append(name, large(0x90, fields...)...)
	var s byte
	for _, c := range b {
		s += c
	}
	b[len(b)-3] = -s
	return append(b, behind...)
}

func goodVPD() []byte {
	return summed([][]byte{
		field("PN", "MCX75310AAS-NEAT   "), field("EC", "A6"), field("V2", "MCX75310AAS-NEAT"),
		field("SN", "MT2244XZ0123\x00\x00"), field("V3", "0123abcd"), field("VA", "MLX:MN=MLNX"),
	}, append(large(0x91, field("YA", "host's own")), 0x78, 0xff, 0xff)...)
}

func TestParseVPD(t *testing.T) {
	t.Parallel()
	got, err := sysfs.ParseVPD(goodVPD())
	want := sysfs.VPD{Name: "ConnectX-7", Part: "MCX75310AAS-NEAT", Serial: "MT2244XZ0123", Revision: "A6", UUID: "0123abcd"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for n := range len(goodVPD()) - 2 { // all but the padding
		if _, err := sysfs.ParseVPD(goodVPD()[:n]); err == nil {
			t.Errorf("the first %d bytes: got no error", n)
		}
	}
}

func TestParseVPDRefuses(t *testing.T) {
	t.Parallel()
	flipped := goodVPD()
	flipped[20] ^= 1
	for _, tt := range []struct {
		name string
		b    []byte
		want string
	}{
		{"empty", nil, "no end tag"},
		{"only an end", []byte{0x78}, "no read-only part"},
		{"one bit flipped", flipped, "wrong checksum"},
		{"checksum left out", append(large(0x90, field("SN", "MT1")), 0x78), "wrong checksum"},
		{"empty checksum", append(large(0x90, field("SN", "MT1"), field("RV", "")), 0x78), "wrong checksum"},
		{"serial number twice", summed([][]byte{field("SN", "MT1"), field("SN", "MT2")}, 0x78), `keyword "SN" twice`},
		{"two read-only parts", summed(nil, append(large(0x90, []byte("RV\x01\x00")), 0x78)...), "wrong checksum"},
		{"unknown tag", summed(nil, append(large(0x85), 0x78)...), "unknown tag 0x85"},
		{"field beyond its part", append(large(0x90, []byte("SN\x09MT1")), 0x78), "inside a resource"},
		{"terminal codes", summed([][]byte{field("SN", "MT\x1b[2J")}, 0x78), "keyword SN is not printable"},
		{"name that is no text", append(large(0x82, []byte{7}), 0x78), "name is not printable"},
		{"too long", make([]byte, 40000), "more than the 32768"},
	} {
		if v, err := sysfs.ParseVPD(tt.b); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %+v, %v, want an error with %q", tt.name, v, err, tt.want)
		}
	}
}

// FuzzVPD checks that the parser fails only with an error, and that its results can be shown on a terminal.
func FuzzVPD(f *testing.F) {
	f.Add(goodVPD())
	f.Add(summed(nil, 0x78))
	f.Add([]byte{0x90, 0xff, 0xff, 0x78})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := sysfs.ParseVPD(b)
		if err != nil {
			if diff := cmp.Diff(v, sysfs.VPD{}); diff != "" {
				t.Errorf("an error and a value: %s", diff)
			}
			return
		}
		for _, s := range []string{v.Name, v.Part, v.Serial, v.Revision, v.UUID} {
			if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("%q is not printable", s)
			}
		}
	})
}
