package reference

import (
	"fmt"
	"slices"

	"portcullis/attest/eventlog"
)

// Learn returns the registers of a set that all boots satisfy, and also all boots that satisfied base, which may be nil.
// Where boots differ, registers of configuration ignore it, and others take each of the digests that were seen. All boots
// must quote the registers of base, or the same ones; in registers of code and keys they must have the same number of
// events.
//
// Registers from 0 to 7 are learned by their events. Others too, unless their log does not lead to the quoted value: then
// by their values.
func Learn(base []Register, boots []Boot) ([]Register, error) {
	if len(boots) == 0 {
		return nil, fmt.Errorf("no boot to learn from")
	}
	for i := range boots {
		if err := learnable(&boots[i], &boots[0]); err != nil {
			return nil, fmt.Errorf("boot %d: %w", i+1, err)
		}
	}
	if base != nil && !slices.EqualFunc(base, boots[0].Quoted, func(r Register, q eventlog.Quoted) bool { return r.PCR == q.PCR }) {
		return nil, fmt.Errorf("boot 1: quotes other registers than the base set")
	}
	out := make([]Register, 0, len(boots[0].Quoted))
	for i, q := range boots[0].Quoted {
		var from *Register
		if base != nil {
			from = &base[i]
		}
		r, err := learnRegister(from, boots, i, q.PCR)
		if err != nil {
			return nil, fmt.Errorf("PCR %d: %w", q.PCR, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// learnable refuses a boot that no set may be learned from.
func learnable(b, first *Boot) error {
	for pcr := range firmwarePCRs {
		if pcr >= len(b.Quoted) || b.Quoted[pcr].PCR != pcr {
			return fmt.Errorf("PCR %d is not quoted", pcr)
		}
	}
	if !slices.EqualFunc(b.Quoted, first.Quoted, func(a, b eventlog.Quoted) bool { return a.PCR == b.PCR }) {
		return fmt.Errorf("quotes other registers than the first")
	}
	if err := b.Log.Match(b.Quoted[:firmwarePCRs]); err != nil {
		return err
	}
	return CheckSeparators(b.Log)
}

func learnRegister(base *Register, boots []Boot, at, pcr int) (Register, error) {
	if !byEvents(base, boots, at) {
		return learnValues(base, boots, at, pcr)
	}
	r := Register{PCR: pcr}
	if base != nil {
		r = base.clone()
	} else {
		r.Events = positions(boots[0].Log.Of(pcr))
	}
	for i := range boots {
		if err := r.merge(boots[i].Log.Of(pcr)); err != nil {
			return r, err
		}
	}
	for i := range r.Events {
		if err := tooMany(len(r.Events[i].OneOf)); err != nil {
			return r, err
		}
	}
	return r, nil
}

// byEvents reports whether the log leads to the quoted value in all boots.
func byEvents(base *Register, boots []Boot, at int) bool {
	if base != nil && len(base.Values) > 0 {
		return false
	}
	for i := range boots {
		if boots[i].Log.Match(boots[i].Quoted[at:at+1]) != nil {
			return false
		}
	}
	return true
}

func learnValues(base *Register, boots []Boot, at, pcr int) (Register, error) {
	r := Register{PCR: pcr}
	if base != nil {
		if len(base.Values) == 0 {
			return r, fmt.Errorf("the log does not match the quoted value, and the base set has events: learn a set without it")
		}
		r = base.clone()
	}
	for i := range boots {
		r.Values = with(r.Values, boots[i].Quoted[at].Value)
	}
	return r, tooMany(len(r.Values))
}

// clone copies r deeply.
func (r *Register) clone() Register {
	c := Register{PCR: r.PCR, Values: slices.Clone(r.Values), Events: slices.Clone(r.Events)}
	for i := range c.Events {
		c.Events[i].OneOf = slices.Clone(c.Events[i].OneOf)
	}
	return c
}

func tooMany(n int) error {
	if n > MaxOneOf {
		return fmt.Errorf("%d different digests, at most %d: learn sets of fewer boots", n, MaxOneOf)
	}
	return nil
}

func with(list []eventlog.Digest, d eventlog.Digest) []eventlog.Digest {
	if slices.Contains(list, d) {
		return list
	}
	return append(list, d)
}

func positions(events []eventlog.Event) []Position {
	out := make([]Position, 0, len(events))
	for i := range events {
		out = append(out, Position{OneOf: []eventlog.Digest{events[i].Digest}, Note: events[i].Describe()})
	}
	return out
}

// merge takes another boot's events into the register.
func (r *Register) merge(events []eventlog.Event) error {
	if r.matches(events) {
		return nil
	}
	stars := slices.ContainsFunc(r.Events, func(p Position) bool { return p.Many })
	if len(events) != len(r.Events) || stars {
		if !mayIgnore(r.PCR) {
			return fmt.Errorf("boots differ in the number of events, %d and %d: learn a set for each", len(r.Events), len(events))
		}
		r.star(events)
		return nil
	}
	for i := range r.Events {
		p := &r.Events[i]
		switch {
		case p.takes(events[i].Digest):
		case mayIgnore(r.PCR):
			p.OneOf, p.Ignore = nil, true
		default:
			p.OneOf = with(p.OneOf, events[i].Digest)
		}
	}
	return nil
}

// star ignores what lies between the events that both begin with and those
// that both end with.
func (r *Register) star(events []eventlog.Event) {
	n := min(len(r.Events), len(events))
	head, tail := 0, 0
	for head < n && !r.Events[head].Many && r.Events[head].takes(events[head].Digest) {
		head++
	}
	for tail < n-head {
		p := &r.Events[len(r.Events)-1-tail]
		if p.Many || !p.takes(events[len(events)-1-tail].Digest) {
			break
		}
		tail++
	}
	kept := append(slices.Clone(r.Events[:head]), Position{Ignore: true, Many: true, Note: "differs between the boots learned from"})
	r.Events = append(kept, r.Events[len(r.Events)-tail:]...)
}

// Ignore has the event at a position of a register be any.
func Ignore(registers []Register, pcr, position int) error {
	i := slices.IndexFunc(registers, func(r Register) bool { return r.PCR == pcr })
	switch {
	case !mayIgnore(pcr):
		return fmt.Errorf("no event of PCR %d may be ignored: it holds code or keys; only in PCR 1, 3, 5 and 6", pcr)
	case i < 0 || position < 1 || position > len(registers[i].Events):
		return fmt.Errorf("PCR %d has no event %d", pcr, position)
	}
	p := &registers[i].Events[position-1]
	p.OneOf, p.Ignore = nil, true
	return nil
}
