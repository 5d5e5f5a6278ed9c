package sim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

func TestPortStates(t *testing.T) {
	type step struct {
		state ib.PortState
		phys  ib.PhysState
		want  mad.Status
		after ib.PortState
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"up in two steps", []step{{ib.PortArmed, 0, 0, ib.PortArmed}, {ib.PortActive, 0, 0, ib.PortActive}}},
		{"Init to Active is refused", []step{{ib.PortActive, 0, mad.StatusInvalidField, ib.PortInit}}},
		{"Init cannot be asked for", []step{{ib.PortInit, 0, mad.StatusInvalidField, ib.PortInit}}},
		{"Armed twice is refused", []step{{ib.PortArmed, 0, 0, ib.PortArmed}, {ib.PortArmed, 0, mad.StatusInvalidField, ib.PortArmed}}},
		{"unknown state", []step{{ib.PortActiveDefer, 0, mad.StatusInvalidField, ib.PortInit}}},
		{"Down trains again", []step{{ib.PortArmed, 0, 0, ib.PortArmed}, {ib.PortDown, 0, 0, ib.PortInit}}},
		{"LinkUp cannot be asked for", []step{{0, ib.PhysLinkUp, mad.StatusInvalidField, ib.PortInit}}},
		{"Disabled and back", []step{
			{0, ib.PhysDisabled, 0, ib.PortDown},
			{ib.PortArmed, 0, mad.StatusInvalidField, ib.PortDown},
			{0, ib.PhysPolling, 0, ib.PortInit},
		}},
		{"both states at once", []step{{ib.PortArmed, ib.PhysDisabled, mad.StatusInvalidField, ib.PortInit}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{})
			s := station(t, f, "sm", false)
			for i, st := range tt.steps {
				got := portSet(t, s, 2, func(pi *mad.PortInfo) { pi.PortState, pi.PortPhysicalState = st.state, st.phys }, 1)
				if got != st.want {
					t.Errorf("step %d: status %v, want %v", i, got, st.want)
				}
				if now := f.PortInfo("leaf1", 2).PortState; now != st.after {
					t.Errorf("step %d: port is %v, want %v", i, now, st.after)
				}
				far := f.PortInfo("h1", 1).PortState
				if (far == ib.PortDown) != (st.after == ib.PortDown) {
					t.Errorf("step %d: port is %v, but its peer is %v", i, st.after, far)
				}
			}
		})
	}
}

// Unlike ibsim, the simulator keeps these fields.
func TestPortInfoIsKept(t *testing.T) {
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", false)
	if status := portSet(t, s, 1, func(pi *mad.PortInfo) {
		pi.MKey, pi.MKeyLeasePeriod, pi.MKeyProtectBits = ib.NewMKey(7), 60, 2
		pi.LID, pi.LMC, pi.MasterSMLID, pi.MasterSMSL = 5, 1, 9, 3
		pi.NeighborMTU, pi.OperationalVLs, pi.VLHighLimit, pi.VLStallCount, pi.HOQLife = ib.MTU2048, 2, 4, 5, 6
		pi.SubnetTimeOut, pi.LocalPhyErrors, pi.OverrunErrors = 20, 3, 2
		pi.ClientReregister = true
		pi.PartitionEnforcementInbound = true // not on an HCA
		pi.CapabilityMask = 0                 // read only
	}, 1, 2); status != mad.StatusOK {
		t.Fatal(status)
	}
	host := f.PortInfo("h1", 1)
	want := mad.PortInfo{
		MKey: ib.NewMKey(7), MKeyLeasePeriod: 60, MKeyProtectBits: 2, LID: 5, LMC: 1, MasterSMLID: 9, MasterSMSL: 3,
		NeighborMTU: ib.MTU2048, OperationalVLs: 2, VLHighLimit: 4, VLStallCount: 5, HOQLife: 6,
		SubnetTimeOut: 20, LocalPhyErrors: 3, OverrunErrors: 2,
	}
	ignore := cmpopts.IgnoreFields(mad.PortInfo{}, "GIDPrefix", "CapabilityMask", "CapabilityMask2", "LocalPortNum",
		"LinkWidthEnabled", "LinkWidthSupported", "LinkWidthActive", "LinkSpeedSupported", "LinkSpeedActive", "LinkSpeedEnabled",
		"LinkSpeedExtSupported", "LinkSpeedExtActive", "LinkSpeedExtEnabled", "PortState", "PortPhysicalState", "LinkDownDefaultState",
		"VLCap", "MTUCap", "VLArbitrationHighCap", "VLArbitrationLowCap", "GUIDCap", "RespTimeValue")
	if diff := cmp.Diff(host, want, ignore, cmp.AllowUnexported(ib.MKey{})); diff != "" {
		t.Errorf("HCA port: got-, want+\n%s", diff)
	}
	if !host.CapabilityMask.Has(mad.IsTrapSupported) {
		t.Error("the capability mask was overwritten")
	}

	if status := portSet(t, s, 2, func(pi *mad.PortInfo) {
		pi.PartitionEnforcementInbound, pi.PartitionEnforcementOutbound = true, true
		pi.LID = 77 // not on an external port
	}, 1); status != mad.StatusOK {
		t.Fatal(status)
	}
	sw := f.PortInfo("leaf1", 2)
	if !sw.PartitionEnforcementInbound || !sw.PartitionEnforcementOutbound || sw.LID != 0 {
		t.Errorf("switch port: enforcement %v %v, LID %v", sw.PartitionEnforcementInbound, sw.PartitionEnforcementOutbound, sw.LID)
	}
}

