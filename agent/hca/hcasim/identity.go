package hcasim

import "portcullis/agent/hca/register"

func (c *Card) readMGIR(register.MGIR) (m register.MGIR, _ register.Status) {
	id, s := c.o.Identity, c.o.Security
	m.Hardware = register.HardwareInfo{
		DeviceID: id.DeviceID, HWDevID: id.HWDevID, HWRevision: id.HWRevision,
		Ports: uint16(len(c.o.Ports)), BaseMAC: id.BaseMAC, ChipType: simulatedChip,
	}
	m.Firmware = register.FirmwareInfo{
		Secured: s.Secured, SignedFW: s.SignedFW, Debug: c.chip.running.Debug, Dev: c.chip.running.Dev,
		OldMajor: uint8(c.chip.running.Major), OldMinor: uint8(c.chip.running.Minor), OldSubMinor: uint8(c.chip.running.SubMinor),
		Major: c.chip.running.Major, Minor: c.chip.running.Minor, SubMinor: c.chip.running.SubMinor,
		LifeCycleLow: s.LifeCycle & 3, LifeCycleTop: uint8(s.LifeCycle >> 2), SecureBoot: s.SecureBoot,
	}
	copy(m.Firmware.PSID[:], id.PSID)
	return m, register.OK
}

// simulatedChip is what a card says that is none (SimX).
const simulatedChip = 3

func (c *Card) readMCAM(m register.MCAM) (register.MCAM, register.Status) {
	if m.Group > 3 {
		return m, register.BadParameter
	}
	m = register.MCAM{Group: m.Group, FeatureGroup: m.FeatureGroup}
	const first, last = register.ID(0x9000), register.ID(0x9200)
	for id := first; id < last; id++ {
		if _, ok := c.entry(id); ok {
			m.Set(id)
		}
	}
	if m.FeatureGroup == 0 {
		for _, f := range []register.Feature{register.FeatureCSToken, register.FeatureDebugToken, register.FeatureChallengeTokens} {
			m.SetFeature(f)
		}
	}
	return m, register.OK
}

func (c *Card) readMQIS(m register.MQIS) (register.MQIS, register.Status) {
	text := ""
	switch m.Type {
	case register.InfoModelName:
		text = c.o.Identity.Name
	case register.InfoDescription:
		text = c.o.Identity.Description
	case register.InfoVPD, register.InfoImageVSD, register.InfoDeviceVSD, register.InfoROM:
	default:
		return m, register.BadParameter
	}
	if text != "" {
		text += "\x00"
	}
	m.Total, m.Data = uint16(len(text)), [8]byte{}
	m.Length = min(m.Length, uint16(len(m.Data)))
	m.Length = uint16(copy(m.Data[:m.Length], text[min(int(m.Offset), len(text)):]))
	return m, register.OK
}
