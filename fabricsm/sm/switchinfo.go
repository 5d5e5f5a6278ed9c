package sm

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/switchinfo"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// switchFabric is the core as it does what package switchinfo says.
type switchFabric struct{ desk }

// tables returns what SwitchInfo is to say of forwarding tables.
func (f switchFabric) tables(id topo.NodeID) switchinfo.Tables {
	t := switchinfo.Tables{LifeTime: f.cfg.Ports.PacketLifetime}
	if all := f.routing.tables; all.LFT(id) != nil {
		t.AreThere, t.Top = true, all.MaxLID
	}
	return t
}

// look reads or writes SwitchInfo.
func (f switchFabric) look(id topo.NodeID) {
	n := &f.nodes[id]
	x := work.OnNode(work.Switch, id)
	if now, audit := n.sw.Reads(); now {
		f.auditing = audit
		f.ask(x, id, mad.MethodGet, mad.AttrSwitchInfo, 0)
		f.auditing = false
		return
	}
	if !f.writing() {
		return
	}
	t := f.tables(id)
	want := n.sw.Want(t)
	f.wantMulticast(id, &want)
	if !n.sw.Differs(&want) || n.doubt.IsUnsure() && !f.sure.HasLID(id) {
		return
	}
	if r := &f.routing; !t.AreThere && (r.need || r.running) && !n.sw.Clears() {
		return // joined with LinearFDBTop, which follows from the tables
	}
	n.sw.Ask(&want)
	m := f.ask(x, id, mad.MethodSet, mad.AttrSwitchInfo, 0)
	f.encode(mad.Encode(m.Data(), &want))
}

// answered takes an answer.
func (f switchFabric) answered(id topo.NodeID, r *work.Request, m *mad.MAD, status mad.Status) {
	var si mad.SwitchInfo
	if status != mad.StatusOK || mad.Decode(m.Data(), &si) != nil {
		f.refused(r, status.String())
		return
	}
	n := &f.nodes[id]
	news := n.sw.Take(&si, r.Method != mad.MethodSet)
	f.devices.NoteSwitch(id)
	f.fill(id)
	if r.Method == mad.MethodSet {
		f.taken(id, r)
		return
	}
	switch {
	case news.IsFirst:
		f.touchNode(id)
		f.lfts.Read(id)
	case news.IsRebooted:
		if f.quarantine.StrikeNode(id, health.Rebooting); !n.alive {
			return
		}
		f.rebooted(id)
	}
	if news.IsFirst || news.IsRebooted {
		n.sw.Start()
		f.groups.Forget(id)
	}
	if news.HasChanged {
		n.sw.Clear(f.writing())
		if !f.writing() {
			f.changes.Begin(id)
		}
	}
	f.q.MarkNode(work.Switch, id)
	f.lfts.Recount(id)
}

// taken takes the answer to a Set.
func (f switchFabric) taken(id topo.NodeID, r *work.Request) {
	n := &f.nodes[id]
	if n.sw.Cleared() {
		f.changes.Begin(id)
	}
	f.learnMulticast(id)
	t := f.tables(id)
	if n.sw.MissedTop(t) {
		f.refused(r, "LinearFDBTop is not kept")
		f.lfts.Recount(id)
		return
	}
	n.sw.LearnLifeTime(t)
	f.q.MarkNode(work.Switch, id)
	f.lfts.Recount(id)
}

// fill brings topo.Node up to date with SwitchInfo.
func (f switchFabric) fill(id topo.NodeID) {
	was := f.topo.Node(id)
	tn := was
	f.nodes[id].sw.Copy(&tn)
	if tn.MulticastFDBCap != was.MulticastFDBCap && (f.routing.tables != nil || f.routing.running) {
		f.wantRoutes() // a snapshot from before shows no room for multicast there
	}
	if tn != was {
		f.topo.SetNode(id, tn)
		f.pkeys.Moved()
		f.touchNode(id)
	}
}
