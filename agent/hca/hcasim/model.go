package hcasim

import (
	"cmp"
	"encoding/binary"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
)

// macOf cuts a MAC out of a GUID: the six bytes around the filler.
func macOf(guid ib.GUID) uint64 { return uint64(guid)>>40<<24 | uint64(guid)&0xFFFFFF }

// ConnectX7 returns the options of a healthy ConnectX-7 with one GUID for each port: genuine firmware, closed, all settings
// of package nvconfig known and off.
func ConnectX7(node ib.GUID, ports ...ib.GUID) Options {
	o := Options{
		Identity: Identity{
			DeviceID: 0x1021, HWDevID: 0x0218, BaseMAC: macOf(node), PSID: "MT_0000000838",
			Name: "MCX75310AAS-NEA_Ax", Description: "NVIDIA ConnectX-7 HHHL Adapter card; simulated",
			NodeGUID: node, SystemGUID: node,
		},
		Firmware: Firmware{Major: 28, Minor: 43, SubMinor: 1014},
		Security: Security{LifeCycle: register.GASecured, SecureBoot: true, Secured: true, SignedFW: true},
		Settings: Settings(),
		Seed:     uint64(node),
	}
	for _, guid := range ports {
		o.Ports = append(o.Ports, Port{guid})
	}
	return o
}

// Settings are all settings with a layout in package nvconfig, off by default except the type of links, which is
// InfiniBand. They also include those of the expansion ROM, which mstconfig reads where it finds one of them.
func Settings() []Setting {
	var all []Setting
	for _, l := range nvconfig.Layouts() {
		s := Setting{Family: l.Class, Index: l.Index, Default: make([]byte, l.Size)}
		switch {
		case l.Class == nvconfig.FileItem || isFileID(l.Class, l.Index):
			continue // of files, not of cards
		case l.Class == nvconfig.Global && l.Index == secureHostIndex:
			s.Hidden = true
		case l.Class == nvconfig.Port && l.Index == linkTypeIndex:
			s.Default[3] = linkTypeIB
		}
		all = append(all, s)
	}
	for _, rom := range []struct {
		family nvconfig.Class
		index  uint32
		size   int
	}{{nvconfig.Global, 257, 4}, {nvconfig.HostFunction, 405, 4}, {nvconfig.HostFunction, 406, 4}, {nvconfig.HostFunction, 514, 12}, {nvconfig.HostFunction, 518, 4}, {nvconfig.HostFunction, 546, 4}} {
		all = append(all, Setting{Family: rom.family, Index: rom.index, Default: make([]byte, rom.size)})
	}
	return all
}

// Items that mean something to the card itself.
const (
	mlnxFileIndex    = 0x10E
	vendorFileIndex  = 0x10F
	baseUIDsIndex    = 2
	baseCountIndex   = 3
	smConfIndex      = 290
	hostPrivIndex    = 291
	globalPCIIndex   = 128
	secureHostIndex  = 411
	keyIndex         = 412 // and the two after it
	linkTypeIndex    = 18
	linkTypeIB       = 1 << 2
	secureHostLength = 32
)

func isFileID(c nvconfig.Class, index uint32) bool {
	return c == nvconfig.Global && (index == mlnxFileIndex || index == vendorFileIndex)
}

// burned are the items in which tools look for the addresses of manufacturing:
// base MAC and base GUID, and how many of each there are.
func (i Identity) burned(ports int) []Setting {
	uids := binary.BigEndian.AppendUint64(nil, i.BaseMAC)
	uids = binary.BigEndian.AppendUint64(uids, uint64(cmp.Or(i.BaseGUID, i.NodeGUID)))
	const enabled = 3 << 30 // guid_en, mac_en
	count := binary.BigEndian.AppendUint32(nil, enabled)
	count = binary.BigEndian.AppendUint16(count, uint16(16*ports))
	count = binary.BigEndian.AppendUint16(count, uint16(16*ports))
	return []Setting{
		{Family: nvconfig.Global, Index: baseUIDsIndex, Default: uids, Burned: true},
		{Family: nvconfig.Global, Index: baseCountIndex, Default: count, Burned: true},
	}
}
