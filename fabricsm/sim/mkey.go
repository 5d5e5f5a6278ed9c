package sim

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// access is the access that a management port grants to the sender of a packet.
type access uint8

const (
	accessFull  access = iota
	accessBlind        // an answer in which the key is hidden
	accessNone         // no answer at all
	accessTaken        // none either, but the agent has taken the packet
)

// keyOffset is where SMPs, and MADs of the classes with keys, have their key.
const keyOffset = mad.HeaderSize

// offeredKey is the key that the sender of a MAD shows.
func offeredKey(m *mad.MAD) uint64 { return binary.BigEndian.Uint64(m[keyOffset:]) }

// keys is one or, on devices that hold two, both keys of a management port.
type keys struct {
	current  uint64 // 0: every request is allowed
	previous uint64 // also accepted, until the manager confirms the current one; 0: none
}

// accept reports whether a key opens the port.
func (k *keys) accept(offered uint64) bool {
	return k.current == 0 || offered == k.current || k.previous != 0 && offered == k.previous
}

// set takes a new key. With dual, the old one stays good until the new one is
// set once more. Key 0 ends both.
func (k *keys) set(key uint64, dual bool) {
	if key == 0 || key == k.current || !dual {
		k.previous = 0
	} else {
		k.previous = k.current
	}
	k.current = key
}

// lease is how long protection outlives a violation that no manager reacts to.
type lease struct {
	ends    time.Duration // when running
	running bool
}

// start begins a lease of the given number of seconds, if it does not run; 0 means forever.
func (l *lease) start(now time.Duration, seconds uint16) {
	if seconds != 0 && !l.running {
		l.ends, l.running = now+time.Duration(seconds)*time.Second, true
	}
}

// expired reports, once, that the lease has run out.
func (l *lease) expired(now time.Duration) bool {
	if !l.running || now < l.ends {
		return false
	}
	l.running = false
	return true
}

// access decides on a packet for the management port of p. Most nodes have no
// key.
func (p *port) access(fl *flight) access {
	if fl.mad.IsSMP() {
		if !p.node.keyed {
			return accessFull
		}
		return p.checkSMP(fl)
	}
	if a := p.endPort().classAgent(fl.mad.Class()); a != nil {
		return a.check(fl)
	}
	return accessFull
}

// checkSMP is access for an SMP to a node of which a port has a key. A CA also
// checks the port that a PortInfo speaks of, if it is another. SMInfo is for the
// Subnet Manager on the host of a CA or router: Linux' drivers (mlx4_ib, mlx5_ib,
// mthca) do not pass it to the firmware, which alone checks M_Keys. Of switches it
// is not public; here they check it [sim].
func (p *port) checkSMP(fl *flight) access {
	m, end := &fl.mad, p.endPort()
	if p.node.sw == nil && m.Attr() == mad.AttrSMInfo {
		return accessFull
	}
	got := end.checkMKey(fl, end.isLocal(fl))
	if got == accessNone || p.node.sw != nil || m.Attr() != mad.AttrPortInfo {
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
func (p *port) checkMKey(fl *flight, local bool) access {
	p.lapse()
	method := fl.mad.Method()
	if method != mad.MethodGet && method != mad.MethodSet && method != mad.MethodTrapRepress {
		return accessFull
	}
	if local || p.mkeys.accept(offeredKey(&fl.mad)) {
		p.mkeyLease.running = false
		return accessFull
	}
	if method == mad.MethodGet && p.info.MKeyProtectBits < 2 {
		if p.info.MKeyProtectBits == 1 {
			return accessBlind
		}
		return accessFull
	}
	p.mkeyViolation(fl)
	return accessNone
}

// mkeyViolation counts an SMP without the right key, starts the lease and notifies the subnet manager.
func (p *port) mkeyViolation(fl *flight) {
	if p.info.MKeyViolations < math.MaxUint16 {
		p.info.MKeyViolations++
		p.commit()
	}
	p.mkeyLease.start(p.node.fabric.now, p.info.MKeyLeasePeriod)
	p.sendMKeyTrap(fl)
}

// lapse takes protection away when the lease has run out. The key stays: it
// can be read now.
func (p *port) lapse() {
	if p.mkeyLease.expired(p.node.fabric.now) {
		p.info.MKeyProtectBits = 0
		p.commit()
	}
}

// takeMKey makes key the M_Key of an end port.
func (p *port) takeMKey(key ib.MKey) {
	was := p.mkeys.current
	p.info.MKey = key
	p.mkeys.set(key.Reveal(), p.node.model().DualMKey)
	if was != p.mkeys.current {
		p.node.keyed = slices.ContainsFunc(p.node.ports, func(q *port) bool { return q != nil && q.mkeys.current != 0 })
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
	if !p.mkeyLease.running {
		return 0, false
	}
	return p.mkeyLease.ends - f.now, true
}
