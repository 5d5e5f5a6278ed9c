package attributes

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// portInfo reads PortInfo.
type portInfo struct{ *Parts }

func (a portInfo) Work(x work.Ref) {
	p := x.Port()
	if a.MKeys.IsSetOut(p) {
		return // it is read when that is answered, see mkeys.Keeper.SetAnswered
	}
	a.Switches.Ask(p)
	ask := a.Requests.Ask
	if a.Ports.TakeAside(p) {
		ask = a.Requests.AskAside
	}
	pt := a.Ports.Port(p)
	ask(x, pt.Node, mad.MethodGet, mad.AttrPortInfo, mad.PortInfoMod(pt.Num, 0))
}

func (a portInfo) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	p, pi := r.Ref.Port(), &a.info
	if status != mad.StatusOK || mad.Decode(m.Data(), pi) != nil {
		a.Changes.Answer(p, true)
		if a.Contests.IsOpen(p) && a.Topo.Peer(p) == topo.None && !a.Topo.IsExternal(p) {
			a.Ports.SetMute(p)
			a.Contests.Release(p)
			return
		}
		a.Requests.Refused(r, status.String())
		return
	}
	pt := a.Ports.Port(p)
	was := ib.PortNop
	if pt.IsRead {
		was = pt.Info.PortState
	}
	a.Changes.Answer(p, !pt.IsRead || pi.PortState != was)
	a.Switches.Answered(p, pi.LID)
	a.MKeys.Found(p, pi, was)
	if lost := a.Settings.LostBits(p, pi); lost != 0 {
		a.Nodes.Learn(pt.Node, 0, lost)
	}
	if pi.PartitionEnforcementInbound && pi.PartitionEnforcementOutbound && a.Nodes.NotKept(pt.Node)&portset.Enforcement != 0 {
		// It does keep them: the observation to the contrary was a mistake.
		a.Nodes.Learn(pt.Node, portset.Enforcement, 0)
		a.Nodes.Touch(pt.Node)
	}
	a.Ports.Observe(p, pi, true)
}

// portSet writes PortInfo: parameters that differ, and the next step of the port's state.
type portSet struct{ *Parts }

func (a portSet) Work(x work.Ref) {
	p := x.Port()
	if !a.Requests.IsWriting() || a.Ports.IsTakenDown(p) || !a.Settings.IsSettable(p) {
		return
	}
	pt := a.Ports.Port(p)
	if pt.IsAssumed && !a.Unread.MayWrite(p) {
		a.Unread.Read(p)
		return
	}
	if a.Topo.IsExternal(p) && a.Topo.IsEndPort(a.Topo.Peer(p)) {
		a.Ports.TellEnforcement(p)
	}
	want, fields := a.Settings.Want(p)
	differ := portset.Differing(pt.Info, &want) & fields
	state := a.Settings.NextState(p, a.Gate)
	key, may := false, true
	if a.Topo.IsEndPort(p) {
		key, may = a.MKeys.Want(p, pt.Info, &want)
	}
	if !may {
		return
	}
	if !key && differ&^a.Nodes.NotKept(pt.Node) == 0 && state == ib.PortNop && !a.Settings.MustRenew(p) {
		a.Ports.Retrain(p)
		return
	}
	if state == ib.PortNop && !key && pt.Num != 0 && pt.Info.PortState == ib.PortInit && differ&portset.LinkSpeeds == 0 {
		return // joined with the step to Armed
	}
	want.PortState, want.PortPhysicalState = state, ib.PhysNop
	portpolicy.SetLink(&want, differ&portset.LinkWidth != 0, differ&portset.LinkSpeed != 0)
	want.ClientReregister = a.Settings.Renews(p, differ, state)

	tried := differ
	if pt.IsAssumed {
		tried = fields
	}
	pt.State.Begin(tried, state, want.ClientReregister)
	m := a.Requests.Ask(x, pt.Node, mad.MethodSet, mad.AttrPortInfo, a.Settings.Mod(p, differ))
	mad.MustEncode(m.Data(), &want)
}

func (a portSet) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	p, pi := r.Ref.Port(), &a.info
	a.MKeys.SetAnswered(p, status == mad.StatusOK)
	pt := a.Ports.Port(p)
	stuck := pt.State.Count()
	switch {
	case status != mad.StatusOK && pt.IsAssumed:
		a.Unread.Read(p)
		return
	case status != mad.StatusOK && (stuck || status.Code() != mad.StatusInvalidField):
		pt.State.Restart()
		a.Requests.Refused(r, status.String())
		return
	case status != mad.StatusOK:
		// Most likely the port's state changed under us: look, then try again.
		a.Queue.MarkPort(work.Info, p)
		return
	}
	if mad.Decode(m.Data(), pi) != nil {
		return
	}
	if !a.Settings.IsSettable(p) {
		a.Ports.Observe(p, pi, false) // the cable was pulled in the meantime
		return
	}
	pt.State.Renewed()
	tried := pt.State.Tried()
	if tried&portset.LinkSpeeds != 0 {
		a.Links.Retuned(p)
	}
	changed := tried
	if pt.IsAssumed {
		*pt.Info = *pi // the wanted fields depend on what the port supports
		changed = 0    // a field that was right already does not prove that a change is kept
	}
	want, fields := a.Settings.Want(p)
	missed := portset.Differing(pi, &want) & fields & tried
	a.Nodes.Learn(pt.Node, changed&fields, missed)
	if tried&portset.Enforcement != 0 || want.PartitionEnforcementInbound {
		pt.State.Accept()
	}
	moved := pt.State.Moved(pi, missed)
	if moved || stuck {
		pt.State.Restart()
	}
	a.Ports.Observe(p, pi, false)
	if stuck && !moved {
		a.Requests.Refused(r, "it answers without an error and changes nothing")
		return
	}
	a.PKeys.Judge.Port(p)
}

// extendedInfo reads and writes MlnxExtendedPortInfo, for the work that asked for it: the rotation of keys, or the speed of
// the link.
type extendedInfo struct{ *Parts }

func (a extendedInfo) Work(x work.Ref) {
	p := x.Port()
	if !a.MKeys.Rotation().IsAsked(p) && !a.Links.AsksFDR10(p) {
		return
	}
	pt := a.Ports.Port(p)
	if enable, due := a.Links.DueFDR10(p, a.Requests.IsWriting()); due {
		want := mad.MlnxExtendedPortInfo{StateChangeEnable: mad.MlnxSetSpeedEnabled}
		if enable {
			want.LinkSpeedEnabled = mad.MlnxSpeedFDR10
		}
		m := a.Requests.Ask(x, pt.Node, mad.MethodSet, mad.AttrMlnxExtendedPortInfo, uint32(pt.Num))
		mad.MustEncode(m.Data(), &want)
		return
	}
	// What is asked for later unsettles nothing.
	a.Requests.AskAside(x, pt.Node, mad.MethodGet, mad.AttrMlnxExtendedPortInfo, uint32(pt.Num))
}

// Got takes an answer. An error is the answer of a device that knows no such attribute.
func (a extendedInfo) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	var e mad.MlnxExtendedPortInfo
	if status != mad.StatusOK || mad.Decode(m.Data(), &e) != nil {
		e = mad.MlnxExtendedPortInfo{}
	}
	a.MKeys.Rotation().Answered(r.Ref.Port(), &e)
	a.Links.Answer(r.Ref.Port(), r.Method, &e)
}
