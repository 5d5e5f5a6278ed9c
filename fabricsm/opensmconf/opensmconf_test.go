package opensmconf_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/opensmconf"
)

func TestParse(t *testing.T) {
	got, err := opensmconf.Parse("f", []byte("# a comment\nlmc 2 # another\n\n\tlog_prefix\t \"my fabric\" \nm_key\nqos TRUE\r\nlmc 0x1\n"))
	want := []opensmconf.Setting{
		{Name: "lmc", Value: "2", Line: 2},
		{Name: "log_prefix", Value: "my fabric", Line: 4},
		{Name: "m_key", Line: 5},
		{Name: "qos", Value: "TRUE", Line: 6},
		{Name: "lmc", Value: "0x1", Line: 7},
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestParseSections(t *testing.T) {
	got, err := opensmconf.ParseSections("gv.cfg", []byte("; UFM\n[SubnetManager]\nm_key = 0x1\nname = a=b\n\n[ Logging ]\n# no\nlevel=\n"))
	want := []opensmconf.Setting{
		{Section: "SubnetManager", Name: "m_key", Value: "0x1", Line: 3},
		{Section: "SubnetManager", Name: "name", Value: "a=b", Line: 4},
		{Section: "Logging", Name: "level", Line: 8},
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestMistakesHaveTheirPlaceAndNoText(t *testing.T) {
	const secret = "0x5eed0c0ffee01234"
	for _, tt := range []struct {
		name, text, want string
		sections         bool
	}{
		{"long", "\nm_key " + secret + strings.Repeat(" ", 1022), "f:2: 1046 bytes in one line; OpenSM reads 1022", false},
		{"NUL", "m_key " + secret + "\x00", "f:1: a control character", false},
		{"Latin-1", "sm_key " + secret + " \xff", "f:1: a byte that is no UTF-8 text", false},
		{"no value", "[a]\nm_key " + secret, "f:2: want a name, an equals sign and a value", true},
		{"no section", "m_key = " + secret, "f:1: this setting is in no section", true},
		{"open section", "[" + secret, "f:1: want a section as [NAME]", true},
		{"twice", "\x01\n\x02", "f:1: a control character\nf:2: a control character", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parse := opensmconf.Parse
			if tt.sections {
				parse = opensmconf.ParseSections
			}
			got, err := parse("f", []byte(tt.text))
			if got != nil || err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("%v, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestParseIsBounded(t *testing.T) {
	if _, err := opensmconf.Parse("f", make([]byte, opensmconf.MaxSize+1)); !errors.Is(err, opensmconf.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := opensmconf.Parse("f", []byte(strings.Repeat("a\n", 10_001))); err == nil || err.Error() != "f:10001: more than 10000 settings" {
		t.Errorf("more settings than may be: %v", err)
	}
	if _, err := opensmconf.Parse("f", []byte(strings.Repeat("\x01\n", 1000))); err == nil || strings.Count(err.Error(), "\n") != 49 {
		t.Errorf("a thousand problems are not reported as 50: %.200v", err)
	}
}

func TestValues(t *testing.T) {
	for value, want := range map[string]uint64{"12": 12, "0x1f": 31, "017": 15, "0": 0, "0xB": 11, "0x0b": 11} {
		if n, err := opensmconf.Number(value, 64); err != nil || n != want {
			t.Errorf("%s is %d, %v; want %d", value, n, err, want)
		}
	}
	for _, value := range []string{"", "x", "1_0", "0b1", "0o7", "-1", "0x1_0", "256"} {
		if n, err := opensmconf.Number(value, 8); err == nil {
			t.Errorf("%q is %d", value, n)
		}
	}
	for value, want := range map[string][2]bool{"TRUE": {true, true}, "FALSE": {false, true}, "true": {false, false}, "1": {false, false}} {
		if v, plain := opensmconf.Truth(value); [2]bool{v, plain} != want {
			t.Errorf("%s is %v, plain %v", value, v, plain)
		}
	}
	if !opensmconf.IsNull("(null)") || !opensmconf.IsNull("") || opensmconf.IsNull("0") {
		t.Error("null is not told from values")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("lmc 2 # x\nm_key \"0x1\"\n"))
	f.Add([]byte("[a]\nb = c\n;\n[\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func(string, []byte) ([]opensmconf.Setting, error){opensmconf.Parse, opensmconf.ParseSections} {
			got, err := parse("f", data)
			if err != nil {
				if got != nil || !strings.HasPrefix(err.Error(), "f:") {
					t.Errorf("%v, %v", got, err)
				}
				continue
			}
			last := 0
			for _, s := range got {
				if s.Name == "" || s.Line <= last || strings.ContainsAny(s.Name+s.Value, "\n\x00") {
					t.Fatalf("%+v after line %d", s, last)
				}
				last = s.Line
				if _, err := opensmconf.Number(s.Value, 64); err != nil && s.Value != "" && len(s.Value) > 8 && strings.Contains(err.Error(), s.Value) {
					t.Errorf("%v shows the value", err)
				}
			}
		}
	})
}
