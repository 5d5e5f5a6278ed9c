package eventlog_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"portcullis/attest/eventlog"
	"portcullis/attest/eventlog/eventlogtest"
)

func parse(t *testing.T, b []byte) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestReplay compares the log of a boot with the register values that a TPM would hold after it.
func TestReplay(t *testing.T) {
	for _, banks := range [][]eventlogtest.Bank{nil, {eventlogtest.SHA256}, {eventlogtest.SHA384, eventlogtest.SHA256}} {
		m := eventlogtest.Example()
		m.Banks = banks
		w := m.Boot()
		l := parse(t, w.Bytes())
		if l.Replay() != w.Registers() {
			t.Errorf("banks %v: replayed %v, measured %v", banks, l.Replay(), w.Registers())
		}
		if len(l.Events) != len(w.Measured) {
			t.Errorf("banks %v: %d events, %d were measured", banks, len(l.Events), len(w.Measured))
		}
		if got := l.Of(4); len(got) != 3 || got[1].Digest != eventlog.Separator || got[2].Type != eventlog.BootApplication {
			t.Errorf("banks %v: events of PCR 4 are %v", banks, got)
		}
	}
}

// TestResetValues are those of registers without events.
func TestResetValues(t *testing.T) {
	var w eventlogtest.Writer
	w.NoAction(0, []byte("StartupLocality\x00\x03"))
	got := parse(t, w.Bytes()).Replay()
	if want := (eventlog.Digest{31: 3}); got[0] != want {
		t.Errorf("PCR 0 starts as %v, want %v", got[0], want)
	}
	for pcr := 1; pcr < eventlog.NumPCRs; pcr++ {
		want := eventlog.Digest{}
		if pcr >= 17 && pcr <= 22 {
			want = eventlog.Digest(bytes.Repeat([]byte{0xff}, 32))
		}
		if got[pcr] != want {
			t.Errorf("PCR %d starts as %v, want %v", pcr, got[pcr], want)
		}
	}
}

// TestStartupLocality starts PCR 0 at the locality.
func TestStartupLocality(t *testing.T) {
	m := eventlogtest.Example()
	m.Locality = 3
	l := parse(t, m.Boot().Bytes())
	if l.Locality != 3 {
		t.Fatalf("locality %d, want 3", l.Locality)
	}
	want := eventlog.Digest{31: 3}
	for _, e := range l.Of(0) {
		want = want.Extend(e.Digest)
	}
	if got := l.Replay()[0]; got != want {
		t.Errorf("PCR 0 holds %v, want %v", got, want)
	}
}

func quoted(all [eventlog.NumPCRs]eventlog.Digest) (out []eventlog.Quoted) {
	for pcr := range 8 {
		out = append(out, eventlog.Quoted{PCR: pcr, Value: all[pcr]})
	}
	return out
}

// TestMatch refuses a log that is not that of the quoted boot.
func TestMatch(t *testing.T) {
	m := eventlogtest.Example()
	w := m.Boot()
	whole, values := parse(t, w.Bytes()), quoted(w.Registers())
	if err := whole.Match(values); err != nil {
		t.Fatal(err)
	}
	for name, alter := range map[string]func(*eventlog.Log){
		"34: header only": func(l *eventlog.Log) { l.Events = nil },
		"35: all events of PCR 6 gone": func(l *eventlog.Log) {
			l.Events = slices.DeleteFunc(l.Events, func(e eventlog.Event) bool { return e.PCR == 6 })
		},
		"the last event of PCR 4 gone": func(l *eventlog.Log) {
			l.Events = slices.DeleteFunc(l.Events, func(e eventlog.Event) bool { return e.Type == eventlog.BootApplication })
		},
		"an event too many":              func(l *eventlog.Log) { l.Events = append(l.Events, eventlog.Event{PCR: 2}) },
		"two events of PCR 7 exchanged":  func(l *eventlog.Log) { exchange(l, 7) },
		"another locality":               func(l *eventlog.Log) { l.Locality = 4 },
		"PCR 3 shown as events of PCR 1": func(l *eventlog.Log) { relabel(l, 3, 1) },
	} {
		l := &eventlog.Log{Locality: whole.Locality, Events: slices.Clone(whole.Events)}
		alter(l)
		if err := l.Match(values); err == nil {
			t.Errorf("%s: matches", name)
		}
	}
	if err := whole.Match([]eventlog.Quoted{{PCR: 24}}); err == nil {
		t.Error("PCR 24 matches")
	}
}

func exchange(l *eventlog.Log, pcr int) {
	var at []int
	for i := range l.Events {
		if l.Events[i].PCR == pcr {
			at = append(at, i)
		}
	}
	l.Events[at[0]], l.Events[at[1]] = l.Events[at[1]], l.Events[at[0]]
}

func relabel(l *eventlog.Log, from, to int) {
	for i := range l.Events {
		if l.Events[i].PCR == from {
			l.Events[i].PCR = to
		}
	}
}

