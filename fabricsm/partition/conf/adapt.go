package conf

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Refusal is a rule of a file that cannot be applied as written.
type Refusal struct {
	Line int
	Text string // of the rule, cut if it is long
	To   string // what stands in its place; empty: nothing does
	Why  string
	// Loses says that ports that could send each other data under the rule no longer can.
	Loses bool

	nth int // of the member among those of the file; -1: the flag indx0 of a definition
}

func (e *entry) refusal(to string, loses bool) Refusal {
	return Refusal{Line: e.line, Text: e.text, To: to, Loses: loses, nth: e.nth}
}

// limitedInstead returns a member of the default partition as a limited one.
func limitedInstead(e *entry) string {
	word, _, _ := strings.Cut(e.text, "=")
	return strings.TrimSpace(word) + "=limited"
}

// endPortsInstead returns what stands for all ports of a partition other than the default one.
func endPortsInstead(e *entry) string {
	if e.as != full {
		return ""
	}
	return "ALL_CAS=full, ALL_ROUTERS=full"
}

// Adapt makes a file that Parse accepts of one that another Subnet Manager applies. Rules that Parse would reject are left
// out or replaced, and returned in the order of the file. No port becomes a member, or a full one, that was none. Comments
// and the order of lines stay. Mistakes of the grammar are errors as in Parse: what they mean is not known.
func Adapt(name string, data []byte) ([]byte, []Refusal, error) {
	if len(data) > MaxSize {
		return nil, nil, fmt.Errorf("partition file %s: %w: %d bytes, the most is %d", name, ErrTooLarge, len(data), MaxSize)
	}
	p := parser{file: name, seen: make(map[identity]Multicast), adapting: true}
	for text := range strings.Lines(string(data)) {
		p.line++
		text, _, _ = strings.Cut(text, "#")
		p.readLine(text)
	}
	p.rules()
	if len(p.problems) > 0 {
		return nil, nil, errors.Join(p.problems...)
	}
	w := writer{at: make(map[int]*Refusal), flags: make(map[int]bool)}
	for i := range p.refused {
		if r := &p.refused[i]; r.nth < 0 {
			w.flags[r.Line] = true
		} else {
			w.at[r.nth] = r
		}
	}
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		text, comment, commented := strings.Cut(strings.TrimRight(text, "\r\n"), "#")
		w.line(line, text)
		if commented {
			w.out.WriteString("#" + comment)
		}
		w.out.WriteByte('\n')
	}
	slices.SortStableFunc(p.refused, func(a, b Refusal) int { return a.Line - b.Line })
	return w.out.Bytes(), p.refused, nil
}

// writer writes a file again, without the rules that are refused. It reads lines as parser does.
type writer struct {
	out    bytes.Buffer
	at     map[int]*Refusal // by number of the member
	flags  map[int]bool     // lines of definitions whose flag indx0 is refused
	inside bool
	nth    int
}

func (w *writer) line(number int, text string) {
	for {
		if !w.inside {
			header, rest, ok := strings.Cut(text, ":")
			if !ok {
				w.out.WriteString(text)
				return
			}
			w.header(number, header)
			w.out.WriteByte(':')
			w.inside, text = true, rest
			continue
		}
		part, rest, end := strings.Cut(text, ";")
		w.properties(part)
		if !end {
			return
		}
		w.out.WriteByte(';')
		w.inside, text = false, rest
	}
}

func (w *writer) header(number int, text string) {
	if !w.flags[number] {
		w.out.WriteString(text)
		return
	}
	flags := strings.Split(text, ",")
	flags = slices.DeleteFunc(flags, func(f string) bool { return strings.TrimSpace(f) == "indx0" })
	w.out.WriteString(strings.Join(flags, ","))
}

func (w *writer) properties(text string) {
	if word, _, ok := strings.Cut(text, "="); ok && strings.TrimSpace(word) == "mgid" {
		w.out.WriteString(text)
		return
	}
	items := strings.Split(text, ",")
	kept := items[:0]
	for _, item := range items {
		if strings.TrimSpace(item) == "" {
			kept = append(kept, item)
			continue
		}
		switch r := w.at[w.nth]; {
		case r == nil:
			kept = append(kept, item)
		case r.To != "":
			kept = append(kept, " "+r.To)
		}
		w.nth++
	}
	w.out.WriteString(strings.Join(kept, ","))
}
