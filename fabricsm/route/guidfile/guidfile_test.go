package guidfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, data string
		want       []ib.GUID
		err        string
	}{
		{"one a line", "0x0010000200000001\n0x0010000200000002\n", []ib.GUID{0x0010000200000001, 0x0010000200000002}, ""},
		{"comments, blanks, DOS, no end", "# spines\n\n  0x1 # first\r\n\t0x2", []ib.GUID{1, 2}, ""},
		{"nothing", "# none yet\n", nil, "roots: lists no GUID; write one a line"},
		{"empty", "", nil, "roots: lists no GUID; write one a line"},
		{"several wrong", "0x1\n0x0\n0xffffffffffffffff\n0x2\n0x1\n", nil, "roots:2: 0x0000000000000000 is no GUID that a device can have\n" +
			"roots:3: 0xffffffffffffffff is no GUID that a device can have\nroots:5: 0x0000000000000001 is on line 1 already"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse("roots", []byte(tt.data))
			msg := ""
			if err != nil {
				msg = err.Error()
			}
			if d := cmp.Diff(msg, tt.err); d != "" {
				t.Errorf("error (-got +want):\n%s", d)
			}
			if d := cmp.Diff(got, tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
}

func TestParseNamesTheLineOfWhatIsNoGUID(t *testing.T) {
	for _, line := range []string{"leaf1", "0x1 0x2", "0x10000000000000000", "1_0"} {
		if _, err := Parse("roots", []byte("0x5\n"+line+"\n")); err == nil || !strings.HasPrefix(err.Error(), "roots:2: ") {
			t.Errorf("%q: got error %v", line, err)
		}
	}
}

func TestParseTellsSoMuchAndNoMore(t *testing.T) {
	_, err := Parse("roots", []byte(strings.Repeat("x\n", 1000)))
	if err == nil || strings.Count(err.Error(), "\n") != maxErrors || !strings.HasSuffix(err.Error(), "roots: and 980 more lines are wrong") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("0x1 # a\n\n0x2\r\n"))
	f.Add([]byte("0x0\n#\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		guids, err := Parse("f", data)
		if (err == nil) != (len(guids) > 0) {
			t.Fatalf("%d GUIDs, error %v", len(guids), err)
		}
		var b strings.Builder
		for _, g := range guids {
			b.WriteString(g.String() + "\n")
		}
		if again, err := Parse("f", []byte(b.String())); len(guids) > 0 && (err != nil || !cmp.Equal(again, guids)) {
			t.Fatalf("read back: %v, %v", again, err)
		}
	})
}
