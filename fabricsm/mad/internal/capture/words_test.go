package capture

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// The words infiniband-diags 44.0 use for our fields.

func nodeInfoWords(v *mad.NodeInfo) map[string]string {
	return map[string]string{
		"BaseVers": fmt.Sprint(v.BaseVersion), "ClassVers": fmt.Sprint(v.ClassVersion),
		"NodeType": map[ib.NodeType]string{ib.NodeCA: "Channel Adapter", ib.NodeSwitch: "Switch", ib.NodeRouter: "Router"}[v.NodeType],
		"NumPorts": fmt.Sprint(v.NumPorts), "SystemGuid": v.SystemImageGUID.String(), "Guid": v.NodeGUID.String(), "PortGuid": v.PortGUID.String(),
		"PartCap": fmt.Sprint(v.PartitionCap), "DevId": fmt.Sprintf("0x%04x", v.DeviceID), "Revision": fmt.Sprintf("0x%08x", v.Revision),
		"LocalPort": fmt.Sprint(v.LocalPortNum), "VendorId": fmt.Sprintf("0x%06x", v.VendorID),
	}
}

func switchInfoWords(v *mad.SwitchInfo) map[string]string {
	return map[string]string{
		"LinearFdbCap": fmt.Sprint(v.LinearFDBCap), "RandomFdbCap": fmt.Sprint(v.RandomFDBCap), "McastFdbCap": fmt.Sprint(v.MulticastFDBCap),
		"LinearFdbTop": fmt.Sprint(v.LinearFDBTop), "DefPort": fmt.Sprint(v.DefaultPort), "DefMcastPrimPort": fmt.Sprint(v.DefaultMulticastPrimaryPort),
		"DefMcastNotPrimPort": fmt.Sprint(v.DefaultMulticastNotPrimaryPort), "LifeTime": fmt.Sprint(uint8(v.LifeTimeValue)),
		"StateChange": yes(v.PortStateChange), "OptSLtoVLMapping": fmt.Sprint(v.OptimizedSLtoVLMappingProgramming),
		"LidsPerPort": fmt.Sprint(v.LIDsPerPort), "PartEnforceCap": fmt.Sprint(v.PartitionEnforcementCap),
		"InboundPartEnf": yes(v.InboundEnforcementCap), "OutboundPartEnf": yes(v.OutboundEnforcementCap),
		"FilterRawInbound": yes(v.FilterRawInboundCap), "FilterRawOutbound": yes(v.FilterRawOutboundCap),
		"EnhancedPort0": yes(v.EnhancedPort0), "MulticastFDBTop": fmt.Sprintf("0x%04x", uint16(v.MulticastFDBTop)),
	}
}

func portInfoWords(v *mad.PortInfo) map[string]string {
	w := map[string]string{
		"GidPrefix": v.GIDPrefix.String(), "Lid": fmt.Sprint(v.LID), "SMLid": fmt.Sprint(v.MasterSMLID),
		"CapMask": fmt.Sprintf("0x%x", uint32(v.CapabilityMask)), "DiagCode": fmt.Sprintf("0x%04x", v.DiagCode),
		"MkeyLeasePeriod": fmt.Sprint(v.MKeyLeasePeriod), "LocalPort": fmt.Sprint(v.LocalPortNum),
		"ProtectBits": fmt.Sprint(v.MKeyProtectBits), "LMC": fmt.Sprint(v.LMC), "SMSL": fmt.Sprint(v.MasterSMSL),
		"NeighborMTU": v.NeighborMTU.String(), "MtuCap": v.MTUCap.String(), "VLCap": vlWords(v.VLCap), "OperVLs": vlWords(v.OperationalVLs),
		"InitType": fmt.Sprintf("0x%02x", v.InitType), "InitReply": fmt.Sprintf("0x%02x", v.InitTypeReply),
		"VLHighLimit": fmt.Sprint(v.VLHighLimit), "VLArbHighCap": fmt.Sprint(v.VLArbitrationHighCap), "VLArbLowCap": fmt.Sprint(v.VLArbitrationLowCap),
		"VLStallCount": fmt.Sprint(v.VLStallCount), "HoqLife": fmt.Sprint(uint8(v.HOQLife)),
		"PartEnforceInb": yes(v.PartitionEnforcementInbound), "PartEnforceOutb": yes(v.PartitionEnforcementOutbound),
		"FilterRawInb": yes(v.FilterRawInbound), "FilterRawOutb": yes(v.FilterRawOutbound),
		"MkeyViolations": fmt.Sprint(v.MKeyViolations), "PkeyViolations": fmt.Sprint(v.PKeyViolations), "QkeyViolations": fmt.Sprint(v.QKeyViolations),
		"GuidCap": fmt.Sprint(v.GUIDCap), "ClientReregister": yes(v.ClientReregister),
		"McastPkeyTrapSuppressionEnabled": fmt.Sprint(v.MulticastPKeyTrapSuppressionEnabled),
		"SubnetTimeout":                   fmt.Sprint(uint8(v.SubnetTimeOut)), "RespTimeVal": fmt.Sprint(uint8(v.RespTimeValue)),
		"LocalPhysErr": fmt.Sprint(v.LocalPhyErrors), "OverrunErr": fmt.Sprint(v.OverrunErrors), "MaxCreditHint": fmt.Sprint(v.MaxCreditHint),
		"RoundTrip": fmt.Sprint(v.LinkRoundTripLatency), "CapabilityMask2": fmt.Sprintf("0x%x", uint16(v.CapabilityMask2)),
	}
	linkWords(w, v)
	return w
}

