package trust

import (
	"encoding/binary"

	"portcullis/fabricsm/mad"
)

// row of the table of allowed untrusted requests under the enhanced trust model.
type row struct {
	attr   mad.AttrID
	method mad.Method
	// ends: the mask must have one component of each.
	ends [2]mad.ComponentMask
	// and is a further condition.
	and func(*Options, *mad.MAD) Verdict
}

// Components of a PathRecord that name its ends.
const (
	pathTo   mad.ComponentMask = 1<<2 | 1<<4 // DGID, DLID
	pathFrom mad.ComponentMask = 1<<3 | 1<<5 // SGID, SLID
)

// allowed is the table: NVIDIA's, as UFM documents it.
var allowed = [...]row{
	{attr: mad.AttrPathRecord, method: mad.MethodGet},
	{attr: mad.AttrPathRecord, method: mad.MethodGetTable, ends: [2]mad.ComponentMask{pathFrom, pathTo}},
	{attr: mad.AttrMCMemberRecord, method: mad.MethodGet},
	{attr: mad.AttrMCMemberRecord, method: mad.MethodSet},
	{attr: mad.AttrMCMemberRecord, method: mad.MethodDelete},
	{attr: mad.AttrServiceRecord, method: mad.MethodGet},
	{attr: mad.AttrServiceRecord, method: mad.MethodSet},
	{attr: mad.AttrServiceRecord, method: mad.MethodDelete},
	{attr: mad.AttrClassPortInfo, method: mad.MethodGet},
	{attr: mad.AttrInformInfo, method: mad.MethodSet, and: noSecurityTraps},
	{attr: mad.AttrGUIDInfoRecord, method: mad.MethodSet, and: aliasesUntrusted},
	{attr: mad.AttrGUIDInfoRecord, method: mad.MethodDelete, and: aliasesUntrusted},
}

// untrusted judges an untrusted request under the enhanced trust model.
func (o *Options) untrusted(m *mad.MAD) Verdict {
	attr, method := m.Attr(), m.Method()
	for i := range allowed {
		r := &allowed[i]
		if r.attr != attr || r.method != method {
			continue
		}
		mask := m.ComponentMask()
		for _, end := range r.ends {
			if end != 0 && mask&end == 0 {
				return NotAllowed
			}
		}
		if r.and != nil {
			return r.and(o, m)
		}
		return OK
	}
	return NotAllowed
}

func aliasesUntrusted(o *Options, _ *mad.MAD) Verdict {
	if !o.AliasesUntrusted {
		return AliasRefused
	}
	return OK
}

// noSecurityTraps refuses a subscription to security traps by name. A subscription to all traps is accepted; the rights of
// the subscriber are checked when a notice is delivered, see Secret.
func noSecurityTraps(_ *Options, m *mad.MAD) Verdict {
	const isGeneric, trap = 22, 26
	d := m.SAData()
	if n := mad.TrapNum(binary.BigEndian.Uint16(d[trap:])); d[isGeneric] != 0 && securityTrap(n) {
		return SecurityTraps
	}
	return OK
}

func securityTrap(n mad.TrapNum) bool { return n >= mad.TrapBadMKey && n <= mad.TrapBadPKeySwitch }

// Secret reports whether only trusted subscribers may have a notice, with any subscription: the traps 256 to 259, and all
// vendor notices except those that devices send about their own virtual ports. number is the trap number of a generic
// notice, and of others the last two bytes of the details.
func Secret(generic bool, number uint16) bool {
	if generic {
		return securityTrap(mad.TrapNum(number))
	}
	return number != 1144
}

// alias reports whether a request changes aliases of a port.
func alias(attr mad.AttrID, method mad.Method) bool {
	return attr == mad.AttrGUIDInfoRecord && (method == mad.MethodSet || method == mad.MethodDelete)
}
