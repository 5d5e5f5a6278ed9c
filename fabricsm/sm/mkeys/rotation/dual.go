package rotation

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// dualness says whether a device accepts two M_Keys at a time.
type dualness uint8

const (
	dualUnknown dualness = iota
	dualAsked            // or waits in the background to be
	dualYes
	dualNo
)

// learn records the dualness of a device.
func (r *Rotation) learn(p topo.PortID, d dualness) {
	if r.rotator == nil || r.dual[p] == d {
		return
	}
	if r.dual[p] == dualAsked {
		r.asking--
	}
	switch d {
	case dualAsked:
		r.asking++
	case dualUnknown:
		delete(r.dual, p)
		return
	case dualYes, dualNo:
	}
	r.dual[p] = d
}

// Forget forgets whether the device at an end port accepts two keys.
func (r *Rotation) Forget(p topo.PortID) { r.learn(p, dualUnknown) }

// IsDual reports whether the device at an end port is known to accept two keys.
func (r *Rotation) IsDual(p topo.PortID) bool { return r.dual[p] == dualYes }

// IsAsked reports whether a device is asked, or is to be asked, if it accepts two keys.
func (r *Rotation) IsAsked(p topo.PortID) bool { return r.dual[p] == dualAsked }

// IsAsking reports whether any device is.
func (r *Rotation) IsAsking() bool { return r.asking > 0 }

func (r *Rotation) isDualDevice(_ keys.Kind, guid ib.GUID) bool {
	p, ok := r.core.PortByGUID(guid)
	return ok && r.IsDual(p)
}

// AskDual asks, in the background, whether a device accepts two keys at a time.
func (r *Rotation) AskDual(p topo.PortID) {
	if r.rotator == nil || r.config.Period == 0 {
		return
	}
	if r.dual[p] == dualUnknown {
		r.learn(p, dualAsked)
		r.act.InBackground(work.OnPort(work.Vendor, p))
	}
}

// Answered takes the answer of a device to that question.
func (r *Rotation) Answered(p topo.PortID, e *mad.MlnxExtendedPortInfo) {
	switch {
	case r.dual[p] != dualAsked: // the read was for something else
	case e.CapabilityMask&mad.MlnxDualMKey != 0:
		r.know(p, dualYes)
	default:
		r.know(p, dualNo)
	}
}

// Unanswered takes that a device which was to be asked is gone.
func (r *Rotation) Unanswered(p topo.PortID) { r.know(p, dualUnknown) }

// know takes whether a device accepts two keys. The rotation may have waited
// for it.
func (r *Rotation) know(p topo.PortID, d dualness) {
	r.learn(p, d)
	r.keys.StateChanged(p)
	if r.asking == 0 {
		r.Soon()
	}
}
