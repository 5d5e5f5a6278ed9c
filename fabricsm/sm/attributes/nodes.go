package attributes

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// description reads NodeDescription. Names unsettle nothing.
type description struct{ *Parts }

func (a description) Work(x work.Ref) {
	if !a.Nodes.IsDescribed(x.Node()) {
		a.Requests.AskAside(x, x.Node(), mad.MethodGet, mad.AttrNodeDescription, 0)
	}
}

func (a description) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	var text []byte
	if status == mad.StatusOK {
		text = m.Data()
	}
	a.Nodes.Described(r.Ref.Node(), text)
}

// switchInfo reads and writes SwitchInfo.
type switchInfo struct{ *Parts }

func (a switchInfo) Work(x work.Ref) {
	id := x.Node()
	s := a.Nodes.Switch(id)
	switch now, audit := s.Reads(); {
	case now && audit:
		a.Requests.AskAside(x, id, mad.MethodGet, mad.AttrSwitchInfo, 0)
		return
	case now:
		a.Requests.Ask(x, id, mad.MethodGet, mad.AttrSwitchInfo, 0)
		return
	case !a.Requests.IsWriting():
		return
	}
	t := a.Nodes.Tables(id)
	want := s.Want(t)
	top, ports := a.Nodes.KeepsMulticast(id)
	a.Groups.Want(&want, top, ports)
	if !s.Differs(&want) || a.Nodes.IsUnsure(id) {
		return
	}
	if !t.AreThere && a.Nodes.IsRerouting() && !s.Clears() {
		return // joined with LinearFDBTop, which follows from the tables
	}
	s.Ask(&want)
	m := a.Requests.Ask(x, id, mad.MethodSet, mad.AttrSwitchInfo, 0)
	mad.MustEncode(m.Data(), &want)
}

func (a switchInfo) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	id := r.Ref.Node()
	var si mad.SwitchInfo
	if status != mad.StatusOK || mad.Decode(m.Data(), &si) != nil {
		a.Requests.Refused(r, status.String())
		return
	}
	s := a.Nodes.Switch(id)
	news := s.Take(&si, r.Method != mad.MethodSet)
	a.Nodes.Filled(id)
	if r.Method == mad.MethodSet {
		a.taken(id, r)
		return
	}
	switch {
	case news.IsFirst:
		a.Nodes.Touch(id)
		a.Tables.Read(id)
	case news.IsRebooted:
		if !a.Nodes.Rebooted(id) {
			return
		}
	}
	if news.IsFirst || news.IsRebooted {
		s.Start()
		a.Groups.Forget(id)
	}
	if news.HasChanged {
		s.Clear(a.Requests.IsWriting())
		if !a.Requests.IsWriting() {
			a.Changes.Begin(id)
		}
	}
	a.Queue.MarkNode(work.Switch, id)
	a.Tables.Recount(id)
}

// taken takes the answer to a Set.
func (a switchInfo) taken(id topo.NodeID, r *work.Request) {
	s := a.Nodes.Switch(id)
	if s.Cleared() {
		a.Changes.Begin(id)
	}
	var missed portset.Fields
	top, ports := s.MissedMulticast()
	if top {
		missed |= portset.MulticastFDBTop
	}
	if ports {
		missed |= portset.DefaultMulticastPorts
	}
	a.Nodes.Learn(id, 0, missed)
	t := a.Nodes.Tables(id)
	if s.MissedTop(t) {
		a.Requests.Refused(r, "LinearFDBTop is not kept")
		a.Tables.Recount(id)
		return
	}
	s.LearnLifeTime(t)
	a.Queue.MarkNode(work.Switch, id)
	a.Tables.Recount(id)
}
