package policydb

// Kinds of symbols, in the order of a policy.
const (
	symCommons = iota
	symClasses
	symRoles
	symTypes
	symUsers
	symBooleans
	symLevels
	symCategories
	symKinds
)

// class is an object class: the bits of its permissions by name, and its constraints.
type class struct {
	value       uint32
	permissions map[string]uint32
	constraints []constraint
}

func (p *Policy) symbols(r *reader) {
	for kind := range symKinds {
		r.skip(1) // the highest value
		take := [symKinds]func(*reader){
			symCommons: p.common, symClasses: p.class, symRoles: role, symTypes: p.symbolType,
			symUsers: user, symBooleans: boolean, symLevels: sensitivity, symCategories: p.category,
		}[kind]
		r.each(func() { take(r) })
	}
}

// permissions takes n names of permissions and their bits.
func permissions(r *reader, n uint32) map[string]uint32 {
	bits := make(map[string]uint32)
	for ; n > 0 && r.err == nil; n-- {
		length, value := r.u32(), r.u32()
		name := r.text(length)
		if r.err == nil && (value < 1 || value > 32) {
			r.fail("permission %q has the number %d", name, value)
		}
		bits[name] = 1 << (value - 1)
	}
	return bits
}

func (p *Policy) common(r *reader) {
	length := r.u32()
	r.skip(2)
	n := r.u32()
	r.text(length)
	permissions(r, n)
}

func (p *Policy) class(r *reader) {
	length, common, value := r.u32(), r.u32(), r.u32()
	r.skip(1)
	n, constraints := r.u32(), r.u32()
	name := r.text(length)
	if common > 0 {
		r.text(common)
	}
	c := &class{value: value, permissions: permissions(r, n)}
	for ; constraints > 0 && r.err == nil; constraints-- {
		c.constraints = append(c.constraints, r.constraint())
	}
	r.each(func() { r.constraint() }) // of transitions
	r.skip(4)                         // how new objects get user, role, range and type
	p.classes[name] = c
}

func role(r *reader) {
	length := r.u32()
	r.skip(2)
	r.text(length)
	r.bitmap()
	r.bitmap()
}

// Properties of types.
const propAttribute = 2

func (p *Policy) symbolType(r *reader) {
	length, value, properties := r.u32(), r.u32(), r.u32()
	r.skip(1)
	name := r.text(length)
	if r.err != nil {
		return
	}
	if value == 0 || value > maxBit {
		r.fail("type %q has the number %d", name, value)
		return
	}
	t := symbol{name: name, value: value, attribute: properties&propAttribute != 0}
	const primary = 1
	if t.attribute || properties&primary != 0 {
		p.types[value] = t
	}
	p.byName[name] = value
}

func user(r *reader) {
	length := r.u32()
	r.skip(2)
	r.text(length)
	r.bitmap()
	if r.err == nil {
		r.levels()
		r.skipLevel()
	}
}

func boolean(r *reader) {
	r.skip(2)
	r.text(r.u32())
}

func sensitivity(r *reader) {
	length := r.u32()
	r.skip(1)
	r.text(length)
	r.skipLevel()
}

func (p *Policy) category(r *reader) {
	length, value := r.u32(), r.u32()
	alias := r.u32() != 0
	if name := r.text(length); !alias {
		p.categories[value] = name
	}
}
