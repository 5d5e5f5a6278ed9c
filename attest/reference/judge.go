package reference

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"portcullis/attest/eventlog"
)

// Boot is what a host measured before the agent: the log, and the registers as
// a TPM quoted them, ascending, without the agent's.
type Boot struct {
	Log    *eventlog.Log
	Quoted []eventlog.Quoted
}

// Match is the set that a boot satisfies.
type Match struct {
	Set    string // its name
	Waiver bool
}

// Judge finds the set of a class that is valid now and that the boot satisfies. If there are several, it takes the newest,
// and a waiver only if there is no other. If there is none, it returns an error with the differences from the nearest set.
func Judge(sets []Set, class string, now time.Time, b *Boot) (Match, error) {
	if err := CheckSeparators(b.Log); err != nil {
		return waived(sets, class, now, err)
	}
	valid := validOf(sets, class, now, false)
	if len(valid) == 0 {
		return waived(sets, class, now, fmt.Errorf("no reference values of class %q are in force: learn a set from a trusted boot and have another person approve it", class))
	}
	var nearest []Difference
	name := ""
	for i := range valid {
		diff := valid[i].Compare(b)
		if len(diff) == 0 {
			return Match{Set: valid[i].Name()}, nil
		}
		if name == "" || len(diff) < len(nearest) {
			nearest, name = diff, valid[i].Name()
		}
	}
	return waived(sets, class, now, fmt.Errorf("the boot is not that of reference %s: %s", name, summary(nearest)))
}

// waived looks for a waiver of a fault.
func waived(sets []Set, class string, now time.Time, wrong error) (Match, error) {
	if w := validOf(sets, class, now, true); len(w) > 0 {
		return Match{Set: w[0].Name(), Waiver: true}, nil
	}
	return Match{}, wrong
}

// validOf returns the sets of a class that count, the newest first.
func validOf(sets []Set, class string, now time.Time, waivers bool) []Set {
	var out []Set
	for i := range sets {
		if s := &sets[i]; s.Class == class && s.Waiver == waivers && s.Valid(now) && s.Check() == nil {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b Set) int { return cmp.Compare(b.Version, a.Version) })
	return out
}

// CheckSeparators wants a separator in each register from 0 to 7, and all of
// them before firmware hands over to a boot loader, which is measured into PCR 4
// after its separator: so firmware came to the end of its part.
func CheckSeparators(l *eventlog.Log) error {
	var seen [firmwarePCRs]bool
	for i := range l.Events {
		e := &l.Events[i]
		switch {
		case e.PCR >= firmwarePCRs:
		case e.Digest == eventlog.Separator:
			seen[e.PCR] = true
		case e.PCR == 4 && seen[4]:
			return missing(seen, "before the boot loader is measured")
		}
	}
	return missing(seen, "")
}

func missing(seen [firmwarePCRs]bool, when string) error {
	if pcr := slices.Index(seen[:], false); pcr >= 0 {
		return errors.New(strings.TrimSpace(fmt.Sprintf("PCR %d has no separator %s", pcr, when)))
	}
	return nil
}

// Difference is one way in which a boot is not what a set says.
type Difference struct {
	PCR      int    `json:"pcr"`
	Position int    `json:"position" doc:"of the event in its register, from 1; 0: the register as a whole"`
	Got      string `json:"got" doc:"what the boot has there"`
	Want     string `json:"want" doc:"what the set has there"`
}

// String is one line.
func (d Difference) String() string {
	where := fmt.Sprintf("PCR %d", d.PCR)
	if d.Position > 0 {
		where += fmt.Sprintf(" event %d", d.Position)
	}
	return fmt.Sprintf("%s is %s, want %s", where, d.Got, d.Want)
}

// wholeDigest is a digest in a text.
var wholeDigest = regexp.MustCompile(`[0-9a-f]{64}`)

// summary names the registers that differ, and the first events that differ, with the beginnings of digests. A refusal
// keeps that much. Compare returns all.
func summary(all []Difference) string {
	const most = 3
	var registers, text []string
	last := -1
	for _, d := range all {
		if d.PCR == last {
			continue
		}
		last = d.PCR
		registers = append(registers, strconv.Itoa(d.PCR))
		if len(text) < most {
			text = append(text, wholeDigest.ReplaceAllStringFunc(d.String(), func(digest string) string { return digest[:12] }))
		}
	}
	return fmt.Sprintf("%d differences, in PCR %s: %s", len(all), strings.Join(registers, ", "), strings.Join(text, "; "))
}

// Compare returns every difference of a boot from the set. Registers that the set has and the boot does not quote, and the
// other way round, are differences.
func (s *Set) Compare(b *Boot) []Difference {
	var out []Difference
	for _, q := range b.Quoted {
		r := s.register(q.PCR)
		switch {
		case r == nil:
			out = append(out, Difference{PCR: q.PCR, Got: q.Value.String(), Want: "nothing: the set does not have it; learn one that does"})
		case len(r.Values) > 0:
			if !slices.Contains(r.Values, q.Value) {
				out = append(out, Difference{PCR: q.PCR, Got: q.Value.String(), Want: oneOf(r.Values)})
			}
		default:
			out = append(out, r.compare(b.Log, q)...)
		}
	}
	for i := range s.Registers {
		pcr := s.Registers[i].PCR
		if !slices.ContainsFunc(b.Quoted, func(q eventlog.Quoted) bool { return q.PCR == pcr }) {
			out = append(out, Difference{PCR: pcr, Got: "not quoted", Want: "a value"})
		}
	}
	return out
}