// TestTypesDoNotCount: test 38 of the reference.
func TestTypesDoNotCount(t *testing.T) {
	m := eventlogtest.Example()
	m.Banks = []eventlogtest.Bank{eventlogtest.SHA256}
	w := m.Boot()
	b := bytes.Clone(w.Bytes())
	rewritten := 0
	for at := headerSize(b); at < len(b); rewritten++ {
		binary.LittleEndian.PutUint32(b[at+4:], 0x0000_0005)
		at += 4 + 4 + 4 + 2 + 32
		at += 4 + int(binary.LittleEndian.Uint32(b[at:]))
	}
	if got := parse(t, b); got.Replay() != w.Registers() || rewritten != len(got.Events) || got.Events[0].Type != eventlog.Action {
		t.Errorf("%d types rewritten: %d events, registers %v", rewritten, len(got.Events), got.Replay())
	}
}

func headerSize(b []byte) int { return 32 + int(binary.LittleEndian.Uint32(b[28:])) }

// TestTruncated reads every prefix of a log: only prefixes that end after an event can be read, and these have fewer
// events.
func TestTruncated(t *testing.T) {
	m := eventlogtest.Example()
	whole := m.Boot().Bytes()
	events := len(parse(t, whole).Events)
	good := 0
	for n := range whole {
		l, err := eventlog.Parse(whole[:n])
		if err != nil {
			continue
		}
		good++
		if len(l.Events) >= events {
			t.Errorf("%d of %d bytes give %d events", n, len(whole), len(l.Events))
		}
	}
	if good != events {
		t.Errorf("%d parts can be read, want those that end after an event: %d", good, events)
	}
}

