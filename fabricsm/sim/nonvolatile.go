package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
)

// nonVolatile is the state that a port may have kept when its node is switched on again. IsM_KeyNVRAM and IsP_KeyNVRAM of
// its capability mask report that it does.
type nonVolatile struct {
	mkey    ib.MKey
	protect uint8
	lease   uint16
	pkeys   []byte // nil: forgotten
}

// keep returns the state of a port that survives a reboot of its device.
func (p *port) keep() (n nonVolatile) {
	d := p.node.model()
	if !p.isEnd() {
		return n
	}
	if d.KeepsMKey {
		n.mkey, n.protect, n.lease = p.info.MKey, p.info.MKeyProtectBits, p.info.MKeyLeasePeriod
	}
	if d.KeepsPKeys {
		n.pkeys = p.pkeys
	}
	return n
}

// restore restores the saved state of a port after a reset.
func (p *port) restore(n nonVolatile) {
	if !p.isEnd() {
		return
	}
	p.takeMKey(n.mkey)
	p.mkeys.Previous, p.mkeyLease = 0, guard.Lease{}
	clear(p.classes[:])
	p.info.MKeyProtectBits, p.info.MKeyLeasePeriod = n.protect, n.lease
	d := p.node.model()
	if d.isVendor() {
		p.info.CapabilityMask |= mad.IsMulticastPKeyTrapSuppressionSupported
	}
	if p.node.firewalled() {
		p.info.CapabilityMask |= mad.IsSMDisabled
	}
	if d.KeepsMKey {
		p.info.CapabilityMask |= mad.IsMKeyNVRAM
	}
	if d.KeepsPKeys {
		p.info.CapabilityMask |= mad.IsPKeyNVRAM
	}
	if n.pkeys != nil {
		clear(p.pkeys)
		copy(p.pkeys, n.pkeys)
	}
}
