package mad

import (
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"sync"

	"portcullis/fabricsm/ib"
)

// Component is a field of a record by which a question may ask: bit n of the component
// mask stands for component n.
type Component struct {
	Name     string // as in the record's type; "GUID[3]" if every element has a bit of its own; empty if reserved
	Bit      int    // of the record, bit 0 being the top bit of byte 0
	Width    int    // in bits
	Reserved bool   // counted, but never compared
}

// Components returns the components of a record in the order of their bits, which is that of the record's fields, or nil
// for an attribute that has none. Padding after the last field is not a component. In InformInfo, which is no record, the
// mask means nothing.
func Components(a AttrID) []Component {
	p := planOf(a)
	if p == nil {
		return nil
	}
	return slices.Clone(p.components)
}

// Names lists the components of a mask by name, reserved ones and bits beyond the
// record's components by number.
func (m ComponentMask) Names(a AttrID) []string {
	var known []Component
	if p := planOf(a); p != nil {
		known = p.components
	}
	var out []string
	for rest := m; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(uint64(rest))
		switch {
		case i >= len(known):
			out = append(out, fmt.Sprintf("bit %d", i))
		case known[i].Reserved:
			out = append(out, fmt.Sprintf("reserved %d", i))
		default:
			out = append(out, known[i].Name)
		}
	}
	return out
}

// recordAttrs are the attributes with components.
var recordAttrs = [...]AttrID{
	AttrNodeRecord, AttrPortInfoRecord, AttrSLtoVLRecord, AttrSwitchInfoRecord, AttrLinearForwardingRecord,
	AttrRandomForwardingRecord, AttrMulticastForwardingRecord, AttrSMInfoRecord, AttrLinkRecord, AttrGUIDInfoRecord,
	AttrServiceRecord, AttrPKeyTableRecord, AttrPathRecord, AttrVLArbitrationRecord, AttrMCMemberRecord,
	AttrTraceRecord, AttrMultiPathRecord, AttrInformInfoRecord,
}

// recordPlans are the plans of all records by attribute, made once: like layouts, a
// memo of a pure function.
var recordPlans = sync.OnceValue(func() *[AttrInformInfoRecord + 1]*recordPlan {
	var plans [AttrInformInfoRecord + 1]*recordPlan
	for _, a := range recordAttrs {
		plans[a] = makePlan(a)
	}
	return &plans
})

// planOf returns the plan of a record, nil for an attribute without components.
func planOf(a AttrID) *recordPlan {
	if plans := recordPlans(); int(a) < len(plans) {
		return plans[a]
	}
	return nil
}

// componentsOf lists the components of a record by its layout's type.
func componentsOf(a AttrID) []Component {
	w := componentWalk{each: a == AttrGUIDInfoRecord || a == AttrServiceRecord}
	w.add(saLayout(a).typ, 0)
	slices.SortStableFunc(w.out, func(x, y Component) int { return x.Bit - y.Bit })
	return w.out
}

type componentWalk struct {
	each bool // elements of an array are components of their own, except text
	out  []Component
}

func (w *componentWalk) add(t reflect.Type, base int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous {
			at, _ := embeddedAt(sf) // the layout was compiled, so its tags are good
			w.add(sf.Type, base+at)
			continue
		}
		f, _ := parseTag(sf.Tag.Get("mad"))
		c := Component{Name: sf.Name, Bit: base + f.Bit, Width: f.Width, Reserved: sf.Type == reflect.TypeFor[reserved]()}
		if isArray(sf.Type) {
			f.Count = sf.Type.Len()
		}
		switch {
		case c.Reserved:
			c.Name = ""
			w.out = append(w.out, c)
		case w.each && f.Count > 1 && f.Format != FormatText:
			w.elements(c, f.Count)
		case sf.Type == reflect.TypeFor[ib.ServiceID]() && t == reflect.TypeFor[PathRecord]():
			w.halves(c)
		case t == reflect.TypeFor[PortInfo]() && strings.HasSuffix(sf.Name, "2") && strings.HasPrefix(sf.Name, "LinkSpeedExt"):
			w.later(c)
		default:
			c.Width *= f.Count
			w.out = append(w.out, c)
		}
	}
}

// elements makes a component of every element of an array.
func (w *componentWalk) elements(c Component, n int) {
	for i := range n {
		w.out = append(w.out, Component{Name: fmt.Sprintf("%s[%d]", c.Name, i), Bit: c.Bit + i*c.Width, Width: c.Width})
	}
}

// halves makes the two components that the standard has for the ServiceID of a path.
func (w *componentWalk) halves(c Component) {
	const high = 8
	w.out = append(w.out,
		Component{Name: c.Name + "8MSB", Bit: c.Bit, Width: high},
		Component{Name: c.Name + "56LSB", Bit: c.Bit + high, Width: c.Width - high})
}

// later takes a field that came to PortInfo in the place of reserved bits, when the
// components had been counted: it belongs to the reserved component before it.
func (w *componentWalk) later(c Component) {
	w.out[len(w.out)-1].Width += c.Width
}
