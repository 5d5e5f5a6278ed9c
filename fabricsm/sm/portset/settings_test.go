package portset_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/topo"
)

// fabric is a host on port 1 of a switch.
type fabric struct {
	topo   topo.Builder
	sp, hp topo.PortID
	port   map[topo.PortID]*portset.Port
	si     mad.SwitchInfo
	lost   portset.Fields
	keys   bool
	held   bool
	closed bool
}

func newFabric() *fabric {
	f := &fabric{port: make(map[topo.PortID]*portset.Port), keys: true}
	sw := f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 1})
	host := f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	f.sp, f.hp = f.topo.PortOf(sw, 1), f.topo.PortOf(host, 1)
	f.topo.Connect(f.sp, f.hp)
	add := func(p topo.PortID, id topo.NodeID, num ib.PortNum, lid ib.LID) {
		pi := &mad.PortInfo{PortState: ib.PortInit, PortPhysicalState: ib.PhysLinkUp, MTUCap: ib.MTU2048, VLCap: 4}
		f.port[p] = &portset.Port{Info: pi, State: new(portset.State), Node: id, Num: num, LID: lid, IsRead: true}
	}
	add(f.topo.Node(sw).FirstPort, sw, 0, 2)
	add(f.sp, sw, 1, 0)
	add(f.hp, host, 1, 3)
	f.si = mad.SwitchInfo{PartitionEnforcementCap: 8, InboundEnforcementCap: true, OutboundEnforcementCap: true}
	return f
}

func (f *fabric) Port(p topo.PortID) portset.Port              { return *f.port[p] }
func (f *fabric) Switch(topo.NodeID) (*mad.SwitchInfo, bool)   { return &f.si, true }
func (f *fabric) NotKept(topo.NodeID) portset.Fields           { return f.lost }
func (f *fabric) LMC(topo.PortID) ib.LMC                       { return 0 }
func (f *fabric) SMLID() ib.LID                                { return 1 }
func (f *fabric) SMSL(topo.PortID) ib.SL                       { return 5 }
func (f *fabric) IsSibling(l ib.LID) bool                      { return l == 9 }
func (f *fabric) HighLimit(topo.PortID) (limit uint8, ok bool) { return 7, true }
func (f *fabric) CanMap(topo.PortID) bool                      { return false }
func (f *fabric) HasKeys(topo.PortID) bool                     { return f.keys }
func (f *fabric) IsWritten(topo.PortID) bool                   { return f.keys }
func (f *fabric) IsHeld(topo.PortID) bool                      { return f.held }
func (f *fabric) MayActivate(topo.PortID) bool                 { return !f.closed }
func (f *fabric) MayForward(topo.PortID) bool                  { return true }
func (f *fabric) settings(o portset.Options) *portset.Settings {
	c := &portpolicy.Config{MaxMTU: ib.MTU4096, MaxOperationalVLs: 3, HOQLife: 18, LeafHOQLife: 16, VLStallCount: 7, LeafVLStallCount: 6}
	r := portpolicy.New(&f.topo, c)
	o.Controls = controls.Strict{}
	s := portset.New(f, &f.topo, &r, c, o)
	return &s
}

// TestWant checks what an adapter and the switch port in front of it are to have.
func TestWant(t *testing.T) {
	f := newFabric()
	s := f.settings(portset.Options{})
	f.port[f.hp].Info.MKey = ib.MKey{}
	w, fields := s.Want(f.hp)
	if w.LID != 3 || w.MasterSMLID != 1 || w.MasterSMSL != 5 || w.NeighborMTU != ib.MTU2048 || w.OperationalVLs != 3 || w.VLHighLimit != 7 {
		t.Errorf("an adapter is to have %+v", w)
	}
	if fields&(portset.HOQLife|portset.Enforcement) != 0 || fields&portset.LID == 0 {
		t.Errorf("an adapter is judged by %v", fields)
	}
	w, fields = s.Want(f.sp)
	if !w.PartitionEnforcementInbound || !w.PartitionEnforcementOutbound || w.HOQLife != 16 || w.VLStallCount != 6 || w.LID != 0 {
		t.Errorf("a switch port is to have %+v", w)
	}
	if fields&portset.LID != 0 || fields&portset.Enforcement != portset.Enforcement {
		t.Errorf("a switch port is judged by %v", fields)
	}
	f.keys = false
	if w, _ = s.Want(f.sp); w.PartitionEnforcementInbound {
		t.Error("the enforcement bits are wanted before the table is written")
	}
	if !s.IsSettable(f.hp) || s.LaneCap(f.sp) != 1 || s.LaneCap(f.hp) != 4 {
		t.Errorf("settable %v, lanes %v and %v", s.IsSettable(f.hp), s.LaneCap(f.sp), s.LaneCap(f.hp))
	}
}