// compare holds the events of a register against the positions.
func (r *Register) compare(l *eventlog.Log, q eventlog.Quoted) []Difference {
	// For firmware's registers it is known that the log leads to the quoted value. Into others the running system may have
	// measured more.
	if err := l.Match([]eventlog.Quoted{q}); err != nil {
		return []Difference{{PCR: r.PCR, Got: q.Value.String(), Want: "the result of the log's events"}}
	}
	events := l.Of(r.PCR)
	if r.matches(events) {
		return nil
	}
	return r.explain(events)
}

// matches is a match of patterns in which Many is a star: greedy, with a way
// back to the last star alone, which is enough where a position matches one
// event.
func (r *Register) matches(events []eventlog.Event) bool {
	pos, ev := 0, 0
	star, from := -1, 0
	for ev < len(events) {
		switch {
		case pos < len(r.Events) && r.Events[pos].Many:
			star, from = pos, ev
			pos++
		case pos < len(r.Events) && r.Events[pos].takes(events[ev].Digest):
			pos++
			ev++
		case star >= 0:
			from++
			pos, ev = star+1, from
		default:
			return false
		}
	}
	for pos < len(r.Events) && r.Events[pos].Many {
		pos++
	}
	return pos == len(r.Events)
}

func (p *Position) takes(d eventlog.Digest) bool { return p.Ignore || slices.Contains(p.OneOf, d) }

// explain finds the changes that a person would make. It compares both lists until they differ, and reports each position
// from there on that has another digest.
func (r *Register) explain(events []eventlog.Event) (out []Difference) {
	for i := range max(len(events), len(r.Events)) {
		d := Difference{PCR: r.PCR, Position: i + 1, Got: "nothing", Want: "nothing"}
		if i < len(r.Events) {
			p := &r.Events[i]
			if p.Many {
				break
			}
			if i < len(events) && p.takes(events[i].Digest) {
				continue
			}
			d.Want = p.String()
		}
		if i < len(events) {
			d.Got = events[i].Digest.String() + note(events[i].Describe())
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		out = append(out, Difference{PCR: r.PCR, Got: fmt.Sprintf("%d events", len(events)), Want: "others after those that are ignored"})
	}
	return out
}

// String describes the digests that a position takes.
func (p *Position) String() string {
	switch {
	case p.Many:
		return "any number of events" + note(p.Note)
	case p.Ignore:
		return "any event" + note(p.Note)
	default:
		return oneOf(p.OneOf) + note(p.Note)
	}
}

func oneOf(all []eventlog.Digest) string {
	if len(all) == 1 {
		return all[0].String()
	}
	text := make([]string, len(all))
	for i, d := range all {
		text[i] = d.String()
	}
	return "one of " + strings.Join(text, ", ")
}

func note(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// CompareSet returns the differences of another set: where a boot that satisfies it may have something else.
func (s *Set) CompareSet(other *Set) (out []Difference) {
	for pcr := range eventlog.NumPCRs {
		was, now := s.register(pcr), other.register(pcr)
		switch {
		case was == nil && now == nil:
		case was == nil || now == nil || (len(was.Values) > 0) != (len(now.Values) > 0):
			out = append(out, Difference{PCR: pcr, Got: now.kind(), Want: was.kind()})
		case len(was.Values) > 0:
			if !slices.Equal(was.Values, now.Values) {
				out = append(out, Difference{PCR: pcr, Got: oneOf(now.Values), Want: oneOf(was.Values)})
			}
		default:
			out = append(out, comparePositions(pcr, was.Events, now.Events)...)
		}
	}
	return out
}

func (r *Register) kind() string {
	switch {
	case r == nil:
		return "nothing"
	case len(r.Values) > 0:
		return oneOf(r.Values)
	default:
		return fmt.Sprintf("%d events", len(r.Events))
	}
}

func comparePositions(pcr int, was, now []Position) (out []Difference) {
	at := func(list []Position, i int) string {
		if i >= len(list) {
			return "nothing"
		}
		return list[i].String()
	}
	for i := range max(len(was), len(now)) {
		if w, n := at(was, i), at(now, i); w != n {
			out = append(out, Difference{PCR: pcr, Position: i + 1, Got: n, Want: w})
		}
	}
	return out
}

// Covers reports that every boot which satisfies other satisfies s too. It may say no
// where that is so, never yes where it is not.
func (s *Set) Covers(other *Set) bool {
	if s.Class != other.Class || s.Waiver != other.Waiver || len(s.Registers) != len(other.Registers) {
		return false
	}
	for i := range s.Registers {
		if !s.Registers[i].covers(&other.Registers[i]) {
			return false
		}
	}
	return true
}

func (r *Register) covers(other *Register) bool {
	if r.PCR != other.PCR || len(r.Values) > 0 != (len(other.Values) > 0) || len(r.Events) != len(other.Events) {
		return false
	}
	for _, v := range other.Values {
		if !slices.Contains(r.Values, v) {
			return false
		}
	}
	for i := range r.Events {
		if !r.Events[i].covers(&other.Events[i]) {
			return false
		}
	}
	return true
}

// covers reports that whatever other takes at its position this one takes there.
func (p *Position) covers(other *Position) bool {
	switch {
	case other.Many:
		return p.Many
	case p.Ignore:
		return true
	case other.Ignore:
		return false
	}
	return !slices.ContainsFunc(other.OneOf, func(d eventlog.Digest) bool { return !slices.Contains(p.OneOf, d) })
}
