package reference_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/attest/eventlog"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/attest/reference"
)

var now = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// boot is a boot whose registers 0 to 7 and extra are quoted.
func boot(t *testing.T, m eventlogtest.Machine, extra ...int) reference.Boot {
	t.Helper()
	return bootOf(t, m.Boot(), extra...)
}

func bootOf(t *testing.T, w *eventlogtest.Writer, extra ...int) reference.Boot {
	t.Helper()
	l, err := eventlog.Parse(w.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	b := reference.Boot{Log: l}
	all := w.Registers()
	for _, pcr := range append([]int{0, 1, 2, 3, 4, 5, 6, 7}, extra...) {
		b.Quoted = append(b.Quoted, eventlog.Quoted{PCR: pcr, Value: all[pcr]})
	}
	return b
}

func approved(t *testing.T, version uint64, boots ...reference.Boot) reference.Set {
	t.Helper()
	regs, err := reference.Learn(nil, boots)
	if err != nil {
		t.Fatal(err)
	}
	s := reference.Set{Class: "gpu-node", Version: version, State: reference.Approved, Registers: regs, Owner: "ann", Made: now}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

func judge(sets []reference.Set, b reference.Boot) (reference.Match, error) {
	return reference.Judge(sets, "gpu-node", now, &b)
}

// TestJudge is which boots the set of one machine trusts.
func TestJudge(t *testing.T) {
	base := eventlogtest.Example()
	sets := []reference.Set{approved(t, 1, boot(t, base))}
	other := func(change func(*eventlogtest.Machine)) eventlogtest.Machine {
		m := base
		change(&m)
		return m
	}
	for _, tt := range []struct {
		name string
		m    eventlogtest.Machine
		want string // of the error; "": trusted
	}{
		{"the same again", base, ""},
		{"39: other firmware", other(func(m *eventlogtest.Machine) { m.Firmware = "2.20.0" }), "PCR 0 event 1"},
		{"another boot loader", other(func(m *eventlogtest.Machine) { m.Image = "tenant's" }), "PCR 4 event 3"},
		{"other Secure Boot keys", other(func(m *eventlogtest.Machine) { m.Keys = "tenant's" }), "PCR 7"},
		{"other firmware settings", other(func(m *eventlogtest.Machine) { m.Settings = "overclocked" }), "PCR 1 event 1"},
		{"another MAC", other(func(m *eventlogtest.Machine) { m.MAC = "00:00:5e:00:53:02" }), "PCR 1 event 3"},
		{"one boot option more", other(func(m *eventlogtest.Machine) { m.Options = []string{"virtual media"} }), "PCR 1 event 4"},
	} {
		got, err := judge(sets, boot(t, tt.m))
		switch {
		case tt.want == "" && (err != nil || got.Set != "gpu-node/1" || got.Waiver):
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %+v, %v; want an error with %q", tt.name, got, err, tt.want)
		}
	}
}

// TestRefusalFits: a refusal names what differs, and fits into what is kept of it.
func TestRefusalFits(t *testing.T) {
	base, other := eventlogtest.Example(), eventlogtest.Example()
	other.Firmware, other.Image, other.Keys, other.MAC = "2.20.0", "tenant's", "tenant's", "00:00:5e:00:53:02"
	_, err := judge([]reference.Set{approved(t, 1, boot(t, base))}, boot(t, other))
	if err == nil {
		t.Fatal("trusted")
	}
	for _, want := range []string{
		"gpu-node/1: 10 differences, in PCR 0, 1, 2, 4, 7: PCR 0 event 1 is ", "(EV_S_CRTM_VERSION Example 2.20.0), want cced14dbbd74 (EV_S_CRTM_VERSION Example 2.19.1); ",
		"PCR 1 event 3 is ", "PCR 2 event 1 is ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if len(err.Error()) > 512 {
		t.Errorf("%d characters: %v", len(err.Error()), err)
	}
}

// TestLearnedFromTwo ignores what machines of one model differ in, and nothing
// else.
func TestLearnedFromTwo(t *testing.T) {
	a, b, c := eventlogtest.Example(), eventlogtest.Example(), eventlogtest.Example()
	b.MAC, c.MAC = "00:00:5e:00:53:02", "00:00:5e:00:53:03"
	sets := []reference.Set{approved(t, 1, boot(t, a), boot(t, b))}
	if _, err := judge(sets, boot(t, c)); err != nil {
		t.Errorf("a third machine: %v", err)
	}
	c.Settings = "overclocked"
	if _, err := judge(sets, boot(t, c)); err == nil {
		t.Error("other settings are trusted, though the two had the same")
	}
	c = eventlogtest.Example()
	c.Options = []string{"virtual media", "stick"}
	sets = []reference.Set{approved(t, 2, boot(t, a), boot(t, c))}
	for _, options := range [][]string{nil, {"virtual media"}, {"x", "y", "z"}} {
		m := a
		m.Options = options
		if _, err := judge(sets, boot(t, m)); err != nil {
			t.Errorf("boot options %v: %v", options, err)
		}
	}
	m := c
	m.Firmware = "2.20.0"
	if _, err := judge(sets, boot(t, m)); err == nil {
		t.Error("other firmware is trusted because boot options differ")
	}
}

// TestLearnOneOf takes each digest that was seen where code is, and refuses
// boots that differ in how many there are.
func TestLearnOneOf(t *testing.T) {
	a, b, c := eventlogtest.Example(), eventlogtest.Example(), eventlogtest.Example()
	b.Image, c.Image = "provisioning image 8", "provisioning image 9"
	sets := []reference.Set{approved(t, 1, boot(t, a), boot(t, b))}
	for _, m := range []eventlogtest.Machine{a, b} {
		if _, err := judge(sets, boot(t, m)); err != nil {
			t.Errorf("%s: %v", m.Image, err)
		}
	}
	if _, err := judge(sets, boot(t, c)); err == nil || !strings.Contains(err.Error(), "one of ") {
		t.Errorf("%s: %v", c.Image, err)
	}
	w := a.Boot()
	w.Measure(4, eventlog.BootApplication, []byte("one more"))
	if _, err := reference.Learn(nil, []reference.Boot{boot(t, a), bootOf(t, w)}); err == nil || !strings.Contains(err.Error(), "PCR 4: boots differ in the number") {
		t.Errorf("learned from boots with more and fewer events of PCR 4: %v", err)
	}
}

// TestSets is which of several sets count.
func TestSets(t *testing.T) {
	old, updated := eventlogtest.Example(), eventlogtest.Example()
	updated.Firmware = "2.20.0"
	v1, v2 := approved(t, 1, boot(t, old)), approved(t, 2, boot(t, updated))
	waiver := reference.Set{Class: "gpu-node", Version: 3, Waiver: true, State: reference.Approved, Owner: "ann", Reason: "INC-7", Made: now.Add(-time.Hour), Expires: now.Add(time.Hour)}
	with := func(s reference.Set, change func(*reference.Set)) reference.Set { change(&s); return s }
	for _, tt := range []struct {
		name string
		sets []reference.Set
		m    eventlogtest.Machine
		want string // name of the set, "" for a refusal
	}{
		{"70: none", nil, old, ""},
		{"roll-out, not updated yet", []reference.Set{v1, v2}, old, "gpu-node/1"},
		{"roll-out, updated", []reference.Set{v1, v2}, updated, "gpu-node/2"},
		{"after the roll-out", []reference.Set{with(v1, func(s *reference.Set) { s.State = reference.Ended }), v2}, old, ""},
		{"a draft", []reference.Set{with(v1, func(s *reference.Set) { s.State = reference.Draft })}, old, ""},
		{"expired now", []reference.Set{with(v1, func(s *reference.Set) { s.Expires = now })}, old, ""},
		{"expires soon", []reference.Set{with(v1, func(s *reference.Set) { s.Expires = now.Add(time.Second) })}, old, "gpu-node/1"},
		{"of another class", []reference.Set{with(v1, func(s *reference.Set) { s.Class = "storage" })}, old, ""},
		{"damaged", []reference.Set{with(v1, func(s *reference.Set) { s.Registers = s.Registers[:7] })}, old, ""},
		{"T106: waiver in force", []reference.Set{waiver}, old, "gpu-node/3"},
		{"a waiver is the last resort", []reference.Set{waiver, v1}, old, "gpu-node/1"},
		{"T106: waiver expired", []reference.Set{with(waiver, func(s *reference.Set) { s.Expires = now })}, old, ""},
		{"T106: waiver without owner", []reference.Set{with(waiver, func(s *reference.Set) { s.Owner = "" })}, old, ""},
		{"T106: waiver for ever", []reference.Set{with(waiver, func(s *reference.Set) { s.Expires = time.Time{} })}, old, ""},
		{"T106: waiver for a year", []reference.Set{with(waiver, func(s *reference.Set) { s.Expires = now.AddDate(1, 0, 0) })}, old, ""},
		{"the two of the same newest first", []reference.Set{v1, with(v1, func(s *reference.Set) { s.Version = 9 })}, old, "gpu-node/9"},
	} {
		got, err := judge(tt.sets, boot(t, tt.m))
		if got.Set != tt.want || (err == nil) != (tt.want != "") || got.Waiver != (tt.want == waiver.Name()) {
			t.Errorf("%s: %+v, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

// TestSeparators: firmware must have come to its end.
func TestSeparators(t *testing.T) {
	m := eventlogtest.Example()
	sets := []reference.Set{approved(t, 1, boot(t, m))}
	w := m.Boot()
	l, err := eventlog.Parse(w.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for pcr := range 8 {
		cut := &eventlog.Log{Events: slices.DeleteFunc(slices.Clone(l.Events), func(e eventlog.Event) bool {
			return e.PCR == pcr && e.Digest == eventlog.Separator
		})}
		b := reference.Boot{Log: cut}
		for i, v := range cut.Replay() {
			b.Quoted = append(b.Quoted, eventlog.Quoted{PCR: i, Value: v})
		}
		b.Quoted = b.Quoted[:8]
		if _, err := judge(sets, b); err == nil || !strings.Contains(err.Error(), "no separator") {
			t.Errorf("PCR %d without separator: %v", pcr, err)
		}
		if _, err := reference.Learn(nil, []reference.Boot{b}); err == nil {
			t.Errorf("learned from a boot without the separator of PCR %d", pcr)
		}
	}
	late := &eventlog.Log{Events: slices.Clone(l.Events)}
	i := slices.IndexFunc(late.Events, func(e eventlog.Event) bool { return e.PCR == 6 })
	late.Events = append(slices.Delete(late.Events, i, i+1), eventlog.Event{PCR: 6, Digest: eventlog.Separator})
	if err := reference.CheckSeparators(late); err == nil || !strings.Contains(err.Error(), "before the boot loader") {
		t.Errorf("separator of PCR 6 after the boot loader: %v", err)
	}
}

// TestMoreRegisters checks that the registers that a site quotes beyond the firmware's must be in the set: by events if the
// log leads to the quoted value, otherwise by value.
func TestMoreRegisters(t *testing.T) {
	m := eventlogtest.Example()
	b := boot(t, m, 9, 11, 12)
	later := boot(t, m, 9, 11, 12)
	later.Quoted[9].Value = eventlog.Digest{1} // PCR 11, by the running system
	if _, err := judge([]reference.Set{approved(t, 1, boot(t, m))}, b); err == nil || !strings.Contains(err.Error(), "PCR 9") {
		t.Errorf("a set without PCR 9: %v", err)
	}
	if _, err := judge([]reference.Set{approved(t, 1, b)}, boot(t, m)); err == nil || !strings.Contains(err.Error(), "not quoted") {
		t.Errorf("a set with more than is quoted: %v", err)
	}
	byEvents, byValue := approved(t, 1, b), approved(t, 2, later)
	if len(byValue.Registers[9].Values) != 1 || len(byEvents.Registers[9].Values) != 0 {
		t.Errorf("learned PCR 11 as %+v and %+v", byEvents.Registers[9], byValue.Registers[9])
	}
	if _, err := judge([]reference.Set{byEvents}, later); err == nil {
		t.Error("PCR 11 has more than its log, and is trusted")
	}
	if got, err := judge([]reference.Set{byEvents, byValue}, later); err != nil || got.Set != "gpu-node/2" {
		t.Errorf("PCR 11 by value: %+v, %v", got, err)
	}
	m.CommandLine += " init=/bin/sh"
	if _, err := judge([]reference.Set{byEvents}, boot(t, m, 9, 11, 12)); err == nil || !strings.Contains(err.Error(), "PCR 9") {
		t.Errorf("another command line: %v", err)
	}
}

// TestIgnore is for configuration alone.
func TestIgnore(t *testing.T) {
	m := eventlogtest.Example()
	s := approved(t, 1, boot(t, m))
	for _, bad := range [][2]int{{0, 1}, {2, 1}, {4, 3}, {7, 1}, {9, 1}, {1, 0}, {1, 99}} {
		if err := reference.Ignore(s.Registers, bad[0], bad[1]); err == nil {
			t.Errorf("PCR %d event %d is ignored", bad[0], bad[1])
		}
	}
	if err := reference.Ignore(s.Registers, 1, 3); err != nil {
		t.Fatal(err)
	}
	m.MAC = "00:00:5e:00:53:99"
	if _, err := judge([]reference.Set{s}, boot(t, m)); err != nil {
		t.Errorf("another MAC: %v", err)
	}
}

// TestCheck refuses sets that would trust too much.
func TestCheck(t *testing.T) {
	m := eventlogtest.Example()
	for name, alter := range map[string]func(*reference.Set){
		"no class":                    func(s *reference.Set) { s.Class = "" },
		"class with a slash":          func(s *reference.Set) { s.Class = "a/b" },
		"PCR 4 missing":               func(s *reference.Set) { s.Registers = slices.Delete(s.Registers, 4, 5) },
		"PCR 7 twice":                 func(s *reference.Set) { s.Registers = append(s.Registers, s.Registers[7]) },
		"PCR 24":                      func(s *reference.Set) { s.Registers = append(s.Registers, reference.Register{PCR: 24}) },
		"an event of PCR 4 ignored":   func(s *reference.Set) { s.Registers[4].Events[2] = reference.Position{Ignore: true} },
		"an event of PCR 0 ignored":   func(s *reference.Set) { s.Registers[0].Events[0] = reference.Position{Ignore: true} },
		"many, not ignored":           func(s *reference.Set) { s.Registers[1].Events[0].Many = true },
		"ignored with digests":        func(s *reference.Set) { s.Registers[1].Events[0].Ignore = true },
		"a position without a digest": func(s *reference.Set) { s.Registers[4].Events[0].OneOf = nil },
		"values and events":           func(s *reference.Set) { s.Registers[4].Values = make([]eventlog.Digest, 1) },
		"33 values": func(s *reference.Set) {
			s.Registers[4] = reference.Register{PCR: 4, Values: make([]eventlog.Digest, 33)}
		},
		"33 digests at a position": func(s *reference.Set) { s.Registers[4].Events[0].OneOf = make([]eventlog.Digest, 33) },
		"8193 digests": func(s *reference.Set) {
			for i := range s.Registers {
				s.Registers[i].Events = slices.Repeat([]reference.Position{{OneOf: make([]eventlog.Digest, 1)}}, 1024)
			}
		},
		"a waiver with values": func(s *reference.Set) { s.Waiver = true },
	} {
		s := approved(t, 1, boot(t, m))
		alter(&s)
		if err := s.Check(); err == nil {
			t.Errorf("%s: is taken", name)
		}
	}
}

// TestMatchesLikeASlowJudge holds the pattern match against trying everything.
func TestMatchesLikeASlowJudge(t *testing.T) {
	d := func(n byte) eventlog.Digest { return eventlog.Digest{n} }
	parts := []reference.Position{
		{OneOf: []eventlog.Digest{d(0)}}, {OneOf: []eventlog.Digest{d(1)}}, {Ignore: true}, {Ignore: true, Many: true},
	}
	var events [][]eventlog.Event
	for n := range 4 {
		for bits := range 1 << n {
			var list []eventlog.Event
			for i := range n {
				list = append(list, eventlog.Event{PCR: 1, Digest: d(byte(bits >> i & 1))})
			}
			events = append(events, list)
		}
	}
	checked := 0
	for code := range 4 * 4 * 4 * 4 * 4 {
		var p []reference.Position
		for c := code; c > 0; c /= 4 {
			p = append(p, parts[c%4])
		}
		s := reference.Set{Registers: []reference.Register{{PCR: 1, Events: p}}}
		for _, list := range events {
			l := &eventlog.Log{Events: list}
			b := reference.Boot{Log: l, Quoted: []eventlog.Quoted{{PCR: 1, Value: l.Replay()[1]}}}
			if got, want := len(s.Compare(&b)) == 0, slow(p, list); got != want {
				t.Fatalf("positions %v, events %v: %v, want %v", p, list, got, want)
			}
			checked++
		}
	}
	if checked != 1024*15 {
		t.Errorf("%d cases", checked)
	}
}

func slow(p []reference.Position, events []eventlog.Event) bool {
	switch {
	case len(p) == 0:
		return len(events) == 0
	case p[0].Many:
		return slow(p[1:], events) || len(events) > 0 && slow(p, events[1:])
	default:
		return len(events) > 0 && (p[0].Ignore || p[0].OneOf[0] == events[0].Digest) && slow(p[1:], events[1:])
	}
}

// TestLearnFromBase widens a set by a boot that it refuses, and no further.
func TestLearnFromBase(t *testing.T) {
	m := eventlogtest.Example()
	base := approved(t, 1, boot(t, m, 9))
	refused := m
	refused.MAC = "00:00:5e:00:53:02"
	if _, err := judge([]reference.Set{base}, boot(t, refused, 9)); err == nil {
		t.Fatal("another MAC is trusted from the first")
	}
	regs, err := reference.Learn(base.Registers, []reference.Boot{boot(t, refused, 9)})
	if err != nil {
		t.Fatal(err)
	}
	wider := base
	wider.Version, wider.Registers = 2, regs
	for _, mac := range []string{"00:00:5e:00:53:01", "00:00:5e:00:53:02", "00:00:5e:00:53:03"} {
		m.MAC = mac
		if _, err := judge([]reference.Set{wider}, boot(t, m, 9)); err != nil {
			t.Errorf("MAC %s: %v", mac, err)
		}
	}
	m.Settings = "overclocked"
	if _, err := judge([]reference.Set{wider}, boot(t, m, 9)); err == nil {
		t.Error("other settings are trusted")
	}
	if _, err := judge([]reference.Set{base}, boot(t, refused, 9)); err == nil {
		t.Error("learning changed the set that it began with")
	}
	if _, err := reference.Learn(base.Registers, []reference.Boot{boot(t, refused)}); err == nil {
		t.Error("learned from a boot that quotes other registers")
	}
}

// FuzzLearn: a boot always satisfies the set that is learned from it and another.
func FuzzLearn(f *testing.F) {
	m := eventlogtest.Example()
	a := m.Boot().Bytes()
	m.Options = []string{"virtual media"}
	f.Add(a, m.Boot().Bytes())
	f.Fuzz(func(t *testing.T, x, y []byte) {
		var boots []reference.Boot
		for _, b := range [][]byte{x, y} {
			l, err := eventlog.Parse(b)
			if err != nil {
				return
			}
			boot := reference.Boot{Log: l}
			for i, v := range l.Replay() {
				boot.Quoted = append(boot.Quoted, eventlog.Quoted{PCR: i, Value: v})
			}
			boot.Quoted = boot.Quoted[:8]
			boots = append(boots, boot)
		}
		regs, err := reference.Learn(nil, boots)
		if err != nil {
			return
		}
		s := reference.Set{Class: "gpu-node", Version: 1, State: reference.Approved, Registers: regs}
		if s.Check() != nil {
			return // over its size
		}
		for i := range boots {
			if got, err := judge([]reference.Set{s}, boots[i]); err != nil {
				t.Errorf("boot %d of those learned from: %+v, %v", i, got, err)
			}
		}
	})
}
