package ib

import (
	"fmt"
	"strings"
)

// PortNum is the number of a port on its node. On a switch 0 is the management
// port and 1 to 254 are external ports; on a CA or router 1 to 254. NoPort in
// a forwarding table means "no route".
type PortNum uint8

// NoPort marks an unreachable destination in a forwarding table.
const NoPort PortNum = 0xFF

// ParsePortNum reads a decimal port number, 0 to 254.
func ParsePortNum(s string) (PortNum, error) {
	v, err := parseNumber(s, 8)
	if err == nil && v == uint64(NoPort) {
		err = errRange
	}
	if err != nil {
		return 0, fmt.Errorf("port %q: %w", s, err)
	}
	return PortNum(v), nil
}

// NodeType is the kind of a node.
type NodeType uint8

// Node types (NodeInfo.NodeType).
const (
	NodeCA     NodeType = 1
	NodeSwitch NodeType = 2
	NodeRouter NodeType = 3
)

// String names the type.
func (t NodeType) String() string {
	switch t {
	case NodeCA:
		return "CA"
	case NodeSwitch:
		return "switch"
	case NodeRouter:
		return "router"
	default:
		return fmt.Sprintf("NodeType(%d)", uint8(t))
	}
}

// PortState is the logical state of a port (PortInfo.PortState).
type PortState uint8

// Port states. In a Set, PortNop leaves the state alone.
const (
	PortNop         PortState = 0
	PortDown        PortState = 1
	PortInit        PortState = 2 // link up, only management traffic
	PortArmed       PortState = 3 // configured, not yet sending data
	PortActive      PortState = 4
	PortActiveDefer PortState = 5 // transient, set by hardware
)

// String names the state.
func (s PortState) String() string {
	return enumName(uint8(s), "PortState", "Nop", "Down", "Init", "Armed", "Active", "ActiveDefer")
}

// PhysState is the physical state of a port (PortInfo.PortPhysicalState).
type PhysState uint8

// Physical states. In a Set, PhysNop leaves the state alone.
const (
	PhysNop             PhysState = 0
	PhysSleep           PhysState = 1
	PhysPolling         PhysState = 2
	PhysDisabled        PhysState = 3
	PhysCfgTraining     PhysState = 4
	PhysLinkUp          PhysState = 5
	PhysLinkErrRecovery PhysState = 6
	PhysTest            PhysState = 7
)

// String names the state.
func (s PhysState) String() string {
	return enumName(uint8(s), "PhysState", "Nop", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "PhyTest")
}

// SMState is the state of a subnet manager (SMInfo.SMState).
type SMState uint8

// SM states (IBTA volume 1, 14.4.1).
const (
	SMNotActive   SMState = 0
	SMDiscovering SMState = 1
	SMStandby     SMState = 2
	SMMaster      SMState = 3
)

// String names the state.
func (s SMState) String() string {
	return enumName(uint8(s), "SMState", "NotActive", "Discovering", "Standby", "Master")
}

func enumName(v uint8, typ string, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", typ, v)
}

// maskNames joins the names of the bits set in v, lowest first. Bits without a
// name are given together as a number.
func maskNames(v uint8, names ...string) string {
	if v == 0 {
		return "none"
	}
	var set []string
	for i, n := range names {
		if v&(1<<i) != 0 {
			set = append(set, n)
			v &^= 1 << i
		}
	}
	if v != 0 {
		set = append(set, fmt.Sprintf("0x%02x", v))
	}
	return strings.Join(set, "|")
}
