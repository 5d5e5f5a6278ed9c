package guid2lid

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []Entry
		dropped  []string
	}{
		{"empty", "", nil, nil},
		{"as OpenSM writes it", "0x0002c90300a1b2c3 0x0005 0x0005\n\n0x0002c90300a1b2c4 0x0008 0x000f\n\n", []Entry{
			{0x0002c90300a1b2c3, 5, 5}, {0x0002c90300a1b2c4, 8, 15},
		}, nil},
		{"without blank lines, with comments", "# mine\n0x10 0x1 0x1\n  # more\n0x11\t0x2 0x2", []Entry{{0x10, 1, 1}, {0x11, 2, 2}}, nil},
		{"overlap", "0x10 0x4 0x7\n\n0x11 0x6 0x6\n\n0x12 0x8 0x8\n", []Entry{{0x10, 4, 7}, {0x12, 8, 8}}, []string{
			"f:3: LID 6 of 0x0000000000000011 belongs to 0x0000000000000010, line 1",
		}},
		{"twice", "0x10 0x4 0x4\n0x10 0x5 0x5\n", []Entry{{0x10, 4, 4}}, []string{"f:2: port 0x0000000000000010 has LIDs in line 1 already"}},
		{"illegal", "0x0 0x1 0x1\n0x10 0x0 0x0\n0x11 0xc000 0xc000\n0x12 0x5 0x4\n0x13 0x1 0x3\n0x14 0x5 0x6\n0x15 0x100 0x1ff\n", nil, []string{
			"f:1: 0x0000000000000000 is no port GUID", "f:2: LIDs 0 to 0", "f:3: LIDs 49152 to 49152", "f:4: LIDs 5 to 4",
			"f:5: LIDs 1 to 3 of 0x0000000000000013: 3 of them", "f:6: LIDs 5 to 6 of 0x0000000000000014: want a first one", "f:7: LIDs 256 to 511",
		}},
		{"no entries", "hello\n0x10 5 5\n0x10 0x5\nx y z\n0x10 0x12345 0x5\n", nil, []string{"f:1: want", "f:2: LID \"5\"", "f:3: want", "f:4: ", "f:5: LID"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, dropped, err := Parse("f", []byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if len(dropped) != len(tt.dropped) {
				t.Fatalf("dropped %q, want %q", dropped, tt.dropped)
			}
			for i, want := range tt.dropped {
				if !strings.HasPrefix(dropped[i].Error(), want) {
					t.Errorf("dropped: %q, want %q", dropped[i], want)
				}
			}
		})
	}
}

func TestParseRefusesWhatIsTooBig(t *testing.T) {
	if _, _, err := Parse("f", make([]byte, MaxSize+1)); !errors.Is(err, ErrTooBig) {
		t.Errorf("got %v, want ErrTooBig", err)
	}
}

func TestFormatIsByLID(t *testing.T) {
	in := []Entry{{0x11, 8, 15}, {0x0002c90300a1b2c3, 5, 5}}
	if got, want := string(Format(in)), "0x0002c90300a1b2c3 0x0005 0x0005\n\n0x0000000000000011 0x0008 0x000f\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if in[0].GUID != 0x11 {
		t.Error("Format sorted what it was given")
	}
}

// FuzzParse: entries that Parse accepts are legal, and unchanged after Format and Parse.
func FuzzParse(f *testing.F) {
	f.Add([]byte("0x0002c90300a1b2c3 0x0005 0x0005\n\n"))
	f.Add([]byte("0x10 0x4 0x7\n0x11 0x6 0x6\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, _, err := Parse("f", data)
		if err != nil {
			return
		}
		owned := map[ib.LID]bool{}
		for _, e := range entries {
			if New(e.GUID, e.First, e.LMC()) != e {
				t.Fatalf("%v has LMC %d", e, e.LMC())
			}
			for l := e.First; l <= e.Last; l++ {
				if owned[l] || !l.IsUnicast() {
					t.Fatalf("LID %v of %v", l, e)
				}
				owned[l] = true
			}
		}
		again, dropped, err := Parse("f", Format(entries))
		slices.SortFunc(entries, func(a, b Entry) int { return int(a.First) - int(b.First) })
		if err != nil || len(dropped) > 0 || !slices.Equal(entries, again) {
			t.Fatalf("written and read again: %v, dropped %v, %v; want %v", again, dropped, err, entries)
		}
	})
}
