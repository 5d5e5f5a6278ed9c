package guidfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/route/guidfile"
)

func TestPortLines(t *testing.T) {
	weights := func(text string) ([]guidfile.PortLine, error) { return guidfile.ParseWeights("f", []byte(text), 255) }
	ports := func(text string) ([]guidfile.PortLine, error) { return guidfile.ParsePortList("f", []byte(text)) }
	tests := []struct {
		name, text string
		parse      func(string) ([]guidfile.PortLine, error)
		want       []guidfile.PortLine
		err        string
	}{
		{"weights", "# c\n0x10 1 255 # d\n\n0x10 2 1\n", weights, []guidfile.PortLine{{Node: 0x10, Port: 1, Number: 255}, {Node: 0x10, Port: 2, Number: 1}}, ""},
		{"ports", "0x10 0\n0x11 254", ports, []guidfile.PortLine{{Node: 0x10}, {Node: 0x11, Port: 254}}, ""},
		{"empty", "# none\n", ports, nil, "f: lists no port; write a GUID and a port number a line"},
		{"no weight", "0x10 1", weights, nil, "f:1: 2 words: want a GUID, a port number and a number from 1 to 255"},
		{"too many words", "0x10 1 1", ports, nil, "f:1: 3 words: want a GUID and a port number"},
		{"weight 0", "0x10 1 0", weights, nil, `f:1: "0": want a number from 1 to 255`},
		{"weight too large", "0x10 1 256", weights, nil, `f:1: "256": want a number from 1 to 255`},
		{"port too large", "0x10 255", ports, nil, `f:1: "255": want a port number from 0 to 254`},
		{"twice", "0x10 1\n0x10 1\n", ports, nil, "f:2: 0x0000000000000010 port 1 is on line 1 already"},
		{"no GUID", "x 1\n", ports, nil, "f:1: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.parse(tt.text)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestManyWrongLines: wrong lines are reported up to a limit.
func TestManyWrongLines(t *testing.T) {
	_, err := guidfile.ParsePortList("f", []byte(strings.Repeat("x\n", 100)))
	if err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "f: and 80 more lines are wrong") {
		t.Errorf("got %v", err)
	}
}

func FuzzPortLines(f *testing.F) {
	f.Add([]byte("0x10 1 255\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, most := range []int{1, 255} {
			lines, err := guidfile.ParseWeights("f", data, most)
			for _, l := range lines {
				if err != nil || !l.Node.Valid() || l.Port == 255 || l.Number < 1 || l.Number > most {
					t.Fatalf("%v with %+v", err, l)
				}
			}
		}
	})
}
