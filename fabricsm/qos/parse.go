package qos

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// MaxPolicySize is the size of the largest policy file that ParsePolicy reads,
// in bytes.
const MaxPolicySize = 1 << 20

// ErrTooLarge means that a file is larger than MaxPolicySize.
var ErrTooLarge = errors.New("too large")

// maxProblems bounds what is said about one file.
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

// sections gives the sections that may be in a section, "" for the file.
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

func (p *parser) groupKey(key, value string) bool {
	switch key {
	case "name":
		p.group.name = value
	case "port-guid":
		p.group.guids = normal(append(p.group.guids, p.ranges(value, 64)...))
	case "port-name":
		for _, name := range items(value) {
			p.group.names[name] = true
		}
	case "pkey":
		p.keys = append(p.keys, p.pkeys(value)...)
	case "partition":
		p.group.parts = append(p.group.parts, items(value)...)
	case "node-type":
		for _, t := range items(value) {
			p.nodeType(t)
		}
	default:
		return false
	}
	return true
}

func (p *parser) nodeType(name string) {
	switch strings.ToUpper(name) {
	case "CA":
		p.group.types |= 1 << ib.NodeCA
	case "SWITCH":
		p.group.types |= 1 << ib.NodeSwitch
	case "ROUTER":
		p.group.types |= 1 << ib.NodeRouter
	case "SELF":
		p.group.self = true
	case "ALL":
		p.group.all = true
	default:
		p.wrong("node type %q: want CA, SWITCH, ROUTER, SELF or ALL", short(name))
	}
}

func (p *parser) levelKey(key, value string) bool {
	l := &p.level
	switch key {
	case "name":
		l.Name = value
	case "sl":
		l.SL, l.HasSL = ib.SL(p.number(key, value, 0, 15)), true
	case "mtu-limit":
		l.MTULimit = ib.MTU(p.number(key, value, uint64(ib.MTU256), uint64(ib.MTU4096)))
	case "rate-limit":
		l.RateLimit = ib.Rate(p.number(key, value, uint64(ib.Rate2_5), uint64(ib.Rate2400)))
	case "packet-life":
		l.PacketLife, l.HasLife = uint8(p.number(key, value, 0, 63)), true
	case "pkey":
		l.PKeys = normal(append(l.PKeys, p.pkeys(value)...))
	case "path-bits":
		p.policy.Notices = append(p.policy.Notices, fmt.Sprintf("%s:%d: path-bits is ignored", p.file, p.line))
	default:
		return false
	}
	return true
}

func (p *parser) ruleKey(key, value string) bool {
	r := &p.rule
	switch key {
	case "source":
		r.source = append(r.source, items(value)...)
	case "destination":
		r.dest = append(r.dest, items(value)...)
	case "qos-class":
		r.classes = normal(append(r.classes, p.ranges(value, 12)...))
	case "service-id":
		r.services = normal(append(r.services, p.ranges(value, 64)...))
	case "pkey":
		r.rule.pkeys = normal(append(r.rule.pkeys, p.pkeys(value)...))
	case "qos-level-name":
		r.levelName, r.hasLevel = value, true
	default:
		return false
	}
	return true
}

// end closes a section.
func (p *parser) end(s string) {
	switch s {
	case "port-group":
		p.addGroup(p.group, p.keys)
	case "qos-level":
		p.addLevel()
	case "qos-match-rule":
		if !p.rule.hasLevel {
			p.wrong("the rule has no qos-level-name")
			return
		}
		p.pending = append(p.pending, p.rule)
	}
}

func (p *parser) addGroup(g group, keys []Range) int {
	no := len(p.policy.groups)
	if _, twice := p.groupNo[g.name]; g.name == "" || twice {
		p.wrong("port group %q: want a name that no other has", short(g.name))
		return 0
	}
	p.groupNo[g.name] = no
	p.policy.groups = append(p.policy.groups, g)
	for _, k := range normal(keys) {
		p.policy.keys = append(p.policy.keys, keyUser{k, no})
	}
	return no
}

