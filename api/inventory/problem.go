package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds how many problems are reported: more are of no help.
const maxProblems = 100

// Problem is one fault of an input with its place.
type Problem struct {
	File string
	Line int // 0: the file as a whole
	Text string
}

// String returns "file:line: text".
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Problems is every fault found, in the order of files and lines. It is the
// error of Parse and NewPlan.
type Problems []Problem

// Error lists the problems, one a line.
func (ps Problems) Error() string { return strings.Join(ps.Lines(), "\n") }

// Lines returns each problem as "file:line: text"; after the first hundred it says how many more there are.
func (ps Problems) Lines() []string {
	var out []string
	for i, p := range ps {
		if i == maxProblems {
			return append(out, fmt.Sprintf("and %d more problems", len(ps)-i))
		}
		out = append(out, p.String())
	}
	return out
}

// spot is a place in a file.
type spot struct {
	file int // index into the files given
	name string
	line int
}

func (s spot) String() string {
	if s.line == 0 {
		return s.name
	}
	return fmt.Sprintf("%s:%d", s.name, s.line)
}

// report collects problems.
type report struct{ list []located }

type located struct {
	at   spot
	text string
}

func (r *report) add(at spot, format string, args ...any) {
	r.list = append(r.list, located{at, fmt.Sprintf(format, args...)})
}

// err returns the problems sorted by place, nil if there are none.
func (r *report) err() error {
	if len(r.list) == 0 {
		return nil
	}
	slices.SortStableFunc(r.list, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.at.file, b.at.file), cmp.Compare(a.at.line, b.at.line))
	})
	out := make(Problems, 0, len(r.list))
	for _, l := range r.list {
		out = append(out, Problem{File: l.at.name, Line: l.at.line, Text: l.text})
	}
	return out
}
