package policydb

// Kinds of entries of the table of access vectors.
const (
	avAllowed  = 0x0001
	avExtended = 0x0700
)

// rule allows permissions of a class; types are numbers of types or attributes.
type rule struct {
	source, target, class uint16
	permissions           uint32
}

// rules takes a table of access vectors and keeps what allows anything of InfiniBand.
func (p *Policy) rules(r *reader) { r.each(func() { p.rule(r) }) }

func (p *Policy) rule(r *reader) {
	e := rule{source: r.u16(), target: r.u16(), class: r.u16()}
	kind := r.u16()
	if kind&avExtended != 0 {
		r.bytes(2)
		r.skip(8)
		return
	}
	e.permissions = r.u32()
	if kind&avAllowed == 0 {
		return
	}
	for _, name := range []string{ClassPKey, ClassEndPort} {
		if c := p.classes[name]; c != nil && uint32(e.class) == c.value {
			p.allowed = append(p.allowed, e)
		}
	}
}

// conditional takes rules that booleans switch; they count as if they were on.
func (p *Policy) conditional(r *reader) {
	r.each(func() {
		r.skip(1) // state
		r.each(func() { r.skip(2) })
		p.rules(r)
		p.rules(r)
	})
}

// transitions takes what new roles and objects become.
func transitions(r *reader) {
	r.each(func() { r.skip(4) }) // of roles
	r.each(func() { r.skip(2) }) // roles that may follow
	r.each(func() {              // by the name of a file
		r.text(r.u32())
		if r.version < versionFileTransitions {
			r.skip(4)
			return
		}
		r.skip(2)
		r.each(func() {
			r.bitmap()
			r.skip(1)
		})
	})
}

// genfs takes labels of file systems without labels of their own.
func genfs(r *reader) {
	r.each(func() {
		r.text(r.u32())
		r.each(func() {
			r.text(r.u32())
			r.skip(1)
			r.label()
		})
	})
}

// ranges takes transitions of ranges.
func ranges(r *reader) {
	if !r.mls {
		return
	}
	r.each(func() {
		r.skip(3)
		r.levels()
	})
}