func linkWords(w map[string]string, v *mad.PortInfo) {
	widths := func(m ib.LinkWidth) string { return orWords(uint8(m), "1X", "4X", "8X", "12X", "2X") }
	w["LinkWidthEnabled"], w["LinkWidthSupported"], w["LinkWidthActive"] = widths(v.LinkWidthEnabled), widths(v.LinkWidthSupported), widths(v.LinkWidthActive)
	speeds := func(m ib.LinkSpeed) string { return orWords(uint8(m), "2.5 Gbps", "5.0 Gbps", "10.0 Gbps") }
	w["LinkSpeedEnabled"], w["LinkSpeedSupported"], w["LinkSpeedActive"] = speeds(v.LinkSpeedEnabled), speeds(v.LinkSpeedSupported), speeds(v.LinkSpeedActive)
	ext := func(m uint8, none string) string {
		if m == 0 {
			return none
		}
		return orWords(m, "14.0625 Gbps", "25.78125 Gbps", "53.125 Gbps", "106.25 Gbps")
	}
	w["LinkSpeedExtActive"] = ext(uint8(v.LinkSpeedExtActive), "No Extended Speed")
	w["LinkSpeedExtSupported"] = ext(uint8(v.LinkSpeedExtSupported), "0")
	w["LinkSpeedExtEnabled"] = ext(v.LinkSpeedExtEnabled, "0")
	w["LinkState"] = v.PortState.String()
	if v.PortState == ib.PortInit {
		w["LinkState"] = "Initialize"
	}
	w["PhysLinkState"], w["LinkDownDefState"] = v.PortPhysicalState.String(), v.LinkDownDefaultState.String()
}

func mepiWords(v *mad.MlnxExtendedPortInfo) map[string]string {
	return map[string]string{
		"StateChangeEnable":  fmt.Sprintf("0x%02x", v.StateChangeEnable),
		"LinkSpeedSupported": fmt.Sprintf("0x%02x", v.LinkSpeedSupported),
		"LinkSpeedEnabled":   fmt.Sprintf("0x%02x", v.LinkSpeedEnabled),
		"LinkSpeedActive":    fmt.Sprintf("0x%02x", v.LinkSpeedActive),
	}
}

func sl2vlWords(v *mad.SLtoVLMappingTable) []string {
	var b strings.Builder
	for _, vl := range v.VL {
		fmt.Fprintf(&b, "%2d|", vl)
	}
	return []string{b.String()}
}

// vlarbWords returns the eight entries that ibsim's ports have.
func vlarbWords(v *mad.VLArbitration) []string {
	vls, weights := "VL    : |", "WEIGHT: |"
	for _, e := range v.Entry[:8] {
		vls += fmt.Sprintf("%-4s|", fmt.Sprintf("0x%X", e.VL))
		weights += fmt.Sprintf("%-4s|", fmt.Sprintf("0x%X", e.Weight))
	}
	return []string{vls, weights}
}

// routeWords returns the routed LIDs of block 0.
func routeWords(v *mad.LinearForwardingTable) (out []string) {
	for lid, port := range v.Port {
		if port != ib.NoPort {
			out = append(out, fmt.Sprintf("0x%04x %03d", lid, port))
		}
	}
	return out
}