// defaultName is the name of the level of what no rule matches.
const defaultName = "default"

func (p *parser) addLevel() {
	name := strings.ToLower(p.level.Name)
	if _, twice := p.byName[name]; name == "" || twice {
		p.wrong("level %q: want a name that no other has", short(p.level.Name))
		return
	}
	p.byName[name] = len(p.policy.levels)
	if name == defaultName {
		p.defaultNo = len(p.policy.levels)
	}
	p.policy.levels = append(p.policy.levels, p.level.Level)
}

// finish looks names up and puts the default level first.
func (p *parser) finish() *Policy {
	if p.defaultNo < 0 && p.simple != nil {
		p.defaultNo = len(p.policy.levels)
		p.policy.levels = append(p.policy.levels, *p.simple)
	}
	if p.defaultNo < 0 {
		p.wrong("no level is named %s, and qos-ulps has no default: what no rule matches would have none", strings.ToUpper(defaultName))
		return nil
	}
	for _, r := range p.pending {
		p.addRule(r)
	}
	levels := p.policy.levels
	levels[0], levels[p.defaultNo] = levels[p.defaultNo], levels[0]
	for i := range p.policy.rules {
		switch r := &p.policy.rules[i]; r.level {
		case 0:
			r.level = p.defaultNo
		case p.defaultNo:
			r.level = 0
		}
	}
	return &p.policy
}

func (p *parser) addRule(r pendingRule) {
	r.rule.level = r.levelNo
	if r.hasLevel {
		no, ok := p.byName[strings.ToLower(r.levelName)]
		if !ok {
			p.wrongAt(r.line, "the rule wants level %q, which the file does not define", short(r.levelName))
			return
		}
		r.rule.level = no
	}
	r.rule.from = append(r.rule.from, p.groupsNamed(r.line, r.source)...)
	r.rule.to = append(r.rule.to, p.groupsNamed(r.line, r.dest)...)
	p.policy.rules = append(p.policy.rules, r.rule)
}

func (p *parser) groupsNamed(line int, names []string) (numbers []int) {
	for _, name := range names {
		no, ok := p.groupNo[name]
		if !ok {
			p.wrongAt(line, "the rule wants port group %q, which the file does not define", short(name))
			continue
		}
		numbers = append(numbers, no)
	}
	return numbers
}

// items splits a list at commas.
func items(value string) (all []string) {
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}

// number reads one number.
func (p *parser) number(key, value string, least, most uint64) uint64 {
	n, err := strconv.ParseUint(value, 0, 64)
	if err != nil || n < least || n > most {
		p.wrong("%s %q: want a number %d to %d", key, short(value), least, most)
		return least
	}
	return n
}

// ranges reads a list of numbers and ranges, "7-9,11".
func (p *parser) ranges(value string, bits int) (all []Range) {
	for _, item := range items(value) {
		from, to, ok := strings.Cut(item, "-")
		if !ok {
			to = from
		}
		a, err := strconv.ParseUint(strings.TrimSpace(from), 0, bits)
		b, err2 := strconv.ParseUint(strings.TrimSpace(to), 0, bits)
		if err != nil || err2 != nil || a > b {
			p.wrong("%q: want a number of at most %d bits, or two with a minus, the lower first", short(item), bits)
			continue
		}
		all = append(all, Range{a, b})
	}
	if len(all) == 0 {
		p.wrong("%q: want at least one number", short(value))
	}
	return all
}

// pkeys reads ranges of P_Keys; the membership bit does not matter.
func (p *parser) pkeys(value string) []Range {
	all := p.ranges(value, 16)
	for i, r := range all {
		a, b := r.From&0x7FFF, r.To&0x7FFF
		if a > b {
			p.wrong("%q: without membership bits the range ends before it begins", short(value))
		}
		all[i] = Range{a, b}
	}
	return all
}
