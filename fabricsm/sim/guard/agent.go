package guard

import (
	"math"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Support is the support of a device for one of the management classes that have keys.
type Support uint8

// Degrees of support.
const (
	Absent    Support = iota // there is no answer
	Open                     // every request is answered, there is no key
	Keyed                    // a key protects it
	DualKeyed                // the same, and the old key is good until the new one is confirmed
)

// Agent is the agent of a class with keys at an end port. A device without a key also has one, but its key cannot be
// set.
type Agent struct {
	class   mad.KeyClass
	Support Support
	device  Device

	keys       Keys
	protect    bool
	period     uint16 // lease, seconds
	violations uint16
	lease      Lease
	traps      mad.ClassPortInfo // of which only where traps go is used

	// Of class 0x0C.
	nodeKeys       Keys // that other switches must show
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

// Device is the device of an agent.
type Device struct {
	Switch bool
	Ports  int // port 0 included
}

// NewAgent returns the agent of a class in a device.
func NewAgent(c mad.Class, s Support, d Device) *Agent {
	class, _ := mad.LookupKeyClass(c)
	return &Agent{class: class, Support: s, device: d}
}

// Class is the class of the agent.
func (a *Agent) Class() *mad.KeyClass { return &a.class }

// Verdict is what an agent decides on a MAD.
type Verdict struct {
	Access Access
	Wrong  bool        // the key is wrong, which a trap reports
	Trap   mad.TrapNum // of a wrong key
}

// Check decides on a MAD from a LID: whether its sender shows the right key, and what access a sender without it has.
func (a *Agent) Check(m *mad.MAD, from ib.LID, now time.Duration) Verdict {
	a.Lapse(now)
	method, attr, offered := m.Method(), m.Attr(), Offered(m)
	switch {
	case a.Support == Open:
		return Verdict{Access: Full}
	case method == mad.MethodSend && a.class.Class == mad.ClassVendorN2N:
		return a.checkNode(m, from)
	case method != mad.MethodGet && method != mad.MethodSet && method != mad.MethodTrapRepress:
		return Verdict{Access: Full}
	case a.keys.Accept(offered):
		a.lease.Running = false
		return Verdict{Access: Full}
	case method == mad.MethodGet && !a.protect && (attr == a.class.KeyAttr || attr == mad.AttrClassPortInfo):
		return Verdict{Access: Full}
	}
	if a.violations < math.MaxUint16 {
		a.violations++
	}
	a.lease.Start(now, a.period)
	return Verdict{None, true, mad.TrapKeyViolation}
}

// checkNode decides on a message of another switch: it must show the node key of this one. The agent takes it and sends no
// answer. That such MADs have method Send is [sim].
func (a *Agent) checkNode(m *mad.MAD, from ib.LID) Verdict {
	if a.nodeKeys.Accept(Offered(m)) {
		a.notified++
		return Verdict{Access: Taken}
	}
	if a.nodeViolations < math.MaxUint16 {
		a.nodeViolations++
	}
	number := mad.TrapKeyViolation
	if a.isNeighbor(from) {
		number = mad.TrapKeyMisconfiguration // it should know better
	}
	return Verdict{Taken, true, number}
}

func (a *Agent) isNeighbor(lid ib.LID) bool {
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

// Lapse takes protection away when the lease has run out: the key stays, and
// can be read.
func (a *Agent) Lapse(now time.Duration) {
	if a.lease.Expired(now) {
		a.protect = false
	}
}

// Serve answers a Get or Set whose sender may have an answer.
func (a *Agent) Serve(m *mad.MAD) mad.Status {
	if m.ClassVersion() != a.class.Version {
		return mad.StatusUnsupportedVersion
	}
	data, set := a.class.Attribute(m), m.Method() == mad.MethodSet
	switch {
	case m.Attr() == mad.AttrClassPortInfo:
		return a.classPortInfo(data, set)
	case m.Attr() == a.class.KeyAttr && a.Support != Open:
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
func (a *Agent) classPortInfo(data []byte, set bool) mad.Status {
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
	if a.Support >= Keyed {
		answer.CapabilityMask |= a.class.KeyCap
	}
	if a.Support == DualKeyed {
		answer.CapabilityMask |= a.class.DualCap
	}
	clear(data)
	must(mad.Encode(data, &answer))
	return mad.StatusOK
}

// keyInfo answers the attribute that holds the key. A Set was checked against
// the old key, and its answer shows the new one.
func (a *Agent) keyInfo(data []byte, set bool) mad.Status {
	if set {
		var want mad.N2NKeyInfo // the three have the same places
		must(mad.Decode(data, &want))
		a.keys.Set(want.ManagerKey.Reveal(), a.Support == DualKeyed)
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
		ManagerKey: ib.NewMKey(a.keys.Current), ProtectBit: a.protect, LeasePeriod: a.period,
		Violations: a.violations, NodeKeyViolations: a.nodeViolations,
	}))
	return mad.StatusOK
}

// congestion answers the attributes of congestion control that need no rules.
func (a *Agent) congestion(m *mad.MAD, data []byte, set bool) mad.Status {
	sw := a.device.Switch
	switch attr := m.Attr(); {
	case attr == mad.CCAttrCongestionInfo && !set:
		clear(data)
		must(mad.Encode(data, &mad.CongestionInfo{ControlTableCap: 1}))
		return mad.StatusOK
	case attr == mad.CCAttrEnhancedCongestionInfo && !set:
		info := mad.EnhancedCongestionInfo{Ver0Supported: true}
		if a.Support == DualKeyed {
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
func (a *Agent) keep(m *mad.MAD, data []byte, set bool) mad.Status {
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
func (a *Agent) neighborsInfo(block uint32, data []byte, set bool) mad.Status {
	if !a.device.Switch || block >= maxNeighborBlocks || int(block)*mad.N2NNeighborsPerBlock >= a.device.Ports {
		return mad.StatusInvalidField
	}
	if set {
		var want mad.N2NNeighborsInfo
		must(mad.Decode(data, &want))
		a.neighbors[block] = &want
		if block == 0 {
			a.nodeKeys.Set(want.Neighbor[0].Key.Reveal(), a.Support == DualKeyed)
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

// EachNeighbor calls a function for each entry of NeighborsInfo but that of the switch itself.
func (a *Agent) EachNeighbor(do func(*mad.N2NNeighbor)) {
	for block, info := range a.neighbors {
		for i := range neighborsIn(info) {
			if to := &info.Neighbor[i]; to.LID != 0 && (block != 0 || i != 0) {
				do(to)
			}
		}
	}
}

// Traps is where the traps of the class go.
func (a *Agent) Traps() *mad.ClassPortInfo { return &a.traps }

// Setting returns the last value that was set for an attribute that is only kept; nil if there is none.
func (a *Agent) Setting(attr mad.AttrID, mod uint32) []byte {
	return slices.Clone(a.settings[setting{attr, mod}])
}

// State is the state of a device for a management class with a key.
type State struct {
	Key            ib.MKey // the current one
	Previous       ib.MKey // also accepted; none if the current one is confirmed
	Protect        bool
	LeasePeriod    uint16 // seconds
	Violations     uint16
	NodeViolations uint16 // class 0x0C
	Notified       uint64 // class 0x0C: MADs of neighbours that showed the right key
}

// State returns the state at a time.
func (a *Agent) State(now time.Duration) State {
	a.Lapse(now)
	return State{
		Key: ib.NewMKey(a.keys.Current), Previous: ib.NewMKey(a.keys.Previous), Protect: a.protect, LeasePeriod: a.period,
		Violations: a.violations, NodeViolations: a.nodeViolations, Notified: a.notified,
	}
}

// Key is the current key.
func (a *Agent) Key() ib.MKey { return ib.NewMKey(a.keys.Current) }

// Refused is a MAD with a wrong key, for a notice.
type Refused struct {
	MAD  *mad.MAD
	From ib.LID
	QP   uint32
}

// Offsets of the key in the data of a notice.
const (
	ccKeyOffset = 208 / 8 // mad.NoticeKeyCC
	vsKeyOffset = 192 / 8 // mad.NoticeKeyVS
)

// Notice writes the notice of a MAD with a wrong key that a device of a LID and a type refused. It copies the bytes of the key:
// an ib.MKey of each wrong key takes many times as long as the rest of the notice.
func (a *Agent) Notice(data *[mad.DataSize]byte, number mad.TrapNum, lid ib.LID, typ ib.NodeType, r Refused) {
	m, head := r.MAD, mad.NoticeHeader{Type: mad.NoticeSecurity, IssuerLID: lid}
	if a.class.Class == mad.ClassCongestionControl {
		head.IsGeneric, head.ProducerType, head.TrapNumber = true, uint32(typ), number
		must(mad.Encode(data[:], &mad.NoticeKeyCC{
			NoticeHeader: head, SLID: r.From, Method: m.Method(), AttributeID: m.Attr(), AttributeModifier: m.Mod(),
			QP: r.QP,
		}))
		copy(data[ccKeyOffset:], m.KeyBytes())
		return
	}
	head.ProducerType = mad.OUINVIDIA // a vendor's notice [sim]
	must(mad.Encode(data[:], &mad.NoticeKeyVS{
		NoticeHeader: head, SLID: r.From, Method: m.Method(), AttributeID: m.Attr(), AttributeModifier: m.Mod(),
		QP: r.QP, TrapNumberInPayload: uint16(number),
	}))
	copy(data[vsKeyOffset:], m.KeyBytes())
}

// must panics on an error that cannot occur: the buffers have the size of the attribute.
func must(err error) {
	if err != nil {
		panic("guard: " + err.Error())
	}
}
