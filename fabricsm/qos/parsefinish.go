package qos

import "strings"

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

// defaultName is the name of the level for paths that no rule matches.
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