func TestPortInfoRefusesWhatIsOutOfRange(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*mad.PortInfo)
		port   uint32
		route  []ib.PortNum
	}{
		{"multicast LID", func(pi *mad.PortInfo) { pi.LID = ib.MinMulticastLID }, 1, []ib.PortNum{1, 2}},
		{"LIDs beyond the end", func(pi *mad.PortInfo) { pi.LID, pi.LMC = ib.MaxUnicastLID, 1 }, 1, []ib.PortNum{1, 2}},
		{"LMC on port 0", func(pi *mad.PortInfo) { pi.LID, pi.LMC = 2, 1 }, 0, []ib.PortNum{1}},
		{"MTU above the cap", func(pi *mad.PortInfo) { pi.NeighborMTU = 6 }, 1, []ib.PortNum{1, 2}},
		{"no MTU", func(pi *mad.PortInfo) { pi.NeighborMTU = 0 }, 1, []ib.PortNum{1, 2}},
		{"VLs above the cap", func(pi *mad.PortInfo) { pi.OperationalVLs = 5 }, 1, []ib.PortNum{1, 2}},
		{"width not supported", func(pi *mad.PortInfo) { pi.LinkWidthEnabled = 32 }, 1, []ib.PortNum{1, 2}},
		{"speed not supported", func(pi *mad.PortInfo) { pi.LinkSpeedEnabled = 8 }, 1, []ib.PortNum{1, 2}},
		{"extended speed not supported", func(pi *mad.PortInfo) { pi.LinkSpeedExtEnabled = 16 }, 1, []ib.PortNum{1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{})
			s := station(t, f, "sm", false)
			name := map[int]string{1: "leaf1", 2: "h1"}[len(tt.route)]
			before := f.PortInfo(name, ib.PortNum(tt.port))
			if status := portSet(t, s, ib.PortNum(tt.port), tt.change, tt.route...); status != mad.StatusInvalidField {
				t.Errorf("status %v, want %v", status, mad.StatusInvalidField)
			}
			if diff := cmp.Diff(f.PortInfo(name, ib.PortNum(tt.port)), before, cmp.AllowUnexported(ib.MKey{})); diff != "" {
				t.Errorf("the refused Set changed something:\n%s", diff)
			}
		})
	}
}

func TestTablesAreKept(t *testing.T) {
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", false)
	keys := mad.PKeyTable{}
	keys.PKey[0], keys.PKey[31] = 0x7fff, 0x8005
	for _, at := range []struct {
		mod   uint32
		route []ib.PortNum
	}{
		{mad.PKeyTableMod(0, 1), []ib.PortNum{1, 2}},
		{mad.PKeyTableMod(2, 1), []ib.PortNum{1}},
	} {
		if status, back := set(t, s, mad.AttrPKeyTable, at.mod, keys, at.route...); status != mad.StatusOK || back != keys {
			t.Errorf("Set of P_Keys %#x: %v %v", at.mod, status, back)
		}
		if got := get[mad.PKeyTable](t, s, mad.AttrPKeyTable, at.mod, at.route...); got != keys {
			t.Errorf("P_Keys %#x read back: %v", at.mod, got)
		}
	}
	if diff := cmp.Diff(f.PKeys("leaf1", 2), []ib.PKey{0xffff, 0x7fff, 0x8005}); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}

	vl := mad.SLtoVLMappingTable{VL: [16]ib.VL{1, 2, 3, 15: 15}}
	set(t, s, mad.AttrSLtoVLMappingTable, mad.SLtoVLMod(1, 2), vl, 1)
	if got := get[mad.SLtoVLMappingTable](t, s, mad.AttrSLtoVLMappingTable, mad.SLtoVLMod(1, 2), 1); got != vl {
		t.Errorf("SL to VL read back: %v", got)
	}
	if got := get[mad.SLtoVLMappingTable](t, s, mad.AttrSLtoVLMappingTable, mad.SLtoVLMod(2, 1), 1); got == vl {
		t.Error("another pair of ports has the same table")
	}

	arb := get[mad.VLArbitration](t, s, mad.AttrVLArbitration, mad.VLArbitrationMod(mad.VLArbLow0, 2), 1)
	arb.Entry[3].Weight = 99
	set(t, s, mad.AttrVLArbitration, mad.VLArbitrationMod(mad.VLArbLow0, 2), arb, 1)
	if got := get[mad.VLArbitration](t, s, mad.AttrVLArbitration, mad.VLArbitrationMod(mad.VLArbLow0, 2), 1); got != arb {
		t.Errorf("VL arbitration read back: %v", got)
	}

	mft := mad.MulticastForwardingTable{}
	mft.PortMask[4] = 0x1E
	set(t, s, mad.AttrMulticastForwardingTable, mad.MulticastForwardingMod(0, 3), mft, 1)
	if got := get[mad.MulticastForwardingTable](t, s, mad.AttrMulticastForwardingTable, mad.MulticastForwardingMod(0, 3), 1); got != mft {
		t.Errorf("multicast forwarding read back: %v", got)
	}

	guids := mad.GUIDInfo{}
	guids.GUID[0], guids.GUID[1] = 1, 2
	if _, back := set(t, s, mad.AttrGUIDInfo, 0, guids, 1, 2); back.GUID[0] != 0x0020000000000101 || back.GUID[1] != 2 {
		t.Errorf("GUIDInfo after a Set: %v", back)
	}
}

