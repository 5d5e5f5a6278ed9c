package trust_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/trust"
)

const serviceKeys = `# name key
SHArP.AggregationManager 1111:2222:3333:4444:5555:6666:7777:8888 # SHARP
Boot.Images	::7a19
`

var sharpKey = ib.NewServiceKey([16]byte{0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0x44, 0x44, 0x55, 0x55, 0x66, 0x66, 0x77, 0x77, 0x88, 0x88})

// field returns a ServiceName in the form of a record.
func field(name string) []byte {
	var f [64]byte
	copy(f[:], name)
	return f[:]
}

func TestServiceKeys(t *testing.T) {
	s, err := trust.ParseServiceKeys("keys", []byte(serviceKeys))
	if err != nil {
		t.Fatal(err)
	}
	if s.Len() != 2 {
		t.Fatalf("%d names, want 2", s.Len())
	}
	o := trust.DefaultOptions()
	for _, tt := range []struct {
		name    string
		key     ib.ServiceKey
		trusted bool
		want    trust.Verdict
	}{
		{"SHArP.AggregationManager", sharpKey, false, trust.OK},
		{"SHArP.AggregationManager", ib.ServiceKey{}, false, trust.WrongServiceKey},
		{"SHArP.AggregationManager", ib.NewServiceKey([16]byte{1}), false, trust.WrongServiceKey},
		{"SHArP.AggregationManager", ib.ServiceKey{}, true, trust.WrongServiceKey},
		{"SHArP.AggregationManager", sharpKey, true, trust.OK},
		{"SHArP.AggregationManager\x00x", ib.ServiceKey{}, false, trust.WrongServiceKey},
		{"SHArP.AggregationManager2", ib.ServiceKey{}, false, trust.ReservedName},
		{"SHArP.AggregationManager2", ib.ServiceKey{}, true, trust.OK},
		{"sharp.other", ib.ServiceKey{}, false, trust.ReservedName},
		{"SHArP", ib.ServiceKey{}, false, trust.OK},
		{"mine", ib.ServiceKey{}, false, trust.OK},
		{"", ib.ServiceKey{}, false, trust.OK},
		{strings.Repeat("n", 64), ib.ServiceKey{}, false, trust.OK},
	} {
		if got := s.Check(&o, field(tt.name), tt.key, tt.trusted); got != tt.want {
			t.Errorf("%q, key %v, trusted %v: %v, want %v", tt.name, tt.key, tt.trusted, got, tt.want)
		}
	}
	var none *trust.ServiceKeys
	if got := none.Check(&o, field("SHArP.AggregationManager"), sharpKey, false); got != trust.ReservedName || none.Len() != 0 {
		t.Errorf("without a map: %v, want %v", got, trust.ReservedName)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%x"} {
		if text := fmt.Sprintf(verb, s); strings.Contains(text, "7a19") || strings.Contains(text, "1111222") {
			t.Errorf("%s shows a key: %s", verb, text)
		}
	}
}

// TestServiceKeysRefuse: errors have their line and no key.
func TestServiceKeysRefuse(t *testing.T) {
	const secret = "dead:beef:dead:beef:dead:beef:dead:beef"
	for _, tt := range []struct{ text, want string }{
		{"name", "keys:1: 1 words: want a service name and a key"},
		{"\n\na b " + secret, "keys:3: 3 words"},
		{"name " + secret + ":1", "keys:1: the second word is no key"},
		{secret + " name", "keys:1: the second word is no key"},
		{"name ::", "not all zero"},
		{"name 10.0.0.1", "keys:1: the second word is no key"},
		{"name fe80::dead%eth0", "keys:1: the second word is no key"},
		{strings.Repeat("n", 65) + " " + secret, "a service name of 65 bytes: want at most 64"},
		{"a\x01 " + secret, `service name "a\x01": want printable characters`},
		{"a\xff " + secret, `service name "a\xff": want printable characters`},
		{"a\u202e " + secret, `service name "a\u202e": want printable characters`},
		{"a ::1\nb ::2\na " + secret, `keys:3: service name "a" is there twice`},
	} {
		s, err := trust.ParseServiceKeys("keys", []byte(tt.text))
		if err == nil || s != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.text, err, tt.want)
			continue
		}
		if strings.Contains(err.Error(), "dead") {
			t.Errorf("%q: the error shows the key: %v", tt.text, err)
		}
	}
	many := strings.Repeat("x\n", 1000)
	if _, err := trust.ParseServiceKeys("keys", []byte(many)); err == nil || strings.Count(err.Error(), "\n") != 49 {
		t.Errorf("a thousand problems are not reported as 50: %.200v", err)
	}
	if _, err := trust.ParseServiceKeys("keys", make([]byte, trust.MaxServiceKeysSize+1)); !errors.Is(err, trust.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	var b strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&b, "name%d ::%x\n", i, i%9999+1)
	}
	if _, err := trust.ParseServiceKeys("keys", []byte(b.String())); err == nil || !strings.Contains(err.Error(), "keys:8193: more than 8192 service names") {
		t.Errorf("too many names: %.100v", err)
	}
}

func FuzzServiceKeys(f *testing.F) {
	f.Add([]byte(serviceKeys))
	f.Add([]byte("a ::ffff:1.2.3.4\nb 1::#c\n"))
	f.Add([]byte("\x00 ::1\r\nx\t\t::2"))
	o := trust.DefaultOptions()
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := trust.ParseServiceKeys("f", data)
		if (s == nil) == (err == nil) {
			t.Fatalf("%q: %v and %v", data, s, err)
		}
		if err != nil {
			return
		}
		for line := range strings.Lines(string(data)) {
			line, _, _ = strings.Cut(line, "#")
			if words := strings.Fields(line); len(words) > 0 {
				if got := s.Check(&o, field(words[0]), ib.ServiceKey{}, true); got != trust.WrongServiceKey {
					t.Errorf("%q is open: %v", words[0], got)
				}
			}
		}
	})
}
