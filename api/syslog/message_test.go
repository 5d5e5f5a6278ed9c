package syslog

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func sample() Message {
	return Message{
		Facility: Audit, Severity: Warning, Time: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("CET", 3600)), Host: "mgmt-1", App: "portcullisd",
		Process: "77", ID: "lock.changed", Element: "portcullis@32473", Params: []Param{{"host", "h1"}, {"seen", `a "b\c]`}}, Text: "open",
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	m := sample()
	if got, want := string(m.AppendTo(nil)), `<108>1 2026-03-01T11:00:00.123456Z mgmt-1 portcullisd 77 lock.changed [portcullis@32473 host="h1" seen="a \"b\\c\]"] open`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := string(m.AppendLocal([]byte("x"))), `x<108>Mar  1 12:00:00 portcullisd[77]: [portcullis@32473 host="h1" seen="a \"b\\c\]"] open`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := string((&Message{}).AppendTo(nil)), "<0>1 - - - - - - "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m.Text = "Zürich"
	if got := string(m.AppendTo(nil)); !strings.HasSuffix(got, "] \ufeffZürich") {
		t.Errorf("%q has no mark of UTF-8", got)
	}
	if got := string(m.AppendLocal(nil)); !strings.HasSuffix(got, "] Zürich") {
		t.Errorf("%q", got)
	}
}

// A message may repeat the word of a host: it makes no second message, no second value and no second element.
func TestHostile(t *testing.T) {
	t.Parallel()
	m := sample()
	m.Host, m.App, m.ID = "a b\n<0>1", "x\r\ny", "t] [z"
	m.Element, m.Params = "p]q=", []Param{{"n=\"]\n", "1\"] [x@1 y=\"2\n\x00\x1b[31m\u0085\u2028\u202e\xff"}}
	m.Text = "one\n<13>1 - - evil - - - two\r\x00\x7f\u2029"
	if got, want := string(m.AppendTo(nil)), `<108>1 2026-03-01T11:00:00.123456Z a_b_<0>1 x__y 77 t]_[z [p_q_ n____="1\"\] [x@1 y=\"2   [31m   ?"] one <13>1 - - evil - - - two    `; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestLong(t *testing.T) {
	t.Parallel()
	m := sample()
	m.Params = nil
	for n := range 20 {
		m.Params = append(m.Params, Param{"p" + strconv.Itoa(n), strings.Repeat("]", 2*maxValue)})
	}
	m.Text = strings.Repeat("ü", MaxMessage)
	for name, got := range map[string][]byte{"RFC 5424": m.AppendTo(nil), "local": m.AppendLocal(nil)} {
		if len(got) > MaxMessage || len(got) < MaxMessage-3 || !utf8.Valid(got) {
			t.Errorf("%s: %d bytes", name, len(got))
		}
		if !bytes.Contains(got, []byte(`"] `)) || !bytes.HasSuffix(got, []byte("ü")) {
			t.Errorf("%s: the structured data have no end, or there is no text: %s", name, got)
		}
	}
}

func TestFacilities(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Facility{"audit": 13, "daemon": 3, "local7": 23} {
		if got, ok := ParseFacility(name); !ok || got != want {
			t.Errorf("%s: %d, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "kern", "local8", "13"} {
		if got, ok := ParseFacility(name); ok {
			t.Errorf("%q is %d", name, got)
		}
	}
}

// The header and the element of RFC 5424, section 6, as a reader of it has them.
var (
	header5424 = regexp.MustCompile(`^<(\d{1,3})>1 (\S+) (\S{1,255}) (\S{1,48}) (\S{1,128}) (\S{1,32}) `)
	paramForm  = regexp.MustCompile(`^ ([!#-<>-\\^-~]{1,32})="((?:[^"\\\]]|\\["\\\]])*)"`)
	nameForm   = regexp.MustCompile(`^\[([!#-<>-\\^-~]{1,32})`)
	unescape   = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\]`, `]`)
)

// parse reads a message by the grammar.
func parse(t *testing.T, msg string) (fields []string, params []Param, text string) {
	t.Helper()
	m := header5424.FindStringSubmatch(msg)
	if m == nil {
		t.Fatalf("no header: %q", msg)
	}
	rest := msg[len(m[0]):]
	if after, ok := strings.CutPrefix(rest, "-"); ok {
		rest = after
	} else {
		n := nameForm.FindString(rest)
		if n == "" {
			t.Fatalf("no element: %q", msg)
		}
		for rest = rest[len(n):]; ; {
			p := paramForm.FindStringSubmatch(rest)
			if p == nil {
				break
			}
			params, rest = append(params, Param{p[1], unescape.Replace(p[2])}), rest[len(p[0]):]
		}
		if !strings.HasPrefix(rest, "]") {
			t.Fatalf("the element does not end at %q: %q", rest, msg)
		}
		rest = rest[1:]
	}
	if !strings.HasPrefix(rest, " ") {
		t.Fatalf("no text after %q", msg)
	}
	return m[1:], params, rest[1:]
}

// FuzzMessage: whatever the parts are, a reader of RFC 5424 finds one message, with one element and each value where it was put.
func FuzzMessage(f *testing.F) {
	f.Add("h1", "app", "1", "id", "el@1", "name", "value", "text")
	f.Add("a b", "\n", "\x00", "]", `="]`, "n\n", `"] [x y="\`, "one\n<1>1 - two\u2028")
	f.Add("", "", "", "", "", "", "", "")
	f.Add(strings.Repeat("h", 300), "ü", "\xff", strings.Repeat("i", 40), strings.Repeat("e", 40), "", strings.Repeat(`\`, 3000), strings.Repeat("ü", 9000))
	f.Fuzz(func(t *testing.T, host, app, process, id, element, name, value, text string) {
		m := Message{
			Facility: Audit, Severity: Notice, Time: time.Unix(1, 0).UTC(), Host: host, App: app, Process: process, ID: id, Element: element,
			Params: []Param{{name, value}, {"last", "z"}}, Text: text,
		}
		remote, local := m.AppendTo(nil), m.AppendLocal(nil)
		for _, b := range [][]byte{remote, local} {
			if len(b) > MaxMessage || !utf8.Valid(b) || bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r >= 0x80 && r < 0xa0 }) {
				t.Fatalf("%d bytes: %q", len(b), b)
			}
		}
		fields, params, got := parse(t, string(remote))
		if fields[0] != "109" {
			t.Errorf("priority %s", fields[0])
		}
		if element == "" && len(params) > 0 || element != "" && (len(params) != 2 || params[1] != Param{"last", "z"}) {
			t.Fatalf("values %q of %q", params, remote)
		}
		clean := func(s string) string { return strings.Map(printable, s) }
		if element != "" && !strings.HasPrefix(clean(value), params[0].Value) {
			t.Errorf("value %q of %q", params[0].Value, value)
		}
		if body := strings.TrimPrefix(got, bom); !strings.HasPrefix(clean(text), body) || len(text) < 1000 && body != clean(text) {
			t.Errorf("text %q of %q", got, text)
		}
	})
}

func TestNamesOfHosts(t *testing.T) {
	t.Parallel()
	if name := HostName(); slices.ContainsFunc([]byte(name), func(c byte) bool { return c <= ' ' || c > '~' }) {
		t.Errorf("%q", name)
	}
}
