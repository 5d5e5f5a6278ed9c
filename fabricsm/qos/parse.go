package qos

import (
	"errors"
	"fmt"
	"strings"
)

// MaxPolicySize is the size of the largest policy file that ParsePolicy reads,
// in bytes.
const MaxPolicySize = 1 << 20

// ErrTooLarge means that a file is larger than MaxPolicySize.
var ErrTooLarge = errors.New("too large")

// maxProblems bounds the problems reported for one file.
const maxProblems = 50

// ParsePolicy reads a file in the grammar of OpenSM's qos-policy.conf: one
// section word, or one key, colon and value, a line. All problems, at most 50,
// are reported together, each with its place as name:line; then there is no
// policy. The section qos-setup is read over, as OpenSM does: tables are set
// with options.
func ParsePolicy(name string, data []byte) (*Policy, error) {
	if len(data) > MaxPolicySize {
		return nil, fmt.Errorf("QoS policy %s: %w: %d bytes, the most is %d", name, ErrTooLarge, len(data), MaxPolicySize)
	}
	p := parser{file: name, byName: make(map[string]int), groupNo: make(map[string]int), defaultNo: -1}
	for text := range strings.Lines(string(data)) {
		p.line++
		text, _, _ = strings.Cut(text, "#")
		if text = strings.TrimSpace(text); text != "" {
			p.read(text)
		}
	}
	if len(p.open) > 0 {
		p.wrong("the file ends inside %s: want %s", p.open[len(p.open)-1], "end-"+p.open[len(p.open)-1])
	}
	policy := p.finish()
	if len(p.problems) > 0 {
		return nil, errors.Join(p.problems...)
	}
	return policy, nil
}

type parser struct {
	file     string
	line     int
	problems []error
	policy   Policy
	open     []string // sections that were begun

	byName    map[string]int // levels, in lower case
	groupNo   map[string]int
	defaultNo int    // number of the default level, -1 before it is seen
	simple    *Level // the default of qos-ulps
	pending   []pendingRule

	level level
	group group
	keys  []Range // of the group
	rule  pendingRule
}

// level is a level that is being read.
type level struct {
	Level
	line int
}

// pendingRule is a rule whose names are not looked up yet.
type pendingRule struct {
	rule
	line         int
	source, dest []string
	levelName    string
	levelNo      int // if there is no name
	hasLevel     bool
}

func (p *parser) wrong(format string, args ...any) { p.wrongAt(p.line, format, args...) }

func (p *parser) wrongAt(line int, format string, args ...any) {
	switch n := len(p.problems); {
	case n == maxProblems:
		p.problems = append(p.problems, fmt.Errorf("%s:%d: there are more problems in this file", p.file, line))
	case n < maxProblems:
		p.problems = append(p.problems, fmt.Errorf("%s:%d: %w", p.file, line, fmt.Errorf(format, args...)))
	}
}

// sections has the sections that may be in a section, "" for the file.
var sections = map[string][]string{
	"":                {"port-groups", "qos-setup", "qos-levels", "qos-match-rules", "qos-ulps"},
	"port-groups":     {"port-group"},
	"qos-setup":       {"vlarb-tables", "sl2vl-tables"},
	"vlarb-tables":    {"vlarb-scope"},
	"sl2vl-tables":    {"sl2vl-scope"},
	"qos-levels":      {"qos-level"},
	"qos-match-rules": {"qos-match-rule"},
}

// read takes one line.
func (p *parser) read(text string) {
	in := ""
	if len(p.open) > 0 {
		in = p.open[len(p.open)-1]
	}
	for _, s := range sections[in] {
		if text == s {
			p.begin(s)
			return
		}
	}
	if in != "" && text == "end-"+in {
		p.open = p.open[:len(p.open)-1]
		p.end(in)
		return
	}
	switch in {
	case "port-group":
		p.keyed(text, p.groupKey)
	case "qos-level":
		p.keyed(text, p.levelKey)
	case "qos-match-rule":
		p.keyed(text, p.ruleKey)
	case "qos-ulps":
		p.ulp(text)
	case "vlarb-scope", "sl2vl-scope":
	case "":
		p.wrong("%q: want one of the sections %s", short(text), strings.Join(sections[""], ", "))
	default:
		p.wrong("%q: in %s, want %s or end-%s", short(text), in, sections[in][0], in)
	}
}

func (p *parser) begin(s string) {
	p.open = append(p.open, s)
	switch s {
	case "port-group":
		p.group, p.keys = group{names: make(map[string]bool)}, nil
	case "qos-level":
		p.level = level{line: p.line}
	case "qos-match-rule":
		p.rule = pendingRule{line: p.line, levelNo: -1}
	case "qos-setup":
		p.policy.Notices = append(p.policy.Notices, fmt.Sprintf("%s:%d: qos-setup is ignored: tables are set with options", p.file, p.line))
	}
}

// keyed splits "key: value".
func (p *parser) keyed(text string, take func(key, value string) bool) {
	key, value, ok := strings.Cut(text, ":")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case !ok || value == "" && key != "use":
		p.wrong("%q: want a key, a colon and a value", short(text))
	case key == "use":
	case !take(key, value):
		p.wrong("key %q is not known in %s", short(key), p.open[len(p.open)-1])
	}
}