// TestNextState checks the steps from Init to Active, and who may stop them.
func TestNextState(t *testing.T) {
	f := newFabric()
	s := f.settings(portset.Options{})
	if got := s.NextState(f.sp, f); got != ib.PortArmed {
		t.Errorf("from Init to %v", got)
	}
	f.held = true
	if got := s.NextState(f.sp, f); got != ib.PortNop {
		t.Errorf("a port that is held goes to %v", got)
	}
	f.port[f.sp].Info.PortState = ib.PortArmed
	if got := s.NextState(f.sp, f); got != ib.PortNop {
		t.Errorf("without its peer a port goes to %v", got)
	}
	f.port[f.hp].Info.PortState = ib.PortArmed
	if got := s.NextState(f.sp, f); got != ib.PortActive {
		t.Errorf("from Armed to %v", got)
	}
	f.closed = true
	if got := s.NextState(f.sp, f); got != ib.PortNop {
		t.Errorf("before its host is confirmed a port goes to %v", got)
	}
}

// TestEnforcement checks what proves that a switch port checks P_Keys.
func TestEnforcement(t *testing.T) {
	f := newFabric()
	s, lax := f.settings(portset.Options{}), f.settings(portset.Options{Accepted: true})
	pt := f.port[f.sp]
	pt.Info.PartitionEnforcementInbound, pt.Info.PartitionEnforcementOutbound = true, true
	pt.State.Accept()
	pt.State.Show(true, false)
	if s.Enforces(f.sp) || !lax.Enforces(f.sp) || !s.BitsTold(f.sp) {
		t.Errorf("after a Set: enforces %v, %v", s.Enforces(f.sp), lax.Enforces(f.sp))
	}
	if lost := s.LostBits(f.sp, &mad.PortInfo{PortState: ib.PortInit}); lost != portset.Enforcement {
		t.Errorf("a Get without the bits loses %v", lost)
	}
	pt.State.Show(true, true)
	if !s.Enforces(f.sp) || s.BitsTold(f.sp) || s.ForgetsEnforcement(f.sp) {
		t.Error("a Get with the bits is no proof")
	}
	f.lost = portset.EnforcementInbound
	if why, known := s.CannotEnforce(pt.Node); why == "" || !known {
		t.Error("a switch that forgets the bits can enforce")
	}
	if f.si.PartitionEnforcementCap = 0; s.CanEnforce(f.sp) {
		t.Error("a switch without tables can enforce")
	}
}

// TestRenew checks when clients are asked to renew what they registered.
func TestRenew(t *testing.T) {
	f := newFabric()
	s := f.settings(portset.Options{})
	pt := f.port[f.hp]
	pt.Info.CapabilityMask = mad.IsClientReregistrationSupported
	pt.Info.PortState, pt.Info.MasterSMLID = ib.PortActive, 9
	if s.Renews(f.hp, portset.MasterSMLID, ib.PortNop) || s.MustRenew(f.hp) {
		t.Error("clients are asked after a sibling was master")
	}
	if !s.Renews(f.hp, portset.LID, ib.PortNop) || !s.MustRenew(f.hp) || s.Renews(f.sp, portset.LID, ib.PortNop) {
		t.Error("clients are not asked when their LID changed, or a switch is")
	}
	pt.State.Begin(portset.LID, ib.PortNop, true)
	if pt.State.Renewed(); s.MustRenew(f.hp) {
		t.Error("clients are asked twice")
	}
}

// TestState checks that Sets which change nothing are counted, and that a device is not remembered for fields that it needs.
func TestState(t *testing.T) {
	var s portset.State
	s.Begin(portset.HOQLife, ib.PortArmed, false)
	for range 4 {
		if s.Count() {
			t.Error("stuck too early")
		}
	}
	if !s.Count() {
		t.Error("never stuck")
	}
	if s.Restart(); s.IsStuck() {
		t.Error("stuck after a restart")
	}
	pi := &mad.PortInfo{PortState: ib.PortInit}
	if s.Moved(pi, portset.HOQLife) || !s.Moved(pi, 0) {
		t.Error("a Set that missed all moved the port, or one that missed nothing did not")
	}
	if got := portset.Learn(portset.LMC|portset.FilterRaw, portset.LMC, portset.LID|portset.HOQLife); got != portset.FilterRaw|portset.HOQLife {
		t.Errorf("learned %v", got)
	}
}
