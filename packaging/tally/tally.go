package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of `go test -json`, as `go doc test2json` explains it.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Elapsed    float64
	Output     string
}

// name is what ran: a package, or a test in it.
type name struct{ pkg, test string }

// tally counts tests and remembers what failed.
type tally struct {
	w       io.Writer
	count   map[string]int    // tests, by how they ended
	output  map[name][]string // of what has not ended yet
	skipped []string
	err     error // of writing
}

func newTally(w io.Writer) *tally {
	return &tally{w: w, count: map[string]int{}, output: map[name][]string{}}
}

// read takes in everything that go test says.
func (t *tally) read(r io.Reader) error {
	for dec := json.NewDecoder(r); ; {
		var e event
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			return t.err
		}
		if err != nil {
			return err
		}
		t.take(&e)
	}
}

func (t *tally) take(e *event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "output":
		t.output[n] = append(t.output[n], e.Output)
	case "build-output":
		t.print(e.Output)
	case "pass", "fail", "skip":
		if e.Test != "" {
			t.endTest(e, n)
		} else {
			t.endPackage(e, n)
		}
		delete(t.output, n)
	}
}

func (t *tally) endTest(e *event, n name) {
	t.count[e.Action]++
	switch e.Action {
	case "fail":
		t.print(fmt.Sprintf("FAIL %s %s\n", n.pkg, n.test))
		t.print(t.output[n]...)
	case "skip":
		reason := slices.DeleteFunc(slices.Clone(t.output[n]), func(line string) bool {
			return strings.HasPrefix(strings.TrimSpace(line), "--- SKIP") || strings.HasPrefix(line, "===")
		})
		t.skipped = append(t.skipped, fmt.Sprintf("%s %s: %s", n.pkg, n.test, strings.TrimSpace(strings.Join(reason, ""))))
	}
}

// endPackage prints the line of a package, and everything it said outside of
// tests when it failed.
func (t *tally) endPackage(e *event, n name) {
	if e.Action == "fail" {
		t.print(t.output[n]...)
	}
	if e.Action != "skip" { // a package without tests
		t.print(fmt.Sprintf("%-4s %s %.1fs\n", map[string]string{"pass": "ok", "fail": "FAIL"}[e.Action], n.pkg, e.Elapsed))
	}
}

// sum prints how many tests there were, and what was skipped.
func (t *tally) sum(required bool) {
	for _, s := range t.skipped {
		t.print("skipped " + s + "\n")
	}
	t.print(fmt.Sprintf("%d tests passed, %d failed, %d skipped\n", t.count["pass"], t.count["fail"], t.count["skip"]))
	if required && t.count["skip"] > 0 {
		t.print("FAIL: every real part is required here, so nothing may be skipped\n")
	}
}

func (t *tally) print(lines ...string) {
	for _, line := range lines {
		if _, err := io.WriteString(t.w, line); err != nil && t.err == nil {
			t.err = err
		}
	}
}
