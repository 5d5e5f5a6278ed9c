package discovery

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/topo"
)

// Check says what is wrong with a NodeInfo, if anything.
func Check(ni *mad.NodeInfo) string {
	switch {
	case ni.NodeType != ib.NodeCA && ni.NodeType != ib.NodeSwitch && ni.NodeType != ib.NodeRouter:
		return fmt.Sprintf("NodeInfo has node type %d", uint8(ni.NodeType))
	case !ni.NodeGUID.Valid() || !ni.PortGUID.Valid():
		return fmt.Sprintf("NodeInfo has node GUID %v and port GUID %v", ni.NodeGUID, ni.PortGUID)
	case ni.NumPorts == 0 || ni.NumPorts == 0xFF:
		return fmt.Sprintf("NodeInfo has %d ports", ni.NumPorts)
	case uint8(ni.LocalPortNum) > ni.NumPorts || ni.LocalPortNum == 0 && ni.NodeType != ib.NodeSwitch:
		return fmt.Sprintf("NodeInfo came from port %d of %d", ni.LocalPortNum, ni.NumPorts)
	default:
		return ""
	}
}

// NodeOf returns the node that a NodeInfo shows.
func NodeOf(ni *mad.NodeInfo) topo.Node {
	tn := topo.Node{
		GUID: ni.NodeGUID, SystemImageGUID: ni.SystemImageGUID, Type: ni.NodeType,
		BaseVersion: ni.BaseVersion, ClassVersion: ni.ClassVersion, NumPorts: ni.NumPorts, PartitionCap: identity.KeyCap(ni),
		VendorID: ni.VendorID, DeviceID: ni.DeviceID, Revision: ni.Revision,
	}
	if ni.NodeType == ib.NodeSwitch {
		tn.LinearFDBCap = uint16(ib.MaxUnicastLID) + 1 // until SwitchInfo says how many
	}
	return tn
}
