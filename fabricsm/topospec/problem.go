package topospec

import (
	"errors"
	"fmt"
	"strings"
)

// MaxProblems is how many problems of one input are reported together.
const MaxProblems = 50

// Problem is something wrong with a specification: where, what, why, and what
// to do about it.
type Problem struct {
	Source string // name of the input, may be empty
	Line   int    // from 1, 0: not of a line
	Object string // the device, port or field
	Cause  string
	Do     string // may be empty
}

func (p *Problem) Error() string {
	var b strings.Builder
	if p.Source != "" {
		b.WriteString(p.Source)
		b.WriteByte(':')
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:", p.Line)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if p.Object != "" {
		b.WriteString(p.Object)
		b.WriteString(": ")
	}
	b.WriteString(p.Cause)
	if p.Do != "" {
		b.WriteString("; ")
		b.WriteString(p.Do)
	}
	return b.String()
}

// Problems collects the problems of one input, up to MaxProblems. The zero value
// has none.
type Problems struct {
	Source string
	list   []error
}

// Add notes a problem.
func (p *Problems) Add(line int, object, cause, do string) {
	if len(p.list) < MaxProblems {
		p.list = append(p.list, &Problem{p.Source, line, object, cause, do})
	}
}

// Full reports whether no more problems are added.
func (p *Problems) Full() bool { return len(p.list) >= MaxProblems }

// Err returns the problems as one error, nil if there are none.
func (p *Problems) Err() error { return errors.Join(p.list...) }
