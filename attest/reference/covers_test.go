package reference_test

import (
	"testing"

	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
)

// TestCoversIsSound: where one set is said to cover another, every boot of the other
// satisfies it, tried over all small sets and boots. Yes is said often enough to matter.
func TestCoversIsSound(t *testing.T) {
	d := func(n byte) eventlog.Digest { return eventlog.Digest{n} }
	parts := []reference.Position{
		{OneOf: []eventlog.Digest{d(0)}}, {OneOf: []eventlog.Digest{d(0), d(1)}}, {Ignore: true}, {Ignore: true, Many: true},
	}
	var sets []reference.Set
	for code := range 1 << 6 { // up to three positions
		var p []reference.Position
		for c := code; c > 0; c /= 4 {
			p = append(p, parts[c%4])
		}
		sets = append(sets, reference.Set{Class: "c", Registers: []reference.Register{{PCR: 1, Events: p}}})
	}
	var boots []reference.Boot
	for n := range 5 {
		for bits := range 1 << n {
			var list []eventlog.Event
			for i := range n {
				list = append(list, eventlog.Event{PCR: 1, Digest: d(byte(bits >> i & 1))})
			}
			l := &eventlog.Log{Events: list}
			boots = append(boots, reference.Boot{Log: l, Quoted: []eventlog.Quoted{{PCR: 1, Value: l.Replay()[1]}}})
		}
	}
	yes := 0
	for i := range sets {
		if !sets[i].Covers(&sets[i]) {
			t.Fatalf("%v does not cover itself", sets[i].Registers)
		}
		for j := range sets {
			if !sets[i].Covers(&sets[j]) {
				continue
			}
			yes++
			for b := range boots {
				if len(sets[j].Compare(&boots[b])) == 0 && len(sets[i].Compare(&boots[b])) > 0 {
					t.Fatalf("%v is said to cover %v, and refuses %v", sets[i].Registers, sets[j].Registers, boots[b].Log.Events)
				}
			}
		}
	}
	if yes < 2*len(sets) {
		t.Errorf("%d pairs of %d sets cover", yes, len(sets))
	}
}

// TestCoversNot checks that a set of other registers, of another class, or with a waiver covers nothing: such a set trusts
// no boot that was not trusted before.
func TestCoversNot(t *testing.T) {
	set := func() reference.Set {
		return reference.Set{Class: "c", Registers: []reference.Register{{PCR: 0, Values: []eventlog.Digest{{1}}}, {PCR: 1, Values: []eventlog.Digest{{1}, {2}}}}}
	}
	old := set()
	for name, change := range map[string]func(*reference.Set){
		"class":             func(s *reference.Set) { s.Class = "d" },
		"waiver":            func(s *reference.Set) { s.Waiver, s.Registers = true, nil },
		"a value less":      func(s *reference.Set) { s.Registers[1].Values = s.Registers[1].Values[:1] },
		"a register less":   func(s *reference.Set) { s.Registers = s.Registers[:1] },
		"another register":  func(s *reference.Set) { s.Registers[1].PCR = 2 },
		"events for values": func(s *reference.Set) { s.Registers[1] = reference.Register{PCR: 1} },
	} {
		s := set()
		change(&s)
		if s.Covers(&old) {
			t.Errorf("%s: is said to cover", name)
		}
	}
	more := set()
	more.Registers[0].Values = append(more.Registers[0].Values, eventlog.Digest{9})
	if !more.Covers(&old) || old.Covers(&more) {
		t.Error("a value more")
	}
}
