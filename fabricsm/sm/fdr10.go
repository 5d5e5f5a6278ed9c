package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// FDR10 is a speed of NVIDIA's that PortInfo shows as QDR; only MlnxExtendedPortInfo
// tells them apart. It is read in the background, and only where PortInfo shows QDR
// on a device of theirs: faster links cost nothing.

// fdr10 is what is known of it on a port.
type fdr10 uint8

const (
	fdr10Asked   fdr10 = 1 << iota // or it is known
	fdr10Enabled                   // on the port
	fdr10Active                    // the link runs at it
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
	c.inBackground(ref{clsVendor, int32(p)})
}

// workVendor reads MlnxExtendedPortInfo, for whoever asked: the rotation of keys, or
// the speed of the link.
func (c *Core) workVendor(p topo.PortID) {
	pt := &c.ports[p]
	if c.mkeys.rotation.dual[p] != dualAsked && pt.fdr10&fdr10Asked == 0 {
		return
	}
	c.auditing = true // what is asked for later unsettles nothing
	c.ask(ref{clsVendor, int32(p)}, pt.node, mad.MethodGet, mad.AttrMlnxExtendedPortInfo, uint32(pt.num))
	c.auditing = false
}

// gotVendor takes the answer. An error is the answer of a device that knows no such
// attribute.
func (c *Core) gotVendor(p topo.PortID, m *mad.MAD, status mad.Status) {
	var e mad.MlnxExtendedPortInfo
	if status != mad.StatusOK || mad.Decode(m.Data(), &e) != nil {
		e = mad.MlnxExtendedPortInfo{}
	}
	c.gotDual(p, &e)
	pt := &c.ports[p]
	if pt.fdr10 == 0 {
		return
	}
	pt.fdr10 = fdr10Asked
	if e.LinkSpeedEnabled&mad.MlnxSpeedFDR10 != 0 {
		pt.fdr10 |= fdr10Enabled
	}
	if e.LinkSpeedActive&mad.MlnxSpeedFDR10 != 0 {
		pt.fdr10 |= fdr10Active
	}
	if pt.fdr10 != fdr10Asked {
		c.copyPort(p)
		c.judgeLink(p)
		c.viewDue = true
	}
}

// orFDR10 gives FDR10 in place of QDR.
func orFDR10(s ib.Speed, is bool) ib.Speed {
	if is && s == ib.QDR {
		return ib.FDR10
	}
	return s
}
