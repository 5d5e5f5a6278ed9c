package mad

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dumped is 40 bytes whose ASCII form holds what dump tools put between
// columns: bars, spaces and letters that are hexadecimal digits.
var dumped = []byte("\x01\x81|  abcdef0123|\x00\x00\x00\x00\x00\x00\x00\x00abcdef\xff\xfe\x0012345678")

func TestParseHex(t *testing.T) {
	zeros := append(append([]byte("abcdefabcdefabcd"), make([]byte, 64)...), 1, 2)
	tests := []struct {
		name string
		in   string
		want []byte
	}{
		{"xxd", `00000000: 0181 7c20 2061 6263 6465 6630 3132 337c  ..|  abcdef0123|
00000010: 0000 0000 0000 0000 6162 6364 6566 fffe  ........abcdef..
00000020: 0031 3233 3435 3637 38                   .12345678
`, dumped},
		{"hexdump -C", `00000000  01 81 7c 20 20 61 62 63  64 65 66 30 31 32 33 7c  |..|  abcdef0123||
00000010  00 00 00 00 00 00 00 00  61 62 63 64 65 66 ff fe  |........abcdef..|
00000020  00 31 32 33 34 35 36 37  38                       |.12345678|
00000029
`, dumped},
		{"od -A x -t x1", `000000 01 81 7c 20 20 61 62 63 64 65 66 30 31 32 33 7c
000010 00 00 00 00 00 00 00 00 61 62 63 64 65 66 ff fe
000020 00 31 32 33 34 35 36 37 38
000029
`, dumped},
		{"tshark -x", `0000  01 81 7c 20 20 61 62 63 64 65 66 30 31 32 33 7c   ..|  abcdef0123|
0010  00 00 00 00 00 00 00 00 61 62 63 64 65 66 ff fe   ........abcdef..
0020  00 31 32 33 34 35 36 37 38                        .12345678
`, dumped},
		{"tcpdump -XX", "\t0x0000:  0181 7c20 2061 6263 6465 6630 3132 337c  ..|..abcdef0123|\n" +
			"\t0x0010:  0000 0000 0000 0000 6162 6364 6566 fffe  ........abcdef..\n" +
			"\t0x0020:  0031 3233 3435 3637 38                   .12345678\n", dumped},
		{"hexdump -C with *", `00000000  61 62 63 64 65 66 61 62  63 64 65 66 61 62 63 64  |abcdefabcdefabcd|
00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
*
00000050  01 02                                             |..|
00000052
`, zeros},
		{"ending with *", "0000  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n*\n0028\n", make([]byte, 40)},
		{"plain", hex.EncodeToString(dumped), dumped},
		{"plain in lines of four bytes", "01010101\n00000004\n00000008", []byte{1, 1, 1, 1, 0, 0, 0, 4, 0, 0, 0, 8}},
		{"C array", "0x01, 0x81,\n\t0x7C", []byte{1, 0x81, 0x7C}},
		{"colons", "01:81:7c", []byte{1, 0x81, 0x7C}},
		{"comments", "# frame 1\n\n0181\n  # end\n7c", []byte{1, 0x81, 0x7C}},
		{"carriage returns", "0181\r\n7c\r\n", []byte{1, 0x81, 0x7C}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseHex([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestParseHexErrors(t *testing.T) {
	tests := []struct {
		name, in, want string
	}{
		{"nothing", "# only a comment\n", "hex dump: no hexadecimal digits"},
		{"not hexadecimal", "0181\n01 zz", `hex dump line 2 column 4: "zz" is not hexadecimal`},
		{"odd", "01 8 1", `hex dump line 1 column 4: "8" has an odd number of digits`},
		{"lone prefix", "0x", `hex dump line 1 column 1: "0x" is not hexadecimal`},
		{"line missing", "00000000: 0181\n00000010: 0181", "hex dump line 2 column 1: offset 0x10, want 0x2: a line is missing or from another dump"},
		{"offset not hexadecimal", "xyz: 0181", `hex dump line 1 column 1: offset "xyz:" is not hexadecimal`},
		{"* first", "*\n0010", "hex dump line 1: * before a full row of 16 bytes"},
		{"* last", "0000  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n*\n", "hex dump line 2: the dump ends with *, the line with the final offset is missing"},
		{"* before data", "0000  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n*\n01", "hex dump line 3: want an offset after *"},
		{"* without bound", "0000  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n*\nffffffff\n", "hex dump line 3 column 1: offset 0xffffffff after *, want 0x10 to 0x10000"},
		{"too long", strings.Repeat("00", maxDump+1), "hex dump line 1: more than 65536 bytes"},
		{"long word", strings.Repeat("g", 100), `hex dump line 1 column 1: "gggggggggggggggggggggggggggggggg..." is not hexadecimal`},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseHex([]byte(c.in))
			if err == nil || err.Error() != c.want {
				t.Errorf("got %d bytes, error %v\nwant error %s", len(got), err, c.want)
			}
		})
	}
}

func FuzzParseHex(f *testing.F) {
	f.Add([]byte("00000000: 0181 7c20  ..| \n"))
	f.Add([]byte("0000  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n*\n0028\n"))
	f.Add([]byte(hex.Dump(dumped)))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := ParseHex(text)
		if err != nil {
			return
		}
		if len(b) == 0 || len(b) > maxDump {
			t.Fatalf("%d bytes without an error", len(b))
		}
		again, err := ParseHex([]byte(hex.Dump(b)))
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("own dump reads back as %x, %v, want %x", again, err, b)
		}
	})
}