// TestBadLogs are refused, each for its reason.
func TestBadLogs(t *testing.T) {
	header := func(data []byte) []byte { return eventlogtest.Legacy(0, eventlog.NoAction, [20]byte{}, data) }
	event := func(write func(w *eventlogtest.Writer)) []byte {
		var w eventlogtest.Writer
		write(&w)
		return w.Bytes()
	}
	after := func(b ...byte) []byte { return event(func(w *eventlogtest.Writer) { w.Append(b) }) }
	dup := append([]byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}, bytes.Repeat(append([]byte{0x0b, 0}, make([]byte, 32)...), 2)...)
	twoBanks := header(eventlogtest.Header(eventlogtest.SHA256, eventlogtest.SHA384))
	loc := func(data string) func(w *eventlogtest.Writer) {
		return func(w *eventlogtest.Writer) { w.NoAction(0, []byte("StartupLocality\x00"+data)) }
	}
	spec := eventlogtest.Header(eventlogtest.SHA256)
	with := func(at int, v byte) []byte { b := bytes.Clone(spec); b[at] = v; return header(b) }
	for _, tt := range []struct {
		name, want string
		log        []byte
	}{
		{"nothing", "header", nil},
		{"33: garbage after the last event", "truncated", after(1, 2, 3)},
		{"33: event of 0xffffffff bytes", "over its size", after(append(append([]byte{4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0x0b, 0}, make([]byte, 32)...), 0xff, 0xff, 0xff, 0xff)...)},
		{"36: SHA-256 twice in an event", "occurs twice", append(bytes.Clone(twoBanks), append(dup, 0, 0, 0, 0)...)},
		{"36: SHA-256 twice in the header", "occurs twice", header(eventlogtest.Header(eventlogtest.SHA256, eventlogtest.SHA256))},
		{"36: an event without SHA-256", "unknown", after(append([]byte{4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0x0c, 0}, make([]byte, 52)...)...)},
		{"36: fewer digests than the header says", "the header says 1", after(4, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		{"more digests than the header says", "the header says 1", after(4, 0, 0, 0, 4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)},
		{"37: StartupLocality twice", "twice", event(func(w *eventlogtest.Writer) { loc("\x03")(w); loc("\x03")(w) })},
		{"37: StartupLocality after PCR 0", "after a measurement", event(func(w *eventlogtest.Writer) { w.Measure(0, 1, nil); loc("\x03")(w) })},
		{"37: StartupLocality 9", "want 00, 03 or 04", event(loc("\x09"))},
		{"StartupLocality without one", "want 00, 03 or 04", event(loc(""))},
		{"StartupLocality of two bytes", "want 00, 03 or 04", event(loc("\x03\x03"))},
		{"40: SHA-1 alone", "no SHA-256", header(eventlogtest.Header(eventlogtest.SHA1))},
		{"no algorithm", "no SHA-256", header(eventlogtest.Header())},
		{"SHA-256 of 20 bytes", "have 20 bytes", with(30, 20)},
		{"unknown algorithm of 65 bytes", "have 65 bytes", header(append(with2(spec, 28, 0x77, 0, 65, 0), 0))},
		{"17 algorithms", "at most 16", with(24, 17)},
		{"header with something left over", "exactly one", header(append(bytes.Clone(spec), 0))},
		{"header cut short", "truncated", header(spec[:len(spec)-3])},
		{"vendor data cut short", "exactly one", with(len(spec)-1, 1)},
		{"other signature", "format of TPM 1.2", with(0, 's')},
		{"format of TPM 1.2", "format of TPM 1.2", header(append([]byte("Spec ID Event00\x00"), make([]byte, 30)...))},
		{"header measured into PCR 1", "measures nothing", eventlogtest.Legacy(1, eventlog.NoAction, [20]byte{}, spec)},
		{"header of another type", "measures nothing", eventlogtest.Legacy(0, eventlog.Action, [20]byte{}, spec)},
		{"header with a digest", "measures nothing", eventlogtest.Legacy(0, eventlog.NoAction, [20]byte{1}, spec)},
		{"PCR 24", "want 0 to 23", event(func(w *eventlogtest.Writer) { w.Measure(24, 1, nil) })},
		{"an event that is not measured, in PCR 99", "want 0 to 23", event(func(w *eventlogtest.Writer) { w.NoAction(99, nil) })},
		{"H-CRTM", "H-CRTM", event(func(w *eventlogtest.Writer) { w.Measure(0, eventlog.HCRTM, nil) })},
		{"event of 64 KiB and 1 byte", "over its size", event(func(w *eventlogtest.Writer) { w.Measure(0, 1, make([]byte, eventlog.MaxEvent+1)) })},
		{"4097 events", "more than 4096", event(func(w *eventlogtest.Writer) {
			for range eventlog.MaxEvents + 1 {
				w.Measure(0, 1, nil)
			}
		})},
		{"512 KiB and more", "at most", make([]byte, eventlog.MaxSize+1)},
	} {
		l, err := eventlog.Parse(tt.log)
		if err == nil || !strings.Contains(err.Error(), tt.want) || l != nil {
			t.Errorf("%s: %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

// with2 replaces bytes from at on.
func with2(b []byte, at int, v ...byte) []byte {
	out := bytes.Clone(b[:at])
	return append(out, v...)
}

// TestLimitsAreReached checks that a log just within the limits is read.
func TestLimitsAreReached(t *testing.T) {
	var w eventlogtest.Writer
	w.Measure(23, 1, make([]byte, eventlog.MaxEvent))
	w.NoAction(0xffffffff, []byte("SP800-155 Event3"))
	for range eventlog.MaxEvents - 2 {
		w.Measure(0, 1, nil)
	}
	if l := parse(t, w.Bytes()); len(l.Events) != eventlog.MaxEvents-1 {
		t.Errorf("%d events", len(l.Events))
	}
}

// TestDescribe names events, and never prints what a terminal obeys.
func TestDescribe(t *testing.T) {
	m := eventlogtest.Example()
	l := parse(t, m.Boot().Bytes())
	var got []string
	for i := range l.Events {
		e := l.Events[i]
		got = append(got, e.Describe())
		if e.Data = e.Brief(); e.Describe() != got[i] {
			t.Errorf("%q is %q in brief", got[i], e.Describe())
		}
	}
	for _, want := range []string{
		"EV_S_CRTM_VERSION Example 2.19.1", "EV_EFI_VARIABLE_DRIVER_CONFIG SecureBoot", "EV_SEPARATOR",
		"EV_EFI_ACTION Exit Boot Services Invocation", "EV_EFI_BOOT_SERVICES_APPLICATION",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no event is %q among %q", want, got)
		}
	}
	for _, e := range []eventlog.Event{
		{Type: eventlog.EFIAction, Data: []byte("\x1b[2J\u202e" + strings.Repeat("x", 500))},
		{Type: eventlog.VariableBoot, Data: append(make([]byte, 16), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0)},
		{Type: 0x12345678},
	} {
		for _, r := range e.Describe() {
			if r < ' ' || r > '~' || len(e.Describe()) > 120 {
				t.Errorf("described as %q", e.Describe())
			}
		}
	}
}

// TestDigestText reads what it writes and nothing else.
func TestDigestText(t *testing.T) {
	text, err := eventlog.Separator.MarshalText()
	if err != nil || string(text) != "df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119" {
		t.Fatalf("separator is %s, %v", text, err)
	}
	var d eventlog.Digest
	if err := d.UnmarshalText(text); err != nil || d != eventlog.Separator {
		t.Errorf("%s is read as %v, %v", text, d, err)
	}
	for _, bad := range []string{"", "df", string(text) + "00", strings.Repeat("g", 64)} {
		if err := d.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken as a digest", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	m := eventlogtest.Example()
	f.Add(m.Boot().Bytes())
	m.Banks, m.Locality = []eventlogtest.Bank{eventlogtest.SHA256}, 3
	f.Add(m.Boot().Bytes())
	f.Add(new(eventlogtest.Writer).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := eventlog.Parse(b)
		if err != nil {
			if l != nil {
				t.Error("a log and an error")
			}
			return
		}
		if len(l.Events) > eventlog.MaxEvents {
			t.Errorf("%d events", len(l.Events))
		}
		for i := range l.Events {
			if e := &l.Events[i]; e.PCR < 0 || e.PCR >= eventlog.NumPCRs || len(e.Describe()) > 120 {
				t.Errorf("event %d: PCR %d, %q", i, e.PCR, e.Describe())
			}
		}
		if err := l.Match(quoted(l.Replay())); err != nil {
			t.Errorf("does not match its own replay: %v", err)
		}
	})
}
