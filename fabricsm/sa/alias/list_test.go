package alias_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/alias"
)

func TestParseList(t *testing.T) {
	got, err := alias.ParseList("f", []byte("# hosts\n0x11 0xa1 0xa2 # two\n\n0x12 0xb1\n0x11\t0xa3\n"))
	if d := cmp.Diff(alias.List{0x11: {0xA1, 0xA2, 0xA3}, 0x12: {0xB1}}, got); err != nil || d != "" {
		t.Fatalf("%v (-want +got):\n%s", err, d)
	}
	for text, want := range map[string]string{
		"0x11":                      "f:1: port 0x0000000000000011 has no aliases",
		"0x11 x":                    "f:1: alias: ",
		"x 0xa1":                    "f:1: port: ",
		"0x0 0xa1":                  "no GUID that a device can have",
		"0x11 0xffffffffffffffff":   "no GUID that a device can have",
		"0x11 0xa1\n0x12 0xa1":      "f:2: alias 0x00000000000000a1 is on line 1 already",
		"0x11 0xa1 0xa1":            "is on line 1 already",
		"0x11 0x12\n0x12 0xa1":      "f:1: alias 0x0000000000000012 is the GUID of the port of line 2",
		strings.Repeat("x 1\n", 30): "f: and 10 more problems",
	} {
		if _, err := alias.ParseList("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	many := "0x11"
	for i := range alias.MaxPerPort + 1 {
		many += " " + ib.GUID(0x1000+i).String()
	}
	if _, err := alias.ParseList("f", []byte(many)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("more than a port has room for: %v", err)
	}
}

func TestList(t *testing.T) {
	l := alias.List{0x11: {0xA1, 0xA2}}
	if !l.Allows(0x11, 0xA2) || l.Allows(0x12, 0xA2) || l.Allows(0x11, 0x11) {
		t.Error("others are allowed than those that are listed")
	}
	if g := l.Choose(0x11, func(g ib.GUID) bool { return g == 0xA1 }); g != 0xA2 {
		t.Errorf("chosen %v", g)
	}
	if g := l.Choose(0x11, func(ib.GUID) bool { return true }); g != 0 {
		t.Errorf("chosen %v, and all are taken", g)
	}
	sum := l.With(alias.List{0x11: {0xA2, 0xA3}, 0x12: {0xB1}})
	if d := cmp.Diff(alias.List{0x11: {0xA1, 0xA2, 0xA3}, 0x12: {0xB1}}, sum); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(alias.List{0x11: {0xA1, 0xA2}}, l); d != "" {
		t.Errorf("the first was changed: %s", d)
	}
	if sum := alias.List(nil).With(l); !maps.EqualFunc(sum, l, slices.Equal[[]ib.GUID]) {
		t.Errorf("with nothing: %v", sum)
	}
}

// FuzzParseList checks that the result is bounded, and that no alias belongs to two ports.
func FuzzParseList(f *testing.F) {
	f.Add([]byte("0x11 0xa1 0xa2\n0x12 0xb1 # c\n"))
	f.Add([]byte("0x11 0x12\n0x12 0xa1\n0x11 x"))
	f.Add([]byte("\n#\n\t\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := alias.ParseList("f", data)
		if err != nil {
			return
		}
		owner := make(map[ib.GUID]ib.GUID)
		for port, guids := range l {
			if len(guids) > alias.MaxPerPort || len(guids) == 0 {
				t.Errorf("port %v has %d", port, len(guids))
			}
			for _, g := range guids {
				if _, twice := owner[g]; twice || !g.Valid() || l[g] != nil {
					t.Errorf("alias %v of port %v", g, port)
				}
				owner[g] = port
			}
		}
	})
}
