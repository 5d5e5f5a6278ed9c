// Package checklist has the results of checks that the doctors of the agent and of the operator's command print.
package checklist

import (
	"fmt"
	"strings"
)

// Result is how a check ended.
type Result string

// Results. Warning is what the checked system can do without; Skipped is what could not be looked at because of another
// check, or may not be.
const (
	OK      Result = "ok"
	Warning Result = "warning"
	Failed  Result = "failed"
	Skipped Result = "skipped"
)

// Check is one thing that is needed.
type Check struct {
	Name   string `json:"check"`
	Result Result `json:"result"`
	Detail string `json:"detail"`         // what was found, of one line or more
	Hint   string `json:"hint,omitempty"` // what to do
}

// List is checks in the order in which they were made.
type List []Check

// Add adds a check whose detail is a format as of fmt. The hint can be empty.
func (l *List) Add(name string, r Result, hint, format string, args ...any) {
	*l = append(*l, Check{Name: name, Result: r, Detail: fmt.Sprintf(format, args...), Hint: hint})
}

// Failed returns the names of checks that failed, nil if there is none.
func (l List) Failed() []string {
	var names []string
	for _, c := range l {
		if c.Result == Failed {
			names = append(names, c.Name)
		}
	}
	return names
}

// Text returns a line for each line of a detail and for each hint. plain makes text of others safe for a terminal.
func (l List) Text(plain func(string) string) string {
	var b strings.Builder
	for _, c := range l {
		for i, line := range strings.Split(c.Detail, "\n") {
			if i == 0 {
				fmt.Fprintf(&b, "%-8s %s: %s\n", c.Result, c.Name, plain(line))
			} else {
				fmt.Fprintf(&b, "%-8s %s\n", "", plain(line))
			}
		}
		if c.Hint != "" {
			fmt.Fprintf(&b, "%-8s hint: %s\n", "", plain(c.Hint))
		}
	}
	return b.String()
}
