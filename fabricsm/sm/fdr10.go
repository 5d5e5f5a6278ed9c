package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// FDR10 is a speed of NVIDIA's that PortInfo shows as QDR; only MlnxExtendedPortInfo distinguishes the two. It is read in
// the background, and only where PortInfo shows QDR on a device of theirs: faster links cost nothing. A policy of link
// speeds is then put into force there, too. A policy that reaches up to FDR10 enables it, and a policy that ends at QDR
// disables it.

// fdr10 is what is known of it on a port.
type fdr10 uint8

const (
	fdr10Asked   fdr10 = 1 << iota // or it is known
	fdr10Enabled                   // on the port
	fdr10Active                    // the link runs at it
	fdr10Due                       // it is to be enabled or disabled
	fdr10Set                       // that was done, once while the link is up
)

// noteFDR10 takes a PortInfo, with the state that was known before.
func (c *Core) noteFDR10(p topo.PortID, was ib.PortState) {
	pt := &c.ports[p]
	pi := &pt.info
	slow := pi.LinkSpeedActive == ib.SpeedQDR && pi.LinkSpeedExtActive == 0 && pi.LinkSpeedExtActive2 == 0
	if !linkUp(pi) || !slow || was >= ib.PortArmed && pi.PortState == ib.PortInit {
		pt.fdr10 = 0 // another link now, or another speed
	}
	if !linkUp(pi) || !slow || pt.num == 0 || pt.fdr10 != 0 || c.topo.Node(pt.node).VendorID != mad.VendorMellanox {
		return
	}
	pt.fdr10 = fdr10Asked
	c.inBackground(work.OnPort(work.Vendor, p))
}

// workVendor reads MlnxExtendedPortInfo, for the work that asked for it: the rotation of keys, or the speed of the link.
func (c *Core) workVendor(p topo.PortID) {
	pt := &c.ports[p]
	if c.mkeys.rotation.dual[p] != dualAsked && pt.fdr10&fdr10Asked == 0 {
		return
	}
	if pt.fdr10&fdr10Due != 0 && c.writing() {
		pt.fdr10 = pt.fdr10&^fdr10Due | fdr10Set
		want := mad.MlnxExtendedPortInfo{StateChangeEnable: mad.MlnxSetSpeedEnabled}
		if enable, _ := c.rules.FDR10(p); enable {
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
	p := r.Ref.Port()
	c.gotDual(p, &e)
	pt := &c.ports[p]
	if pt.fdr10 == 0 {
		return
	}
	was := pt.fdr10
	pt.fdr10 = fdr10Asked | was&fdr10Set
	if e.LinkSpeedEnabled&mad.MlnxSpeedFDR10 != 0 {
		pt.fdr10 |= fdr10Enabled
	}
	if e.LinkSpeedActive&mad.MlnxSpeedFDR10 != 0 {
		pt.fdr10 |= fdr10Active
	}
	enable, has := c.rules.FDR10(p)
	can := e.LinkSpeedSupported&mad.MlnxSpeedFDR10 != 0
	if has && can && was&fdr10Set == 0 && enable != (pt.fdr10&fdr10Enabled != 0) {
		pt.fdr10 |= fdr10Due
		c.q.MarkPort(work.Vendor, p)
	}
	if r.Method == mad.MethodSet && can {
		pt.retuned = true
		c.q.MarkPort(work.Set, p) // it may be trained again
	}
	if pt.fdr10 != was {
		c.copyPort(p)
		c.judgeLink(p)
		c.viewDue = true
	}
}

// orFDR10 returns FDR10 for a link at QDR that is FDR10, and the given speed otherwise.
func orFDR10(s ib.Speed, is bool) ib.Speed {
	if is && s == ib.QDR {
		return ib.FDR10
	}
	return s
}
