package policydb

import (
	"errors"
	"fmt"
	"slices"
)

// Classes of objects that InfiniBand has, and their only permissions.
const (
	ClassPKey    = "infiniband_pkey"
	ClassEndPort = "infiniband_endport"
	Access       = "access"        // of ClassPKey
	ManageSubnet = "manage_subnet" // of ClassEndPort
)

// MaxSize bounds a policy in bytes; that of a distribution has 2 to 9 MiB.
const MaxSize = 64 << 20

// The first bytes of a policy.
const (
	magic         = 0xf97cff8c
	name          = "SE Linux"
	configMLS     = 1
	symbolTables  = symKinds
	labelledKinds = 9
)

// Policy is what a compiled policy says of InfiniBand.
type Policy struct {
	Version  uint32
	PKeys    []PKeyLabel
	EndPorts []EndPortLabel

	types      map[uint32]symbol // with attributes, by number
	byName     map[string]uint32 // with aliases
	categories map[uint32]string
	classes    map[string]*class
	allowed    []rule
	attributes map[uint32]set // of each type, and itself: numbers less one
	permissive set            // numbers of types
}

// symbol is a type or an attribute.
type symbol struct {
	name      string
	value     uint32
	attribute bool
}

// Read reads a policy, such as /sys/fs/selinux/policy or the output of a compiler.
func Read(data []byte) (*Policy, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("a policy of %d bytes, at most %d are read", len(data), MaxSize)
	}
	p := &Policy{
		types: map[uint32]symbol{}, byName: map[string]uint32{}, categories: map[uint32]string{},
		classes: map[string]*class{}, attributes: map[uint32]set{},
	}
	r := &reader{data: data}
	p.header(r)
	if r.err != nil {
		return nil, r.err
	}
	r.bitmap() // capabilities
	p.permissive = r.bitmap()
	p.symbols(r)
	p.rules(r)
	p.conditional(r)
	transitions(r)
	p.labels(r)
	genfs(r)
	ranges(r)
	p.attributeMap(r)
	if r.err == nil && r.at != len(data) {
		r.fail("%d bytes follow the policy", len(data)-r.at)
	}
	if r.err != nil {
		return nil, fmt.Errorf("policy of version %d: %w", p.Version, r.err)
	}
	return p, nil
}

func (p *Policy) header(r *reader) {
	if first := r.u32(); r.err == nil && (first != magic || r.text(r.u32()) != name) {
		r.err = errors.New("not a Linux policy: its first bytes are wrong")
	}
	p.Version = r.u32()
	r.version = p.Version
	config := r.u32()
	r.mls = config&configMLS != 0
	symbols, labels := r.u32(), r.u32()
	switch {
	case r.err != nil:
	case p.Version < versionLabels || p.Version > versionNewest:
		r.fail("a policy of version %d; versions %d to %d are read", p.Version, versionLabels, versionNewest)
	case symbols != symbolTables || labels != labelledKinds:
		r.fail("%d tables of symbols and %d of labels, want %d and %d", symbols, labels, symbolTables, labelledKinds)
	}
}

// attributeMap takes the attributes of each type, in the order of their numbers.
func (p *Policy) attributeMap(r *reader) {
	var last uint32
	for n := range p.types {
		last = max(last, n)
	}
	for n := uint32(1); n <= last && r.err == nil; n++ {
		s := r.bitmap()
		if t, ok := p.types[n]; ok && !t.attribute {
			p.attributes[n] = s
		}
	}
}

// HasType reports whether the policy has a type, by its name or an alias.
func (p *Policy) HasType(name string) bool { return p.byName[name] != 0 }

// Types returns the names of all types, in order.
func (p *Policy) Types() []string {
	var found []string
	for _, t := range p.types {
		if !t.attribute {
			found = append(found, t.name)
		}
	}
	slices.Sort(found)
	return found
}

// Allowed returns the types that may do something to a type, in order. Rules that a
// boolean switches count as if they were on. It returns nothing where the policy does
// not have the class or the target.
func (p *Policy) Allowed(class, permission, target string) []string {
	c, object := p.classes[class], p.byName[target]
	if c == nil || object == 0 {
		return nil
	}
	bit := c.permissions[permission]
	sources := map[uint32]bool{} // types and attributes
	for _, rule := range p.allowed {
		if uint32(rule.class) == c.value && rule.permissions&bit != 0 && p.is(object, uint32(rule.target)) {
			sources[uint32(rule.source)] = true
		}
	}
	var found []string
	for n, t := range p.types {
		if t.attribute {
			continue
		}
		for source := range sources {
			if p.is(n, source) {
				found = append(found, t.name)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// is reports whether a type is another, or has it as an attribute.
func (p *Policy) is(n, other uint32) bool { return n == other || p.attributes[n].has(other-1) }

// Permissive reports whether nothing is denied to a domain.
func (p *Policy) Permissive(domain string) bool { return p.permissive.has(p.byName[domain]) }

// Constrained reports whether constraints keep a process from something that rules
// allow: process and object have the lowest sensitivity and the categories given.
func (p *Policy) Constrained(class, permission, domain, object string, process, label []string) (bool, error) {
	c := p.classes[class]
	if c == nil {
		return false, fmt.Errorf("the policy has no class %s", class)
	}
	a, err := p.levelOf(process)
	if err != nil {
		return false, err
	}
	b, err := p.levelOf(label)
	if err != nil {
		return false, err
	}
	for _, k := range c.constraints {
		if k.permissions&c.permissions[permission] == 0 {
			continue
		}
		switch ok, err := k.holds(p.byName[domain], p.byName[object], a, b); {
		case err != nil:
			return false, err
		case !ok:
			return true, nil
		}
	}
	return false, nil
}

func (p *Policy) levelOf(categories []string) (level, error) {
	l := level{sensitivity: 1}
	for _, name := range categories {
		found := false
		for n, c := range p.categories {
			if c == name {
				l.categories, found = append(l.categories, n-1), true
			}
		}
		if !found {
			return level{}, fmt.Errorf("the policy has no category %s", name)
		}
	}
	return l, nil
}
