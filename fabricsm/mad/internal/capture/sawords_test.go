package capture

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// The words saquery of infiniband-diags 44.0 uses for our fields, in its order, by
// attribute. The label is the call.
var saWords = map[mad.AttrID]func(label string, v any) []string{
	mad.AttrClassPortInfo:             words(cpiWords),
	mad.AttrNodeRecord:                words(nodeWords),
	mad.AttrPortInfoRecord:            portWords,
	mad.AttrSLtoVLRecord:              words(slvlWords),
	mad.AttrSwitchInfoRecord:          words(switchWords),
	mad.AttrLinearForwardingRecord:    words(lftWords),
	mad.AttrMulticastForwardingRecord: words(mftWords),
	mad.AttrSMInfoRecord:              words(smWords),
	mad.AttrLinkRecord:                words(linkRecordWords),
	mad.AttrGUIDInfoRecord:            words(guidWords),
	mad.AttrServiceRecord:             words(serviceWords),
	mad.AttrPKeyTableRecord:           words(pkeyWords),
	mad.AttrPathRecord:                words(pathWords),
	mad.AttrVLArbitrationRecord:       words(arbWords),
	mad.AttrMCMemberRecord:            memberWords,
	mad.AttrInformInfoRecord:          words(informWords),
}

func words[T any](f func(v *T) []string) func(string, any) []string {
	return func(_ string, v any) []string { return f(v.(*T)) }
}

// lines pairs names and values.
func lines(pairs ...any) (out []string) {
	for p := range slices.Chunk(pairs, 2) {
		out = append(out, fmt.Sprint(p[0])+" "+fmt.Sprint(p[1]))
	}
	return out
}

func hexa(v any) string { return fmt.Sprintf("0x%X", v) }