func TestUnsupportedRequests(t *testing.T) {
	const invalid, unsupported = mad.StatusInvalidField, mad.StatusUnsupportedMethodAttr
	for _, tt := range []struct {
		name  string
		h     mad.Header
		route []ib.PortNum
		want  mad.Status
	}{
		{"unknown attribute", mad.Header{Method: mad.MethodGet, Attr: 0x7777}, []ib.PortNum{1}, unsupported},
		{"Set of NodeInfo", mad.Header{Method: mad.MethodSet, Attr: mad.AttrNodeInfo}, []ib.PortNum{1}, unsupported},
		{"Set of NodeDescription", mad.Header{Method: mad.MethodSet, Attr: mad.AttrNodeDescription}, []ib.PortNum{1}, unsupported},
		{"SwitchInfo of an HCA", mad.Header{Method: mad.MethodGet, Attr: mad.AttrSwitchInfo}, nil, unsupported},
		{"forwarding of an HCA", mad.Header{Method: mad.MethodGet, Attr: mad.AttrLinearForwardingTable}, nil, unsupported},
		{"multicast forwarding of an HCA", mad.Header{Method: mad.MethodGet, Attr: mad.AttrMulticastForwardingTable}, nil, unsupported},
		{"PortInfo of a port that is not there", mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, Mod: 9}, []ib.PortNum{1}, invalid},
		{"P_Key block beyond the table", mad.Header{Method: mad.MethodGet, Attr: mad.AttrPKeyTable, Mod: 2}, nil, invalid},
		{"P_Key block of port 0 beyond its table", mad.Header{Method: mad.MethodGet, Attr: mad.AttrPKeyTable, Mod: 1}, []ib.PortNum{1}, invalid},
		{"GUID block beyond the table", mad.Header{Method: mad.MethodGet, Attr: mad.AttrGUIDInfo, Mod: 4}, nil, invalid},
		{"forwarding block beyond the table", mad.Header{Method: mad.MethodSet, Attr: mad.AttrLinearForwardingTable, Mod: 768}, []ib.PortNum{1}, invalid},
		{"forwarding block that wraps", mad.Header{Method: mad.MethodSet, Attr: mad.AttrLinearForwardingTable, Mod: 1 << 26}, []ib.PortNum{1}, invalid},
		{"multicast block beyond the table", mad.Header{Method: mad.MethodSet, Attr: mad.AttrMulticastForwardingTable, Mod: 32}, []ib.PortNum{1}, invalid},
		{"multicast position beyond the ports", mad.Header{Method: mad.MethodSet, Attr: mad.AttrMulticastForwardingTable, Mod: 1 << 28}, []ib.PortNum{1}, invalid},
		{"SL to VL wildcard", mad.Header{Method: mad.MethodSet, Attr: mad.AttrSLtoVLMappingTable, Mod: mad.SLtoVLAllInputs}, []ib.PortNum{1}, invalid},
		{"VL arbitration without a half", mad.Header{Method: mad.MethodGet, Attr: mad.AttrVLArbitration}, nil, invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{})
			in := only(t, station(t, f, "sm", false), directed(tt.h, tt.route...))
			if in.Undelivered || in.MAD.Status() != tt.want {
				t.Errorf("status %v, undelivered %v; want %v", in.MAD.Status(), in.Undelivered, tt.want)
			}
		})
	}
}

func TestSwitchInfo(t *testing.T) {
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", false)
	si := get[mad.SwitchInfo](t, s, mad.AttrSwitchInfo, 0, 1)
	if !si.PortStateChange || !si.InboundEnforcementCap || si.PartitionEnforcementCap != 64 {
		t.Errorf("a fresh switch: %+v", si)
	}
	si.LinearFDBTop, si.LifeTimeValue = 100, 18
	status, back := set(t, s, mad.AttrSwitchInfo, 0, si, 1)
	if status != mad.StatusOK || back.PortStateChange || back.LinearFDBTop != 100 || back.LifeTimeValue != 18 {
		t.Errorf("after a Set: %v %+v", status, back)
	}
	si.LinearFDBTop = ib.LID(si.LinearFDBCap)
	if status, back = set(t, s, mad.AttrSwitchInfo, 0, si, 1); status != mad.StatusInvalidField || back.LinearFDBTop != 100 {
		t.Errorf("top beyond the table: %v, top %v", status, back.LinearFDBTop)
	}
}
