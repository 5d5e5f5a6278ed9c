package attributes

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// linearTable reads and writes LinearForwardingTable, several blocks at a time.
type linearTable struct{ *Parts }

func (a linearTable) Work(x work.Ref) {
	s := a.Tables.Next(x.Node())
	if s.Method == 0 {
		return
	}
	m := a.Requests.Ask(x, x.Node(), s.Method, mad.AttrLinearForwardingTable, uint32(s.Block))
	for i, p := range s.Want {
		m.Data()[i] = byte(p)
	}
	a.Queue.Mark(x)
}

func (a linearTable) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	id := r.Ref.Node()
	if status != mad.StatusOK {
		a.Tables.Lost(id, r)
		a.refuse(id, r, status.String())
		return
	}
	var content [mad.LIDsPerBlock]ib.PortNum
	for i, p := range m.Data() {
		content[i] = ib.PortNum(p)
	}
	if !a.Tables.Take(id, r, content[:]) {
		a.refuse(id, r, "the block answered is not the one that was set")
	}
}

// refuse leaves a block alone for a while.
func (a linearTable) refuse(id topo.NodeID, r *work.Request, reason string) {
	if a.Tables.Refuse(id, r) {
		a.Requests.Refused(r, reason)
	}
	a.Tables.Recount(id)
}

// multicastTable reads and writes MulticastForwardingTable, several blocks at a time.
type multicastTable struct{ *Parts }

func (a multicastTable) Work(x work.Ref) {
	id := x.Node()
	s := a.Groups.Next(id, a.Requests.IsWriting())
	switch {
	case s.Method == 0:
		return
	case s.Audit:
		a.Requests.AskAside(x, id, s.Method, mad.AttrMulticastForwardingTable, s.Mod)
		return
	}
	m := a.Requests.Ask(x, id, s.Method, mad.AttrMulticastForwardingTable, s.Mod)
	if s.Method == mad.MethodSet {
		mad.MustEncode(m.Data(), &mad.MulticastForwardingTable{PortMask: s.Masks})
	}
	a.Queue.Mark(x)
}

func (a multicastTable) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	id := r.Ref.Node()
	got := &mad.MulticastForwardingTable{}
	if status != mad.StatusOK || mad.Decode(m.Data(), got) != nil {
		got = nil
	}
	reason, refused := a.Groups.Answer(id, r, got, status.String())
	if !refused {
		return
	}
	if first, rounds := a.Groups.Refuse(id, r); first {
		a.Requests.RefusedAfter(r, rounds, reason)
	}
}

// pkeyTable makes the P_Key table of a port known and right, one block at a time.
type pkeyTable struct{ *Parts }

func (a pkeyTable) Work(x work.Ref) {
	p := x.Port()
	s := a.PKeys.Next(p)
	if s.Method == 0 {
		return
	}
	ask := a.Requests.Ask
	if s.Audit {
		ask = a.Requests.AskAside
	}
	m := ask(x, a.nodeOf(p), s.Method, mad.AttrPKeyTable, mad.PKeyTableMod(a.Topo.ExternalNum(p), uint16(s.Block)))
	if s.Method == mad.MethodSet {
		mad.MustEncode(m.Data(), s.Want)
	}
}

func (a pkeyTable) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	p := r.Ref.Port()
	var got mad.PKeyTable
	if status != mad.StatusOK || mad.Decode(m.Data(), &got) != nil {
		a.Requests.Refused(r, status.String())
		return
	}
	b := int(r.Mod & 0xFFFF)
	if b >= a.PKeys.Table(p).Blocks() {
		return
	}
	a.Adapters.SuspectKeys(p, r, a.PKeys.Table(p).Block(b), got.PKey[:])
	is := a.PKeys.Take(p, r, &got)
	if is.Changed {
		a.Requests.ShowSoon()
	}
	if is.NotSet {
		a.Requests.Refused(r, "the table answered is not the one that was set")
		return
	}
	if r.Audit && is.Differs {
		a.Requests.Disturb()
	}
}
