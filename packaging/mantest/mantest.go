// Package mantest compares what a program says when it is asked for help with its
// manual page: both name the same options, and the page every command.
package mantest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Compare runs a program, and every command below it, with --help, and compares the output with the manual page in a file.
// help returns the program's output.
func Compare(t *testing.T, file string, help func(args ...string) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	program, _, _ := strings.Cut(filepath.Base(file), ".")
	for _, problem := range differ(program, string(text), help) {
		t.Errorf("%s: %s", filepath.Base(file), problem)
	}
}

// differ lists what one says and the other does not.
func differ(program, text string, help func(args ...string) string) (problems []string) {
	said := said{options: map[string]bool{}}
	said.ask(program, nil, help)
	page := read(program, text)
	for _, command := range said.commands {
		if !page.names(command) {
			problems = append(problems, "does not name the command "+command)
		}
	}
	for option := range said.options {
		if !page.options[option] {
			problems = append(problems, "does not name the option --"+option)
		}
	}
	for option := range page.options {
		if !said.options[option] {
			problems = append(problems, "names the option --"+option+", which no --help has")
		}
	}
	slices.Sort(problems)
	return problems
}

// said is what a program says of itself.
type said struct {
	commands []string // without commands below them, such as "host show"
	options  map[string]bool
}

var (
	explained = regexp.MustCompile(`(?m)^ +(?:-[a-zA-Z], )?--([a-z][a-z0-9-]*)`)
	option    = regexp.MustCompile(`[\s\[(|]--([a-z][a-z0-9-]*)`)
	available = regexp.MustCompile(`(?ms)^Available Commands:\n(.*?)\n\n`)
	usage     = regexp.MustCompile(`(?ms)^Usage:\n(.*?)\n\n`)
	listed    = regexp.MustCompile(`(?m)^  ([a-z][a-z0-9-]*) `)
)

// ask takes in the help of a command and of all below it.
func (s *said) ask(program string, path []string, help func(args ...string) string) {
	text := help(append(slices.Clone(path), "--help")...)
	called := usage.FindString(text + "\n\n")
	for _, m := range slices.Concat(explained.FindAllStringSubmatch(text, -1), option.FindAllStringSubmatch(called, -1)) {
		s.options[m[1]] = true
	}
	delete(s.options, "help") // every program has it
	below := commandsIn(text, strings.Join(append([]string{program}, path...), " "))
	for _, name := range below {
		if name == "completion" {
			s.commands = append(s.commands, name) // what is below it is no text of ours
			continue
		}
		s.ask(program, append(slices.Clone(path), name), help)
	}
	if len(below) == 0 && len(path) > 0 {
		s.commands = append(s.commands, strings.Join(path, " "))
	}
}

// commandsIn finds commands in a help text: in a list of them, or in the lines
// that show how the program is called.
func commandsIn(text, called string) []string {
	text += "\n\n"
	found := []string{}
	for _, block := range available.FindAllStringSubmatch(text, -1) {
		for _, m := range listed.FindAllStringSubmatch(block[1]+" ", -1) {
			found = append(found, m[1])
		}
	}
	below := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(called) + ` ([a-z][a-z0-9-]*)\b`)
	for _, block := range usage.FindAllStringSubmatch(text, -1) {
		for _, m := range below.FindAllStringSubmatch(block[1], -1) {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(name string) bool { return name == "help" })
}

// page is what a manual page says.
type page struct {
	lines   []string // of macros, without the macros
	options map[string]bool
}

var (
	macro = regexp.MustCompile(`(^|\s)(\.?(?:It|Ic|Cm|Fl|Ar|Op|Oo|Oc|Nm|Ns|Ss|Pa|Ev|Li))\b`)
	dash  = regexp.MustCompile(`(?:^|\s)-([a-z][a-z0-9-]*)`)
	other = regexp.MustCompile(`\bNm ([a-z][a-z-]*)`)
)

// read reads the macro lines of a page, without the macros of lists and displays and without lines about other programs.
func read(program, text string) page {
	p := page{options: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := other.FindStringSubmatch(line); m != nil && m[1] != program {
			continue
		}
		if !strings.HasPrefix(line, ".") || strings.HasPrefix(line, ".B") {
			continue
		}
		for _, m := range dash.FindAllStringSubmatch(line, -1) {
			p.options[m[1]] = true
		}
		p.lines = append(p.lines, strings.Join(strings.Fields(macro.ReplaceAllString(line, " ")), " "))
	}
	return p
}

// names reports whether a page has a command with all words of its path.
func (p page) names(command string) bool {
	whole := regexp.MustCompile(`(^| )` + regexp.QuoteMeta(command) + `( |$)`)
	return slices.ContainsFunc(p.lines, whole.MatchString)
}
