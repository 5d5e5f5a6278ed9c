package sim

import (
	"math"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
)

// access decides on a packet for the management port of p. Most nodes have no
// key.
func (p *port) access(fl *flight) guard.Access {
	if fl.mad.IsSMP() {
		if !p.node.keyed {
			return guard.Full
		}
		return p.checkSMP(fl)
	}
	if a := p.endPort().classAgent(fl.mad.Class()); a != nil {
		v := a.Check(&fl.mad, fl.slid, p.node.fabric.now)
		if v.Wrong {
			p.endPort().sendClassTrap(a, v.Trap, fl)
		}
		return v.Access
	}
	return guard.Full
}

// checkSMP is access for an SMP to a node of which a port has a key. A CA also
// checks the port that a PortInfo speaks of, if it is another. SMInfo is for the
// Subnet Manager on the host of a CA or router: Linux' drivers (mlx4_ib, mlx5_ib,
// mthca) do not pass it to the firmware, which alone checks M_Keys. Of switches it
// is not public; here they check it [sim].
func (p *port) checkSMP(fl *flight) guard.Access {
	m, end := &fl.mad, p.endPort()
	if p.node.sw == nil && m.Attr() == mad.AttrSMInfo {
		return guard.Full
	}
	got := end.checkMKey(fl, end.isLocal(fl))
	if got == guard.None || p.node.sw != nil || m.Attr() != mad.AttrPortInfo {
		return got
	}
	if other := p.selected(m.Mod() & 0xFF); other != nil && other != p {
		got = max(got, other.checkMKey(fl, false))
	}
	return got
}

// isLocal reports whether the host of the port sent an SMP to it without a link in between. No device checks the M_Key of
// such SMPs; the SMP firewall can block them.
func (p *port) isLocal(fl *flight) bool {
	return fl.origin != nil && fl.in == nil && fl.from.endPort() == p
}

// checkMKey is the M_Key check of an end port (IBTA volume 1, 14.2.4). It applies the protection level to requests without
// the right key, and handles the lease. Answers and traps are not checked.
func (p *port) checkMKey(fl *flight, local bool) guard.Access {
	p.lapse()
	method := fl.mad.Method()
	if method != mad.MethodGet && method != mad.MethodSet && method != mad.MethodTrapRepress {
		return guard.Full
	}
	if local || p.mkeys.Accept(guard.Offered(&fl.mad)) {
		p.mkeyLease.Running = false
		return guard.Full
	}
	if method == mad.MethodGet && p.info.MKeyProtectBits < 2 {
		if p.info.MKeyProtectBits == 1 {
			return guard.Blind
		}
		return guard.Full
	}
	p.mkeyViolation(fl)
	return guard.None
}

// mkeyViolation counts an SMP without the right key, starts the lease and notifies the subnet manager.
func (p *port) mkeyViolation(fl *flight) {
	if p.info.MKeyViolations < math.MaxUint16 {
		p.info.MKeyViolations++
		p.commit()
	}
	p.mkeyLease.Start(p.node.fabric.now, p.info.MKeyLeasePeriod)
	p.sendMKeyTrap(fl)
}

// lapse takes protection away when the lease has run out. The key stays: it
// can be read now.
func (p *port) lapse() {
	if p.mkeyLease.Expired(p.node.fabric.now) {
		p.info.MKeyProtectBits = 0
		p.commit()
	}
}

// takeMKey makes key the M_Key of an end port.
func (p *port) takeMKey(key ib.MKey) {
	was := p.mkeys.Current
	p.info.MKey = key
	p.mkeys.Set(key.Reveal(), p.node.model().DualMKey)
	if was != p.mkeys.Current {
		p.node.keyed = slices.ContainsFunc(p.node.ports, func(q *port) bool { return q != nil && q.mkeys.Current != 0 })
	}
}

// sendMKeyTrap reports an SMP without the right key: trap 256. The return path
// has the indices it has in the SMP: entry 0 is not used.
func (p *port) sendMKeyTrap(fl *flight) {
	m := &fl.mad
	n := mad.Trap256{
		NoticeHeader: p.node.noticeHeader(mad.NoticeSecurity, mad.TrapBadMKey, p),
		LID:          fl.slid, Method: m.Method(), AttributeID: m.Attr(), AttributeModifier: m.Mod(), MKey: m.MKey(),
	}
	if m.IsDR() {
		n.DrSLID, n.DRNotice = m.DrSLID(), true
		n.DRHopCount = min(m.HopCount(), uint8(len(n.DRReturnPath)-1))
		n.DRPathTruncated = n.DRHopCount != m.HopCount()
		for i := uint8(1); i <= n.DRHopCount; i++ {
			n.DRReturnPath[i] = ib.PortNum(m.ReturnPath()[i])
		}
	}
	var data [mad.DataSize]byte
	must(mad.Encode(data[:], &n))
	p.node.paceTrap(p, mad.TrapBadMKey, p.num, &data)
}

// MKeyLease shows how much longer the protection of an end port lasts after a
// violation; false means that no lease is running.
func (f *Fabric) MKeyLease(node string, num ib.PortNum) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil {
		return 0, false
	}
	p.lapse()
	if !p.mkeyLease.Running {
		return 0, false
	}
	return p.mkeyLease.Ends - f.now, true
}