// joined puts a value together from fields that saquery prints as one number: pairs of
// value and width in bits.
func joined(parts ...uint64) (v uint64) {
	for p := range slices.Chunk(parts, 2) {
		v = v<<p[1] | p[0]
	}
	return v
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func cpiWords(v *mad.ClassPortInfo) []string {
	return lines(
		"Base version", v.BaseVersion, "Class version", v.ClassVersion, "Capability mask", fmt.Sprintf("0x%04X", v.CapabilityMask),
		"Capability mask 2", fmt.Sprintf("0x%08X", v.CapabilityMask2), "Response time value", fmt.Sprintf("0x%02X", uint8(v.RespTimeValue)),
		"Redirect GID", v.RedirectGID, "Redirect TC/SL/FL", fmt.Sprintf("0x%08X", joined(uint64(v.RedirectTC), 8, uint64(v.RedirectSL), 4, uint64(v.RedirectFL), 20)),
		"Redirect LID", v.RedirectLID, "Redirect PKey", fmt.Sprintf("0x%04X", uint16(v.RedirectPKey)), "Redirect QP", fmt.Sprintf("0x%08X", v.RedirectQP),
		"Redirect QKey", fmt.Sprintf("0x%08X", v.RedirectQKey),
		"Trap GID", v.TrapGID, "Trap TC/SL/FL", fmt.Sprintf("0x%08X", joined(uint64(v.TrapTC), 8, uint64(v.TrapSL), 4, uint64(v.TrapFL), 20)),
		"Trap LID", v.TrapLID, "Trap PKey", fmt.Sprintf("0x%04X", uint16(v.TrapPKey)),
		"Trap HL/QP", fmt.Sprintf("0x%08X", joined(uint64(v.TrapHL), 8, uint64(v.TrapQP), 24)), "Trap QKey", fmt.Sprintf("0x%08X", v.TrapQKey))
}

func nodeWords(v *mad.NodeRecord) []string {
	return lines(
		"lid", v.LID, "reserved", "0x0", "base_version", hexa(v.BaseVersion), "class_version", hexa(v.ClassVersion),
		"node_type", map[ib.NodeType]string{ib.NodeCA: "Channel Adapter", ib.NodeSwitch: "Switch", ib.NodeRouter: "Router"}[v.NodeType],
		"num_ports", v.NumPorts, "sys_guid", v.SystemImageGUID, "node_guid", v.NodeGUID, "port_guid", v.PortGUID,
		"partition_cap", hexa(v.PartitionCap), "device_id", hexa(v.DeviceID), "revision", hexa(v.Revision), "port_num", v.LocalPortNum,
		"vendor_id", hexa(v.VendorID), "NodeDescription", v.NodeDescription)
}

// portWords are few when saquery looks for SMs, else all of PortInfo, in the order of
// its own, which is that of the names here.
func portWords(label string, a any) []string {
	v := a.(*mad.PortInfoRecord)
	if label == "-s" {
		return lines("EndPortLid", v.EndportLID, "PortNum", v.PortNum, "base_lid", v.LID, "master_sm_base_lid", v.MasterSMLID,
			"capability_mask", hexa(uint32(v.CapabilityMask)))
	}
	out := lines("EndPortLid", v.EndportLID, "PortNum", v.PortNum, "Options", fmt.Sprintf("0x%x", v.Options))
	info := portInfoWords(&v.PortInfo)
	for _, name := range strings.Fields(portInfoOrder) {
		out = append(out, name+" "+info[name])
		delete(info, name)
	}
	return append(out, slices.Sorted(maps.Keys(info))...)
}

const portInfoOrder = `GidPrefix Lid SMLid CapMask DiagCode MkeyLeasePeriod LocalPort LinkWidthEnabled LinkWidthSupported LinkWidthActive
	LinkSpeedSupported LinkState PhysLinkState LinkDownDefState ProtectBits LMC LinkSpeedActive LinkSpeedEnabled NeighborMTU SMSL VLCap
	InitType VLHighLimit VLArbHighCap VLArbLowCap InitReply MtuCap VLStallCount HoqLife OperVLs PartEnforceInb PartEnforceOutb
	FilterRawInb FilterRawOutb MkeyViolations PkeyViolations QkeyViolations GuidCap ClientReregister McastPkeyTrapSuppressionEnabled
	SubnetTimeout RespTimeVal LocalPhysErr OverrunErr MaxCreditHint RoundTrip CapabilityMask2
	LinkSpeedExtActive LinkSpeedExtSupported LinkSpeedExtEnabled`

func slvlWords(v *mad.SLtoVLMappingTableRecord) []string {
	return append(lines("LID", v.LID, "InPort", v.InputPortNum, "OutPort", v.OutputPortNum), "VL:"+sl2vlWords(&v.SLtoVLMappingTable)[0])
}

func switchWords(v *mad.SwitchInfoRecord) []string {
	return lines(
		"LID", v.LID, "LinearFDBCap", hexa(v.LinearFDBCap), "RandomFDBCap", hexa(v.RandomFDBCap), "MulticastFDBCap", hexa(v.MulticastFDBCap),
		"LinearFDBTop", hexa(uint16(v.LinearFDBTop)), "DefaultPort", v.DefaultPort, "DefaultMulticastPrimaryPort", v.DefaultMulticastPrimaryPort,
		"DefaultMulticastNotPrimaryPort", v.DefaultMulticastNotPrimaryPort,
		"LifeTimeValue/PortStateChange/OpSL2VL", hexa(joined(uint64(v.LifeTimeValue), 5, bit(v.PortStateChange), 1, uint64(v.OptimizedSLtoVLMappingProgramming), 2)),
		"LIDsPerPort", hexa(v.LIDsPerPort), "PartitionEnforcementCap", hexa(v.PartitionEnforcementCap),
		"flags", hexa(joined(bit(v.InboundEnforcementCap), 1, bit(v.OutboundEnforcementCap), 1, bit(v.FilterRawInboundCap), 1, bit(v.FilterRawOutboundCap), 1, bit(v.EnhancedPort0), 1, 0, 3)),
		"MulticastFDBTop", hexa(uint16(v.MulticastFDBTop)))
}

func lftWords(v *mad.LinearForwardingTableRecord) []string {
	out := lines("LID", v.LID, "Block", v.BlockNum)
	for i, port := range v.Port {
		out = append(out, fmt.Sprintf("%d\t%d", int(v.BlockNum)*mad.LIDsPerBlock+i, port))
	}
	return out
}

func mftWords(v *mad.MulticastForwardingTableRecord) []string {
	out := lines("LID", v.LID, "Position", v.Position, "Block", v.BlockNum)
	for i, ports := range v.PortMask {
		out = append(out, fmt.Sprintf("0x%04x\t0x%04x", 0xC000+int(v.BlockNum)*mad.MLIDsPerBlock+i, uint16(ports)))
	}
	return out
}

func smWords(v *mad.SMInfoRecord) []string {
	return lines("LID", v.LID, "GUID", v.GUID, "SM_Key", fmt.Sprintf("0x%016x", v.SMKey.Reveal()), "ActCount", v.ActCount, "Priority", v.Priority, "SMState", uint8(v.SMState))
}

func linkRecordWords(v *mad.LinkRecord) []string {
	return lines("FromLID", v.FromLID, "FromPort", v.FromPort, "ToPort", v.ToPort, "ToLID", v.ToLID)
}

func guidWords(v *mad.GUIDInfoRecord) []string {
	out := lines("LID", v.LID, "Block", v.BlockNum)
	for i, g := range v.GUID {
		out = append(out, fmt.Sprintf("GUID %d %v", i, g))
	}
	return out
}

func serviceWords(v *mad.ServiceRecord) []string {
	key := v.ServiceKey.Reveal()
	out := lines("ServiceID", v.ServiceID, "ServiceGID", v.ServiceGID, "ServiceP_Key", hexa(uint16(v.ServicePKey)), "ServiceLease", hexa(v.ServiceLease),
		"ServiceKey", "0x"+hex.EncodeToString(key[:]), "ServiceName", strings.TrimSpace(v.Name()))
	for i, d := range v.ServiceData8 {
		out = append(out, fmt.Sprintf("ServiceData8.%d 0x%X", i+1, d))
	}
	for i, d := range v.ServiceData16 {
		out = append(out, fmt.Sprintf("ServiceData16.%d 0x%X", i+1, d))
	}
	for i, d := range v.ServiceData32 {
		out = append(out, fmt.Sprintf("ServiceData32.%d 0x%X", i+1, d))
	}
	for i, d := range v.ServiceData64 {
		out = append(out, fmt.Sprintf("ServiceData64.%d 0x%016x", i+1, d))
	}
	return out
}

// pkeyWords has the block as saquery prints it, with its bytes the wrong way round.
func pkeyWords(v *mad.PKeyTableRecord) []string {
	out := lines("LID", v.LID, "Port", v.PortNum, "Block", bits.ReverseBytes16(v.BlockNum))
	for row := range slices.Chunk(v.PKey[:], 8) {
		out = append(out, strings.Join(strs(row), " "))
	}
	return out
}

func pathWords(v *mad.PathRecord) []string {
	return lines(
		"service_id", v.ServiceID, "dgid", v.DGID, "sgid", v.SGID, "dlid", v.DLID, "slid", v.SLID,
		"hop_flow_raw", hexa(joined(bit(v.RawTraffic), 1, 0, 3, uint64(v.FlowLabel), 20, uint64(v.HopLimit), 8)), "tclass", hexa(v.TClass),
		"num_path_revers", hexa(joined(bit(v.Reversible), 1, uint64(v.NumbPath), 7)), "pkey", hexa(uint16(v.PKey)), "qos_class", hexa(v.QoSClass), "sl", hexa(v.SL),
		"mtu", selected(v.MTUSelector, uint8(v.MTU)), "rate", selected(v.RateSelector, uint8(v.Rate)), "pkt_life", selected(v.PacketLifeTimeSelector, uint8(v.PacketLifeTime)),
		"preference", hexa(v.Preference), "resv2", "0x000000000000")
}

// selected is a selector and its value in one byte.
func selected(s mad.Selector, v uint8) string { return hexa(joined(uint64(s), 2, uint64(v), 6)) }

func arbWords(v *mad.VLArbitrationTableRecord) []string {
	out := lines("LID", v.LID, "Port", v.OutputPortNum, "Block", uint8(v.BlockNum))
	for row := range slices.Chunk(v.Entry[:], 16) {
		vls, weights := "VL    :", "Weight:"
		for _, e := range row {
			vls += fmt.Sprintf("%2d|", e.VL)
			weights += fmt.Sprintf("%2d|", e.Weight)
		}
		out = append(out, vls, weights)
	}
	return out
}

func memberWords(label string, a any) []string {
	v := a.(*mad.MCMemberRecord)
	mtu, rate := selected(v.MTUSelector, uint8(v.MTU)), selected(v.RateSelector, uint8(v.Rate))
	if label == "-g" {
		return lines("MGID", v.MGID, "Mlid", hexa(uint16(v.MLID)), "Mtu", mtu, "pkey", hexa(uint16(v.PKey)), "Rate", rate, "SL", hexa(v.SL))
	}
	low := strings.ToLower
	return lines(
		"MGID", v.MGID, "PortGid", v.PortGID, "qkey", low(hexa(v.QKey)), "mlid", low(hexa(uint16(v.MLID))), "mtu", low(mtu), "TClass", low(hexa(v.TClass)),
		"pkey", low(hexa(uint16(v.PKey))), "rate", low(rate), "pkt_life", low(selected(v.PacketLifeTimeSelector, uint8(v.PacketLifeTime))),
		"SL", low(hexa(v.SL)), "FlowLabel", low(hexa(v.FlowLabel)), "HopLimit", low(hexa(v.HopLimit)), "Scope", low(hexa(v.Scope)),
		// saquery looks for ProxyJoin in the lowest bit of its byte, which is reserved.
		"JoinState", low(hexa(uint8(v.JoinState))), "ProxyJoin", "0x0")
}

func informWords(v *mad.InformInfoRecord) []string {
	number, producer := "trap_num "+fmt.Sprint(uint16(v.TrapNumber)), "node_type"
	if v.IsGeneric == 0 {
		number, producer = "dev_id "+hexa(uint16(v.TrapNumber)), "vendor_id"
	}
	out := lines("SubscriberGID", v.SubscriberGID, "SubscriberEnum", hexa(v.Enum), "gid", v.GID, "lid_range_begin", v.LIDRangeBegin, "lid_range_end", v.LIDRangeEnd,
		"is_generic", hexa(v.IsGeneric), "subscribe", hexa(v.Subscribe), "trap_type", hexa(v.Type))
	return append(append(out, number), lines("qpn", fmt.Sprintf("0x%06X", v.QPN), "resp_time_val", hexa(uint8(v.RespTimeValue)), producer, fmt.Sprintf("0x%06X", v.ProducerType))...)
}
