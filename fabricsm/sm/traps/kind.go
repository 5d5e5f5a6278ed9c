package traps

import "portcullis/fabricsm/mad"

// Kind is what a MAD is that answers no request of ours.
type Kind uint8

// Kinds.
const (
	Unwanted  Kind = iota // none of the others
	OfClass               // a trap of a class with keys
	OfSubnet              // a trap of class SubnLID
	Repressed             // the answer of a master to a trap of ours
	OfManager             // a request about SMInfo
	Stray                 // an answer that nothing asked for
)

// KindOf returns what a MAD is that came from a queue pair.
func KindOf(qp uint32, m *mad.MAD) Kind {
	_, keyed := mad.LookupKeyClass(m.Class())
	method, attr := m.Method(), m.Attr()
	switch {
	case qp == 1 && keyed && method == mad.MethodTrap && attr == mad.AttrNotice && m.BaseVersion() == 1:
		return OfClass
	case !m.IsSMP() || qp != 0 || m.BaseVersion() != 1:
		return Unwanted
	case method == mad.MethodTrap && attr == mad.AttrNotice && !m.IsDR():
		return OfSubnet
	case method == mad.MethodTrapRepress && attr == mad.AttrNotice:
		return Repressed
	case attr == mad.AttrSMInfo && (method == mad.MethodGet || method == mad.MethodSet):
		return OfManager
	case method == mad.MethodGetResp:
		return Stray
	default:
		return Unwanted
	}
}
