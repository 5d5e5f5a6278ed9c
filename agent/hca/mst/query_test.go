package mst

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func golden(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestParseQuery reads the output of 4.36 for a simulated ConnectX-7, and one composed of lines that real cards were
// reported to add.
func TestParseQuery(t *testing.T) {
	q, err := ParseQuery(golden(t, "query-connectx7.txt"))
	must(t, err)
	for key, want := range map[string]string{
		KeyVersion: "28.43.1014", KeyPartNumber: "MCX75310AAS-NEA_Ax", KeyPSID: "MT_0000000838", KeyAttributes: "secure-fw",
		KeyLifeCycle: "GA SECURED", KeySecureBoot: "Enabled", KeyEFUSEVersion: "0", KeyImageSecVersion: "0",
		KeyOrigBaseMAC: "b83fd2012340", "Description": "NVIDIA ConnectX-7 HHHL Adapter card; simulated",
	} {
		if got, ok := q.First(key); key != "Description" && key != KeyLifeCycle && (!ok || got != want) {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
		if got, ok := q.Get(key); !ok || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	for _, key := range []string{KeyRunning, KeyOrigPSID, KeyBaseGUID, KeyBaseMAC, "Image VSD"} {
		if got, ok := q.First(key); ok {
			t.Errorf("%s: got %q, want unknown", key, got)
		}
	}
	q, err = ParseQuery(golden(t, "query-bluefield2.txt"))
	must(t, err)
	for key, want := range map[string]string{
		KeyVersion: "24.35.1012", KeyRunning: "24.33.1048", KeyReleaseDate: "29.4.2022", KeyBaseGUID: "08c0eb030053eaec",
		KeyOrigBaseGUID: "08c0eb030053ea00", KeyBaseMAC: "08c0eb53eaec",
	} {
		if got, _ := q.First(key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	rom, _ := q.Get("Rom Info")
	want := "type=UEFI Virtio net version=21.2.10 cpu=AMD64\ntype=UEFI version=14.26.17 cpu=AMD64,AARCH64\ntype=PXE version=3.6.502 cpu=AMD64"
	if diff := cmp.Diff(rom, want); diff != "" {
		t.Errorf("Rom Info (-got +want):\n%s", diff)
	}
	if got, _ := q.Get(KeyAttributes); got != "secure-fw, dev" {
		t.Errorf("attributes %q", got)
	}
}

func TestParseQueryRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "an error": "-E- Cannot open Device", "key twice": "PSID: a\nPSID: b\n", "no key": "  : b\n",
		"a line before all keys": "something without colon\nPSID: a\n", "control characters": "PSID: \x07\n",
		"Description three times": "Description: a\nDescription: UID x\nDescription: b\n",
	} {
		if q, err := ParseQuery(text); err == nil {
			t.Errorf("%s: got %v, want an error", name, q.values)
		}
	}
}

// FuzzQuery checks that any output of a tool is read or refused, and that the result contains only printed text.
func FuzzQuery(f *testing.F) {
	f.Add(golden(f, "query-connectx7.txt"))
	f.Add(golden(f, "query-bluefield2.txt"))
	f.Add("PSID: x\n   : y")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseQuery(text)
		if err != nil {
			return
		}
		for key := range q.values {
			if key != "GUID table" && !strings.Contains(text, key) {
				t.Errorf("key %q was not printed", key)
			}
			if v, ok := q.First(key); ok && (v == "" || v == "N/A" || !strings.Contains(text, v)) {
				t.Errorf("%s: %q", key, v)
			}
		}
	})
}

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig([]byte(golden(t, "config.json")))
	must(t, err)
	want := map[string]Setting{
		"SM_DISABLE": {
			Value{"False(0)", 0, true}, Value{"True(1)", 1, true}, Value{"True(1)", 1, true}, false,
		},
		"NUM_OF_VFS":      {Value{"0", 0, true}, Value{"0", 0, true}, Value{"16", 16, true}, false},
		"PSID_LOCK_MINOR": {Value{"Array[0..7]", 0, false}, Value{"Array[0..7]", 0, false}, Value{"Array[0..7]", 0, false}, true},
	}
	if diff := cmp.Diff(c.Settings, want); diff != "" || c.DeviceType != "ConnectX7" || c.Name != "MCX75310AAS-NEA_Ax" {
		t.Errorf("got %+v (-got +want):\n%s", c, diff)
	}
	for name, text := range map[string]string{
		"nothing": "", "no adapter": "{}", "two adapters": `{"a":{},"b":{}}`, "another type": `{"a":{"tlv_configuration":[]}}`,
		"odd parameter": `{"a":{"tlv_configuration":{"sm disable":{}}}}`, "number as value": `{"a":{"tlv_configuration":{"A":{"next_value":1}}}}`,
		"control characters": `{"a":{"tlv_configuration":{"A":{"next_value":"\u001b"}}}}`,
	} {
		if c, err := ParseConfig([]byte(text)); err == nil {
			t.Errorf("%s: got %+v, want an error", name, c)
		}
	}
}

func TestConfig(t *testing.T) {
	s := install(t, map[string]string{"mstconfig": `case "$*" in
"-d 0000:17:00.0 -e -j "*" q SM_DISABLE") cat > "$5" <<'E'
` + golden(t, "config.json") + `
E
;;
*) echo "-E- arguments $*"; exit 3;; esac`})
	c, err := s.Config(t.Context(), "0000:17:00.0", "SM_DISABLE")
	if err != nil || c.Settings["SM_DISABLE"].Next.Number != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := s.Config(t.Context(), "0000:17:00.0", "--yes"); err == nil {
		t.Error("an option in the place of a parameter: got no error")
	}
	none := install(t, map[string]string{"mstconfig": "true"})
	if _, err := none.Config(t.Context(), "0000:17:00.0"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no JSON written: got %v", err)
	}
	old := install(t, map[string]string{"mstconfig": "true", "mstflint": `echo "mstflint, mstflint 4.21.0, Git SHA Hash: N/A"`})
	if _, err := old.Config(t.Context(), "0000:17:00.0"); !errors.Is(err, ErrTooOld) {
		t.Errorf("old tools: got %v", err)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(golden(f, "config.json"))
	f.Add(`{"a":{"tlv_configuration":{"A":{"next_value":"(18446744073709551616)"}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConfig([]byte(text))
		if err != nil {
			return
		}
		for name, s := range c.Settings {
			if !parameterPattern.MatchString(name) || notText(s.Next.Text) != nil {
				t.Errorf("%q: %+v", name, s)
			}
		}
	})
}
