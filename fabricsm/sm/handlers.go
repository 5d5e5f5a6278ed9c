package sm

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/attributes"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/switchinfo"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// requests, handledPorts and handledNodes are the core as package attributes uses it.
type (
	requests     struct{ desk }
	handledPorts struct{ settingFabric }
	handledNodes struct{ desk }
)

var (
	_ attributes.Requests = requests{}
	_ attributes.Ports    = handledPorts{}
	_ attributes.Nodes    = handledNodes{}
)

// handle says what becomes of each class of work.
func (c *Core) handle() {
	d := desk{c}
	c.parts = attributes.Parts{
		Requests: requests{d}, Ports: handledPorts{settingFabric{d}}, Nodes: handledNodes{d}, Probes: probes{d}, Gate: portGate{c},
		Topo: &c.topo, Queue: &c.q, Tables: c.lfts, Groups: c.groups, PKeys: c.pkeys, Aliases: c.aliases, Adapters: &c.wrote,
		Lanes: c.lanes, Links: c.links, Settings: &c.settings, MKeys: c.mkeys, Unread: &c.unread, Changes: c.changes,
		Contests: c.contests, Switches: &c.sure, Tree: c.tree, Law: c.law, Subtrees: c.subtrees, Finder: c.finder, Quarantine: &c.quarantine,
	}
	c.handlers = c.parts.Handlers()
	c.handlers[work.SMInfo], c.handlers[work.Notice] = managerInfo{d}, notices{d}
}

func (r requests) IsWriting() bool { return r.writing() }
func (r requests) Disturb()        { r.disturb() }
func (r requests) ShowSoon()       { r.viewDue = true }

func (r requests) Ask(x work.Ref, id topo.NodeID, method mad.Method, attr mad.AttrID, mod uint32) *mad.MAD {
	return r.ask(x, id, method, attr, mod)
}

func (r requests) AskAside(x work.Ref, id topo.NodeID, method mad.Method, attr mad.AttrID, mod uint32) *mad.MAD {
	r.auditing = true
	m := r.ask(x, id, method, attr, mod)
	r.auditing = false
	return m
}

func (r requests) Refused(x *work.Request, reason string) { r.refused(x, reason) }

func (r requests) RefusedAfter(x *work.Request, rounds int, reason string) {
	r.failures.SetRounds(x.Ref, rounds)
	r.refused(x, reason)
}

func (f handledPorts) IsPlaced(p topo.PortID) bool   { return f.ports[p].placed && f.ports[p].known }
func (f handledPorts) SetMute(p topo.PortID)         { f.ports[p].mute = true }
func (f handledPorts) TellEnforcement(p topo.PortID) { f.tellEnforcement(p) }
func (f handledPorts) Retrain(p topo.PortID)         { linkFabric{f.desk}.retrain(p) }
func (f handledPorts) IsTakenDown(p topo.PortID) bool {
	return f.quarantine.Work(p) || linkFabric{f.desk}.holdDown(p)
}

func (f handledPorts) Observe(p topo.PortID, pi *mad.PortInfo, byGet bool) { f.observe(p, pi, byGet) }

func (f handledPorts) TakeAside(p topo.PortID) (aside bool) {
	aside, f.ports[p].background = f.ports[p].background, false
	return aside
}

func (f handledNodes) Switch(id topo.NodeID) *switchinfo.State { return &f.nodes[id].sw }
func (f handledNodes) IsRerouting() bool                       { return f.routing.IsDue() }
func (f handledNodes) NotKept(id topo.NodeID) portset.Fields   { return f.nodes[id].notKept }
func (f handledNodes) Touch(id topo.NodeID)                    { f.touchNode(id) }
func (f handledNodes) IsDescribed(id topo.NodeID) bool         { return f.nodes[id].described }

func (f handledNodes) Learn(id topo.NodeID, tried, missed portset.Fields) { f.learn(id, tried, missed) }

func (f handledNodes) IsUnsure(id topo.NodeID) bool {
	return f.nodes[id].doubt.IsUnsure() && !f.sure.HasLID(id)
}

func (f handledNodes) Tables(id topo.NodeID) switchinfo.Tables {
	t := switchinfo.Tables{LifeTime: f.cfg.Ports.PacketLifetime}
	if all := f.routing.Tables(); all.LFT(id) != nil {
		t.AreThere, t.Top = true, all.MaxLID
	}
	return t
}

func (f handledNodes) KeepsMulticast(id topo.NodeID) (top, ports bool) {
	n := &f.nodes[id]
	p0 := &f.ports[f.topo.Node(id).FirstPort]
	top = p0.known && p0.info.CapabilityMask.Has(mad.IsMulticastFDBTopSupported) && n.notKept&portset.MulticastFDBTop == 0
	return top, n.notKept&portset.DefaultMulticastPorts == 0
}

func (f handledNodes) Rebooted(id topo.NodeID) bool {
	if f.quarantine.StrikeNode(id, health.Rebooting); !f.nodes[id].alive {
		return false
	}
	f.rebooted(id)
	return true
}

// Filled brings topo.Node up to date with SwitchInfo.
func (f handledNodes) Filled(id topo.NodeID) {
	f.devices.NoteSwitch(id)
	was := f.topo.Node(id)
	tn := was
	f.nodes[id].sw.Copy(&tn)
	if tn.MulticastFDBCap != was.MulticastFDBCap && (f.routing.Tables() != nil || f.routing.IsRunning()) {
		f.routing.Want() // a snapshot from before shows no room for multicast there
	}
	if tn != was {
		f.topo.SetNode(id, tn)
		f.pkeys.Moved()
		f.touchNode(id)
	}
}

func (f handledNodes) Described(id topo.NodeID, text []byte) {
	f.nodes[id].described = true
	if text == nil {
		return
	}
	tn := f.topo.Node(id)
	tn.Description = health.CleanText(text)
	f.topo.SetNode(id, tn)
}

// managerInfo handles SMInfo.
type managerInfo struct{ desk }

func (h managerInfo) Work(x work.Ref)                               { h.election.Work(x.Port()) }
func (h managerInfo) Got(r *work.Request, m *mad.MAD, _ mad.Status) { h.election.Answered(r, m) }
