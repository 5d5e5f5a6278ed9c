package sim

import (
	"math"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// ClassSupport is the support of a device for one of the management classes that have keys.
type ClassSupport uint8

// Degrees of support.
const (
	ClassAbsent    ClassSupport = iota // there is no answer
	ClassOpen                          // every request is answered, there is no key
	ClassKeyed                         // a key protects it
	ClassDualKeyed                     // the same, and the old key is good until the new one is confirmed
)

// keyClasses is how many classes with keys there are.
const keyClasses = 3

// support returns the support of a device for a class, and the index of the class in port.classes.
func (d *Device) support(c mad.Class) (place int, s ClassSupport) {
	switch c {
	case mad.ClassCongestionControl:
		return 0, d.CC
	case mad.ClassVendorVS:
		return 1, d.VS
	case mad.ClassVendorN2N:
		return 2, d.N2N
	default:
		return 0, ClassAbsent
	}
}

// classAgent is the agent of a class with keys at an end port. A device without a key also has one, but its key cannot be
// set.
type classAgent struct {
	class   mad.KeyClass
	support ClassSupport
	port    *port

	keys       keys
	protect    bool
	period     uint16 // lease, seconds
	violations uint16
	lease      lease
	traps      mad.ClassPortInfo // of which only where traps go is used

	// Of class 0x0C.
	nodeKeys       keys // that other switches must show
	nodeViolations uint16
	neighbors      [maxNeighborBlocks]*mad.N2NNeighborsInfo
	notified       uint64 // by neighbours that showed the right key

	settings map[setting][]byte // of attributes without rules
}

// setting names a block of an attribute that is only kept.
type setting struct {
	attr mad.AttrID
	mod  uint32
}

const (
	// maxSettings is the maximum number of settings that an agent stores for one class.
	maxSettings = 256
	// maxNeighborBlocks is the number of blocks that the modifier of NeighborsInfo can name.
	maxNeighborBlocks = 16
)

// classAgent returns the agent of p for a class, or nil if its device has none.
func (p *port) classAgent(c mad.Class) *classAgent {
	place, support := p.node.model().support(c)
	if support == ClassAbsent {
		return nil
	}
	if a := p.classes[place]; a != nil {
		a.support = support
		return a
	}
	class, _ := mad.LookupKeyClass(c)
	p.classes[place] = &classAgent{class: class, support: support, port: p}
	return p.classes[place]
}

// check decides on a MAD for the agent: whether its sender shows the right key, and what access a sender without it has.
func (a *classAgent) check(fl *flight) access {
	a.lapse()
	method, attr, offered := fl.mad.Method(), fl.mad.Attr(), offeredKey(&fl.mad)
	switch {
	case a.support == ClassOpen:
		return accessFull
	case method == mad.MethodSend && a.class.Class == mad.ClassVendorN2N:
		return a.checkNode(fl)
	case method != mad.MethodGet && method != mad.MethodSet && method != mad.MethodTrapRepress:
		return accessFull
	case a.keys.accept(offered):
		a.lease.running = false
		return accessFull
	case method == mad.MethodGet && !a.protect && (attr == a.class.KeyAttr || attr == mad.AttrClassPortInfo):
		return accessFull
	}
	if a.violations < math.MaxUint16 {
		a.violations++
	}
	a.lease.start(a.port.node.fabric.now, a.period)
	a.sendKeyTrap(mad.TrapKeyViolation, fl)
	return accessNone
}

// checkNode decides on a message of another switch: it must show the node key of this one. The agent takes it and sends no
// answer. That such MADs have method Send is [sim].
func (a *classAgent) checkNode(fl *flight) access {
	if a.nodeKeys.accept(offeredKey(&fl.mad)) {
		a.notified++
		return accessTaken
	}
	if a.nodeViolations < math.MaxUint16 {
		a.nodeViolations++
	}
	number := mad.TrapKeyViolation
	if a.isNeighbor(fl.slid) {
		number = mad.TrapKeyMisconfiguration // it should know better
	}
	a.sendKeyTrap(number, fl)
	return accessTaken
}

func (a *classAgent) isNeighbor(lid ib.LID) bool {
	for _, block := range a.neighbors {
		for i := range neighborsIn(block) {
			if block.Neighbor[i].LID == lid && lid != 0 {
				return true
			}
		}
	}
	return false
}

func neighborsIn(block *mad.N2NNeighborsInfo) int {
	if block == nil {
		return 0
	}
	return len(block.Neighbor)
}

// lapse takes protection away when the lease has run out: the key stays, and
// can be read.
func (a *classAgent) lapse() {
	if a.lease.expired(a.port.node.fabric.now) {
		a.protect = false
	}
}

// serve answers a Get or Set whose sender may have an answer.
func (a *classAgent) serve(m *mad.MAD) mad.Status {
	if m.ClassVersion() != a.class.Version {
		return mad.StatusUnsupportedVersion
	}
	data, set := a.class.Attribute(m), m.Method() == mad.MethodSet
	switch {
	case m.Attr() == mad.AttrClassPortInfo:
		return a.classPortInfo(data, set)
	case m.Attr() == a.class.KeyAttr && a.support != ClassOpen:
		return a.keyInfo(data, set)
	case a.class.Class == mad.ClassCongestionControl:
		return a.congestion(m, data, set)
	case a.class.Class == mad.ClassVendorVS && m.Attr() == mad.VSAttrConfigSpaceAccess:
		return a.keep(m, data, set)
	case a.class.Class == mad.ClassVendorN2N && m.Attr() == mad.N2NAttrNeighborsInfo:
		return a.neighborsInfo(m.Mod(), data, set)
	default:
		return mad.StatusUnsupportedMethodAttr
	}
}

// classPortInfo answers ClassPortInfo, of which a Set changes where traps go.
func (a *classAgent) classPortInfo(data []byte, set bool) mad.Status {
	if set {
		var want mad.ClassPortInfo
		must(mad.Decode(data, &want))
		a.traps = mad.ClassPortInfo{
			TrapGID: want.TrapGID, TrapTC: want.TrapTC, TrapSL: want.TrapSL, TrapFL: want.TrapFL, TrapLID: want.TrapLID,
			TrapPKey: want.TrapPKey, TrapHL: want.TrapHL, TrapQP: want.TrapQP, TrapQKey: want.TrapQKey,
		}
	}
	answer := a.traps
	answer.BaseVersion, answer.ClassVersion, answer.RespTimeValue = 1, a.class.Version, 8
	answer.CapabilityMask = mad.ClassSendsTraps
	if a.support >= ClassKeyed {
		answer.CapabilityMask |= a.class.KeyCap
	}
	if a.support == ClassDualKeyed {
		answer.CapabilityMask |= a.class.DualCap
	}
	clear(data)
	must(mad.Encode(data, &answer))
	return mad.StatusOK
}

// keyInfo answers the attribute that holds the key. A Set was checked against
// the old key, and its answer shows the new one.
func (a *classAgent) keyInfo(data []byte, set bool) mad.Status {
	if set {
		var want mad.N2NKeyInfo // the three have the same places
		must(mad.Decode(data, &want))
		a.keys.set(want.ManagerKey.Reveal(), a.support == ClassDualKeyed)
		a.protect, a.period = want.ProtectBit, want.LeasePeriod
		if want.Violations == 0 {
			a.violations = 0
		}
		if want.NodeKeyViolations == 0 {
			a.nodeViolations = 0
		}
	}
	clear(data)
	must(mad.Encode(data, &mad.N2NKeyInfo{
		ManagerKey: ib.NewMKey(a.keys.current), ProtectBit: a.protect, LeasePeriod: a.period,
		Violations: a.violations, NodeKeyViolations: a.nodeViolations,
	}))
	return mad.StatusOK
}

// congestion answers the attributes of congestion control that need no rules.
func (a *classAgent) congestion(m *mad.MAD, data []byte, set bool) mad.Status {
	sw := a.port.node.sw != nil
	switch attr := m.Attr(); {
	case attr == mad.CCAttrCongestionInfo && !set:
		clear(data)
		must(mad.Encode(data, &mad.CongestionInfo{ControlTableCap: 1}))
		return mad.StatusOK
	case attr == mad.CCAttrEnhancedCongestionInfo && !set:
		info := mad.EnhancedCongestionInfo{Ver0Supported: true}
		if a.support == ClassDualKeyed {
			info.CapabilityMask |= mad.CCDualKey
		}
		clear(data)
		must(mad.Encode(data, &info))
		return mad.StatusOK
	case sw && (attr == mad.CCAttrSwitchSetting || attr == mad.CCAttrSwitchPortSetting),
		!sw && (attr == mad.CCAttrCASetting || attr == mad.CCAttrControlTable):
		return a.keep(m, data, set)
	default:
		return mad.StatusUnsupportedMethodAttr
	}
}

// keep answers an attribute that is stored unchanged.
func (a *classAgent) keep(m *mad.MAD, data []byte, set bool) mad.Status {
	at := setting{m.Attr(), m.Mod()}
	kept := a.settings[at]
	if set {
		if kept == nil && len(a.settings) >= maxSettings {
			return mad.StatusInvalidField
		}
		if a.settings == nil {
			a.settings = make(map[setting][]byte)
		}
		a.settings[at] = append(kept[:0], data...)
		return mad.StatusOK
	}
	clear(data)
	copy(data, kept)
	return mad.StatusOK
}

// neighborsInfo answers NeighborsInfo. The record of port 0 is the switch's own
// node key [sim].
func (a *classAgent) neighborsInfo(block uint32, data []byte, set bool) mad.Status {
	n := a.port.node
	if n.sw == nil || block >= maxNeighborBlocks || int(block)*mad.N2NNeighborsPerBlock >= len(n.ports) {
		return mad.StatusInvalidField
	}
	if set {
		var want mad.N2NNeighborsInfo
		must(mad.Decode(data, &want))
		a.neighbors[block] = &want
		if block == 0 {
			a.nodeKeys.set(want.Neighbor[0].Key.Reveal(), a.support == ClassDualKeyed)
		}
	}
	have := a.neighbors[block]
	if have == nil {
		have = &mad.N2NNeighborsInfo{}
	}
	clear(data)
	must(mad.Encode(data, have))
	return mad.StatusOK
}
