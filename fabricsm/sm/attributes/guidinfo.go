package attributes

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// guidInfo makes GUIDInfo of a port right, one block at a time. Of a port that is to have no aliases it is read in the
// background: its host may have written there.
type guidInfo struct{ *Parts }

func (a guidInfo) Work(x work.Ref) {
	p := x.Port()
	if !a.hasAliases(p) {
		if block, due := a.Adapters.DueGUIDs(p); due {
			a.Requests.AskAside(x, a.nodeOf(p), mad.MethodGet, mad.AttrGUIDInfo, uint32(block))
		}
		return
	}
	if !a.Ports.IsPlaced(p) || !a.Requests.IsWriting() {
		return
	}
	switch s := a.Aliases.Next(p); {
	case s.Method == mad.MethodGet && s.Audit:
		a.Requests.AskAside(x, a.nodeOf(p), mad.MethodGet, mad.AttrGUIDInfo, uint32(s.Block))
	case s.Method == mad.MethodGet:
		a.Requests.Ask(x, a.nodeOf(p), mad.MethodGet, mad.AttrGUIDInfo, uint32(s.Block))
	case s.Method == mad.MethodSet:
		m := a.Requests.Ask(x, a.nodeOf(p), mad.MethodSet, mad.AttrGUIDInfo, uint32(s.Block))
		mad.MustEncode(m.Data(), &s.Want)
	}
}

func (a guidInfo) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	p := r.Ref.Port()
	var got mad.GUIDInfo
	ok := status == mad.StatusOK && mad.Decode(m.Data(), &got) == nil
	switch {
	case !a.hasAliases(p):
		if ok && a.Adapters.TakeGUIDs(p, r, &got) { // it is written without the GUIDs of others
			m := a.Requests.Ask(r.Ref, a.nodeOf(p), mad.MethodSet, mad.AttrGUIDInfo, r.Mod)
			mad.MustEncode(m.Data(), &got)
		}
	case !a.Aliases.Knows(p, r.Mod):
	case !ok:
		a.Aliases.Reject(p, r.Method, status)
		a.Requests.Refused(r, status.String())
	case a.Aliases.Answer(p, r, &got):
		a.Requests.Disturb()
	}
}

func (a guidInfo) hasAliases(p topo.PortID) bool { return a.Aliases.Has(a.Topo.GUIDOf(p)) }
