package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/linkspeed"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// linkFabric is the core as package linkspeed uses it.
type linkFabric struct{ desk }

var _ linkspeed.Fabric = linkFabric{}

func (f linkFabric) Info(p topo.PortID) *mad.PortInfo { return &f.ports[p].info }
func (f linkFabric) IsRead(p topo.PortID) bool        { return f.ports[p].known }
func (f linkFabric) AskLater(p topo.PortID)           { f.inBackground(work.OnPort(work.Vendor, p)) }

func (f linkFabric) Show(p topo.PortID) {
	f.copyPort(p)
	f.viewDue = true
}

func (f linkFabric) Solved(k fault.Key) {
	if f.faults.Clear(k) {
		f.viewDue = true
	}
}

// retrain takes a link down once, which comes up by itself, when a change of the enabled speed or width waits for that. The
// Set goes to the switch port that does not lie behind the link.
func (c *Core) retrain(p topo.PortID) {
	q := c.topo.Peer(p)
	if !c.cfg.Ports.Retrain || q == topo.None || p == c.rootPort || q == c.rootPort ||
		!c.topo.IsExternal(p) || c.tree.Up(c.ports[p].node) == q && c.topo.IsExternal(q) {
		return
	}
	if !c.ports[q].known || c.q.IsAsked(work.Set, q) || c.settings.Tunes(p) || c.settings.Tunes(q) {
		return
	}
	if c.links.Train(p, q) {
		c.takeDown(p, ib.PhysNop)
	}
}

// workVendor reads MlnxExtendedPortInfo, for the work that asked for it: the rotation of keys, or the speed of the link.
func (c *Core) workVendor(p topo.PortID) {
	pt := &c.ports[p]
	if !c.mkeys.Rotation().IsAsked(p) && !c.links.AsksFDR10(p) {
		return
	}
	if enable, due := c.links.DueFDR10(p, c.writing()); due {
		want := mad.MlnxExtendedPortInfo{StateChangeEnable: mad.MlnxSetSpeedEnabled}
		if enable {
			want.LinkSpeedEnabled = mad.MlnxSpeedFDR10
		}
		m := c.ask(work.OnPort(work.Vendor, p), pt.node, mad.MethodSet, mad.AttrMlnxExtendedPortInfo, uint32(pt.num))
		c.encode(mad.Encode(m.Data(), &want))
		return
	}
	c.auditing = true // what is asked for later unsettles nothing
	c.ask(work.OnPort(work.Vendor, p), pt.node, mad.MethodGet, mad.AttrMlnxExtendedPortInfo, uint32(pt.num))
	c.auditing = false
}

// gotVendor takes the answer. An error is the answer of a device that knows no such
// attribute.
func (c *Core) gotVendor(r *work.Request, m *mad.MAD, status mad.Status) {
	var e mad.MlnxExtendedPortInfo
	if status != mad.StatusOK || mad.Decode(m.Data(), &e) != nil {
		e = mad.MlnxExtendedPortInfo{}
	}
	c.mkeys.Rotation().Answered(r.Ref.Port(), &e)
	c.links.Answer(r.Ref.Port(), r.Method, &e)
}
