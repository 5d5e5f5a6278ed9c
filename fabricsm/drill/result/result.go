// Package result has the results of drills, and writes them for persons and for machines.
package result

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Result is what became of a drill.
type Result struct {
	ID     string `json:"id"`
	Threat string `json:"threat"`
	Passed bool   `json:"passed"`

	Without  []string `json:"without,omitempty"`
	Tried    []string `json:"tried,omitempty"`
	Stopped  []string `json:"stopped,omitempty"`
	Reported []string `json:"reported,omitempty"`
	Failures []string `json:"failures,omitempty"`
	Needs    string   `json:"needs,omitempty"` // why it was not played

	// Detected and Isolated are the longest times that passed from an attack to
	// its report and to its end, in virtual time; nil where there was nothing to
	// wait for.
	Detected *Seconds `json:"detected_s,omitempty"`
	Isolated *Seconds `json:"isolated_s,omitempty"`
	Victims  Felt     `json:"victims"`
}

// Seconds is a time that is written as a number of seconds.
type Seconds time.Duration

// MarshalJSON returns seconds with six digits behind the point.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.6f", time.Duration(s).Seconds()), nil
}

// Felt counts what became of the packets of all victims of a drill.
type Felt struct {
	Sent    uint64 `json:"sent"`
	Lost    uint64 `json:"lost"`
	Strayed uint64 `json:"strayed"` // reached another host
}

// Report is the results of several drills.
type Report struct {
	Seed    uint64   `json:"seed"`
	Without []string `json:"without,omitempty"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"`
	Needing int      `json:"cannot_be_played"`
	Drills  []Result `json:"drills"`
}

// Add adds a result.
func (r *Report) Add(one Result) {
	switch {
	case one.Passed:
		r.Passed++
	case one.Needs != "":
		r.Needing++
	default:
		r.Failed++
	}
	r.Drills = append(r.Drills, one)
}

// WriteJSON writes the report for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// WriteTable writes a line for each drill.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "THREAT\tRESULT\tDETECTED\tISOLATED\tVICTIMS LOST\tWHAT")
	for i := range r.Drills {
		d := &r.Drills[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.outcome(), d.Detected, d.Isolated, d.Victims, d.Threat)
		if why := d.why(); why != "" {
			fmt.Fprintf(t, "\t\t\t\t\t%s\n", why)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.sum())
	return err
}

// sum says how many drills had which outcome.
func (r *Report) sum() string {
	s := fmt.Sprintf("%d of %d drills passed, %d failed, %d cannot be played yet", r.Passed, len(r.Drills), r.Failed, r.Needing)
	if len(r.Without) > 0 {
		s += fmt.Sprintf("; without %v", r.Without)
	}
	return s
}

// WriteLong writes each drill in full.
func (r *Report) WriteLong(w io.Writer) error {
	var b strings.Builder
	for i := range r.Drills {
		r.Drills[i].tell(&b)
	}
	fmt.Fprintf(&b, "%s\n", r.sum())
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) tell(b *strings.Builder) {
	fmt.Fprintf(b, "%s %s: %s\n", r.ID, r.outcome(), r.Threat)
	for _, part := range []struct {
		name  string
		lines []string
	}{{"tried", r.Tried}, {"stopped by", r.Stopped}, {"reported", r.Reported}, {"failed", r.Failures}} {
		for i, line := range part.lines {
			name := part.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(b, "  %-11s %s\n", name, line)
		}
	}
	switch {
	case r.Needs != "":
		fmt.Fprintf(b, "  %-11s %s\n", "needs", r.Needs)
	default:
		fmt.Fprintf(b, "  %-11s detected after %s, isolated after %s; victims lost %s packets\n", "times", r.Detected, r.Isolated, r.Victims)
	}
	b.WriteByte('\n')
}

func (r *Result) outcome() string {
	switch {
	case r.Passed:
		return "passed"
	case r.Needs != "":
		return "not played"
	default:
		return "FAILED"
	}
}

// why says in one line why a drill did not pass.
func (r *Result) why() string {
	switch {
	case r.Needs != "":
		return "needs " + r.Needs
	case len(r.Failures) == 0:
		return ""
	case len(r.Failures) == 1:
		return r.Failures[0]
	default:
		return fmt.Sprintf("%s (and %d more)", r.Failures[0], len(r.Failures)-1)
	}
}

// String returns a time that is easy to read, or - for none.
func (s *Seconds) String() string {
	if s == nil {
		return "-"
	}
	d := time.Duration(*s)
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}

// String returns "0 of 120".
func (f Felt) String() string {
	if f.Sent == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", f.Lost+f.Strayed, f.Sent)
}

// Names returns controls as strings, as results name them.
func Names[C ~string](controls []C) (out []string) {
	for _, c := range controls {
		out = append(out, string(c))
	}
	return out
}
