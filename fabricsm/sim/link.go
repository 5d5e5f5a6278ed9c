package sim

import (
	"math/bits"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/perf"
)

// train brings a link up if it has a cable and both ends want to, at once or
// after the time that training takes. It reports whether the link is up now.
func (p *port) train() bool {
	if f := p.node.fabric; f.opts.Training > 0 && f.running {
		if p.cable != nil && p.peer == nil && p != p.cable && p.polling() && p.cable.polling() {
			p.beginTraining(p.cable)
		}
		return false
	}
	return p.linkUp()
}

// linkUp brings a link up: both ports become Init. It reports whether anything
// changed.
func (p *port) linkUp() bool {
	far := p.cable
	if far == nil || p.peer != nil || p == far || !p.polling() || !far.polling() {
		return false
	}
	width := p.info.LinkWidthEnabled & far.info.LinkWidthEnabled
	speed := p.info.LinkSpeedEnabled & far.info.LinkSpeedEnabled
	if width == 0 || speed == 0 {
		return false
	}
	ext := ib.LinkSpeedExt(p.info.LinkSpeedExtEnabled & far.info.LinkSpeedExtEnabled)
	ext2 := p.info.LinkSpeedExtEnabled2 & far.info.LinkSpeedExtEnabled2
	p.peer, far.peer = far, p
	p.atFDR10 = p.hasFDR10() && far.hasFDR10() && !p.noFDR10 && !far.noFDR10
	far.atFDR10 = p.atFDR10
	for _, end := range []*port{p, far} {
		end.info.LinkWidthActive = widest(width)
		end.info.LinkSpeedActive = 1 << (bits.Len8(uint8(speed)) - 1)
		end.info.LinkSpeedExtActive, end.info.LinkSpeedExtActive2 = 0, ext2
		if ext != 0 {
			end.info.LinkSpeedExtActive = 1 << (bits.Len8(uint8(ext)) - 1)
		}
		end.info.PortState, end.info.PortPhysicalState = ib.PortInit, ib.PhysLinkUp
		end.commit()
	}
	return true
}

// trainAll brings up the links of a node that was switched on.
func (n *node) trainAll() {
	for _, p := range n.ports {
		if p != nil && p.train() {
			p.noteLinkChange()
			p.peer.noteLinkChange()
		}
	}
}

// polling reports whether a port looks for a far end.
func (p *port) polling() bool {
	return !p.node.off && (p.info.PortPhysicalState == ib.PhysPolling || p.info.PortPhysicalState == ib.PhysCfgTraining)
}

// widest picks the fastest of the enabled widths; 2x comes after 4x in bits
// but before it in lanes.
func widest(w ib.LinkWidth) ib.LinkWidth {
	for _, one := range []ib.LinkWidth{8, 4, 2, 16, 1} {
		if w&one != 0 {
			return one
		}
	}
	return 0
}

// drop takes a link down: both ports become Down and poll, and the link that
// was there is counted.
func (p *port) drop() bool {
	far := p.peer
	if far == nil {
		return false
	}
	p.peer, far.peer = nil, nil
	for _, end := range []*port{p, far} {
		end.info.PortState, end.info.PortPhysicalState = ib.PortDown, ib.PhysPolling
		end.counters.LinkDownedCounter = perf.Saturate8(end.counters.LinkDownedCounter, 1)
		end.commit()
	}
	return true
}

// noteLinkChange marks and reports a change of the port's state, if it is a
// port of a switch.
func (p *port) noteLinkChange() {
	if p.node.sw == nil || p.num == 0 {
		return
	}
	p.node.sw.info.PortStateChange = true
	p.node.sendLinkTrap()
}

// carries reports whether the link behind p can take a packet now: SMPs from
// state Init on, others only between Active ports (IBTA volume 1, 7.2.7).
func (p *port) carries(smp bool) bool {
	if p.peer == nil {
		return false
	}
	if smp {
		return true
	}
	return p.info.PortState == ib.PortActive && p.peer.info.PortState >= ib.PortArmed
}
