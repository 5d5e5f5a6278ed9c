package keyfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
)

var secret = keystest.Planted(0)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []Entry
		err      string
	}{
		{"empty", "", nil, ""},
		{
			"as OpenSM writes it", "0x0002c90300a1b2c3 0x1122334455667788\n\n0x0002c90300a1b2c4 0x0000000000000000\n\n",
			[]Entry{{0x0002c90300a1b2c3, keys.New(0x1122334455667788)}, {0x0002c90300a1b2c4, keys.Key{}}},
			"",
		},
		{"no blank lines, comments, no newline", "# mine\n0x10 0x1\n 0x11\t0xABCDEF", []Entry{{0x10, keys.New(1)}, {0x11, keys.New(0xABCDEF)}}, ""},
		{"twice", "0x10 0x1\n\n0x10 0x1\n", nil, "f:3: port 0x0000000000000010 has a key in line 1 already"},
		{"no key", "0x10\n", nil, "f:1: want a port GUID and its key"},
		{"more", "0x10 0x1 0x2\n", nil, "f:1: want a port GUID and its key"},
		{"no GUID", "0x0 0x1\n", nil, "f:1: want a port GUID first"},
		{"decimal", "0x10 77\n", nil, "f:1: want a key after the GUID"},
		{"too long", "0x10 0x01122334455667788\n", nil, "f:1: want a key after the GUID"},
		{"all ones", "0x10 0xffffffffffffffff\n", nil, "f:1: want a key after the GUID"},
		{"underscores", "0x10 0x1_0\n", nil, "f:1: want a key after the GUID"},
		{"two mistakes", "0x10\nx y\n", nil, "f:1: want a port GUID and its key\nf:2: want a port GUID first, 0x and up to 16 hexadecimal digits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse("f", []byte(tt.in))
			if d := gocmp.Diff(tt.want, got); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestParseIsBounded(t *testing.T) {
	if _, err := Parse("f", make([]byte, MaxSize+1)); !errors.Is(err, ErrTooBig) {
		t.Errorf("got %v, want ErrTooBig", err)
	}
	_, err := Parse("f", bytes.Repeat([]byte("wrong\n"), 10_000))
	if lines := strings.Count(err.Error(), "\n"); lines != maxMistakes {
		t.Errorf("%d lines about a wrong file, want %d", lines, maxMistakes)
	}
}

// TestMistakesShowNoKey: no error about a wrong file shows its content.
func TestMistakesShowNoKey(t *testing.T) {
	scan := keystest.New(secret)
	s := fmt.Sprintf("0x%016x", secret)
	for _, in := range []string{
		s + " " + s + " " + s, "0x10 " + s + "\n0x10 " + s, "0x10 " + s[2:], "0x10 " + s + "g", s, "0x10 0x1 " + s, s + "g 0x1", "0x10 x" + s,
		"0x10 " + fmt.Sprint(secret), "m_key " + s + "x", "m_key\nsm_key " + s[2:], "m_key " + s + "\nm_key " + s,
	} {
		_, err := Parse("f", []byte(in))
		scan.CleanValue(t, err)
		o, err := ParseOptions("f", []byte(in))
		scan.CleanValue(t, err)
		scan.CleanValue(t, o)
	}
	entries := []Entry{{0x10, keys.New(secret)}}
	m, err := NewMigration(map[keys.Kind][]Entry{keys.MKey: entries}, Options{MKey: keys.New(secret)}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{entries, m, *m} {
		scan.CleanValue(t, v)
	}
	if len(scan.Find(Format(entries))) == 0 {
		t.Error("the scan does not find a key in a key file")
	}
}

func TestNames(t *testing.T) {
	got := map[keys.Kind]string{}
	for _, k := range keys.Kinds() {
		got[k] = Name(k)
	}
	want := map[keys.Kind]string{
		keys.MKey: "guid2mkey", keys.CCKey: "guid2cckey", keys.VSKey: "guid2vskey", keys.N2NKey: "guid2_m2n_key",
		keys.N2NNodeKey: "guid2_n2n_key", keys.SMKey: "", keys.SAKey: "",
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}

func TestNeighbors(t *testing.T) {
	in := "0x0002c90300a1b2c3:1 0x0002c90300ffee00:18\n\n0x0002c90300ffee00:18 0x0002c90300a1b2c3:1\n\n"
	links, err := ParseNeighbors("f", []byte(in))
	if err != nil || string(FormatNeighbors(links)) != in {
		t.Errorf("%v; comes back as %q", err, FormatNeighbors(links))
	}
	for _, wrong := range []string{"0x10:1", "0x10:1 0x11", "0x10:1 0x11:255", "0x10:1 0x0:1", "10:1 0x11:1", "0x10:+1 0x11:1", "0x10:1 0x11:1\n0x10:1 0x12:1"} {
		if _, err := ParseNeighbors("f", []byte(wrong)); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     Options
		single   bool
		err      string
	}{
		{"none", "# m_key 0x1\nlmc 0\n", Options{}, false, ""},
		{
			"all", "m_key 0x00000000deadbeef\nm_key_protection_level 2\nm_key_lease_period 60\nsm_key 1\nsa_key 0x2\nm_key_lookup TRUE\n",
			Options{MKey: keys.New(0xdeadbeef), SMKey: keys.New(1), SAKey: keys.New(2), Level: 2, Lease: time.Minute},
			true, "",
		},
		{"a seed", "m_key 0x5\nm_key_per_port TRUE\n", Options{MKey: keys.New(5), PerPort: true}, false, ""},
		{"a random seed", "m_key 0xffffffffffffffff\n", Options{MKey: keys.New(^uint64(0))}, false, ""},
		{"off", "m_key 0x0000000000000000\nm_key_per_port false\n", Options{}, false, ""},
		{"a wrong level", "m_key_protection_level 4\n", Options{}, false, "f:1: m_key_protection_level: \"4\": want 0 to 3"},
		{"a wrong truth", "m_key_per_port yes\n", Options{}, false, "f:1: m_key_per_port: \"yes\": want TRUE or FALSE"},
		{"a wrong lease", "m_key_lease_period -1\n", Options{}, false, "f:1: m_key_lease_period: \"-1\": want seconds"},
		{"a wrong key", "m_key 0xg\n", Options{}, false, "f:1: m_key: want a number"},
		{"no value", "m_key\n", Options{}, false, "f:1: m_key has no value"},
		{"twice", "m_key 1\nm_key 2\n", Options{}, false, "f:2: m_key stands in line 1 already"},
	} {
		got, err := ParseOptions("f", []byte(tt.in))
		if (err != nil) != (tt.err != "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
		}
		if _, single := got.Single(); got != tt.want || single != tt.single {
			t.Errorf("%s: got %+v, single %v; want %+v, %v", tt.name, got, single, tt.want, tt.single)
		}
	}
}

func TestMigration(t *testing.T) {
	strong, one := keys.New(secret), keys.New(0x7777)
	m, err := NewMigration(map[keys.Kind][]Entry{
		keys.MKey: {{0x10, strong}, {0x11, keys.Key{}}, {0x12, keys.New(1)}}, keys.VSKey: {{0x10, strong}},
	}, Options{MKey: one}, time.Unix(5, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		kind keys.Kind
		guid ib.GUID
		want keys.Key
	}{
		{"listed", keys.MKey, 0x10, strong},
		{"listed without a key", keys.MKey, 0x11, keys.Key{}},
		{"not listed", keys.MKey, 0x99, one},
		{"another class", keys.VSKey, 0x10, strong},
		{"not listed, another class", keys.VSKey, 0x99, keys.Key{}},
	} {
		got, ok := m.Key(tt.kind, tt.guid)
		if got.Key != tt.want || ok == tt.want.IsZero() || ok && got.Origin != keys.OriginImported {
			t.Errorf("%s: %v, not what was to be", tt.name, ok)
		}
	}
	book, err := keys.NewBook(m.Records())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(book.Records()); n != 3 || m.Weak(keys.MKey) != 1 {
		t.Errorf("%d records, %d weak keys; want 3 and 1", n, m.Weak(keys.MKey))
	}
	back := Export(book.Records(), keys.MKey)
	if d := gocmp.Diff([]Entry{{0x10, strong}, {0x12, keys.New(1)}}, back); d != "" {
		t.Errorf("exported (-want +got):\n%s", d)
	}
	if _, err := NewMigration(map[keys.Kind][]Entry{keys.SMKey: nil}, Options{}, time.Time{}); err == nil {
		t.Error("an SM_Key for each device was taken")
	}
}

// FuzzParse: Format writes the entries that Parse accepts, in order.
func FuzzParse(f *testing.F) {
	f.Add([]byte("0x0002c90300a1b2c3 0x1122334455667788\n\n"))
	f.Add([]byte("# c\n0x10 0x0\n0x11 0XA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := Parse("f", data)
		if err != nil {
			return
		}
		again, err := Parse("f", Format(entries))
		slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.GUID, b.GUID) })
		if err != nil || !slices.Equal(entries, again) {
			t.Fatalf("%d entries come back as %d, %v", len(entries), len(again), err)
		}
	})
}

func FuzzParseNeighbors(f *testing.F) {
	f.Add([]byte("0x0002c90300a1b2c3:1 0x0002c90300ffee00:18\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		links, err := ParseNeighbors("f", data)
		if err != nil {
			return
		}
		again, err := ParseNeighbors("f", FormatNeighbors(links))
		if err != nil || len(again) != len(links) {
			t.Fatalf("%d links come back as %d, %v", len(links), len(again), err)
		}
	})
}

func FuzzParseOptions(f *testing.F) {
	f.Add([]byte("m_key 0x1\nm_key_per_port TRUE\nm_key_lease_period 60\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, err := ParseOptions("f", data); err == nil && o.Level > 3 {
			t.Fatalf("level %d", o.Level)
		}
	})
}
