// Package portpolicy says which parameters of ports are policy: for all of them, and by exceptions for single ports.
package portpolicy

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// Config holds the port parameters that are policy. Zero means default.
type Config struct {
	MaxMTU            ib.MTU     // ceiling of NeighborMTU; default 4096
	MaxOperationalVLs ib.VLCap   // ceiling of OperationalVLs; default VL0-14
	SubnetTimeOut     ib.ExpTime // default 18, about 1 s
	PacketLifetime    ib.ExpTime // SwitchInfo.LifeTimeValue; default 18
	HOQLife           ib.ExpTime // towards switches; default 18
	LeafHOQLife       ib.ExpTime // towards CAs and routers; default 16
	VLStallCount      uint8      // towards switches, 1 to 7; default 7
	LeafVLStallCount  uint8      // towards CAs and routers, 1 to 7; default 7
	MasterSMSL        ib.SL      // default 0
	LocalPhyErrors    uint8      // threshold of trap 129; default 8
	OverrunErrors     uint8      // threshold of trap 130; default 8

	// Link is which speeds and widths are enabled; default: as found.
	Link Link
	// Retrain takes a link down and up again once when it does not run at the values that both ends have enabled. Otherwise
	// a change waits for the next training.
	Retrain bool
	// LMCPort0 assigns as many LIDs to enhanced switch ports 0 as to hosts.
	LMCPort0 bool
	// NoReregister never asks clients to renew their registrations.
	NoReregister bool
	// Rules are exceptions for single ports. If two are for the same port, the later one counts.
	Rules []Rule
}

// Link says which speeds and widths of a port are enabled. The zero value leaves the enabled ones as they are:
// devices power on with all they support, and a port that an operator narrowed on a bad cable stays narrow.
type Link struct {
	MaxSpeed ib.Speed     // all supported speeds up to this one; ib.XDR: all
	MaxWidth ib.LinkWidth // one bit: all supported widths up to this one; ib.Width12x: all
}

// Rule is an exception for ports that are named by GUID. A zero field means
// as for all ports.
type Rule struct {
	GUID     ib.GUID    // of a node, or of an end port
	Port     ib.PortNum // of that node; 0: all of its ports
	Link     Link
	MaxMTU   ib.MTU
	MaxVLs   ib.VLCap
	Disabled bool // external ports of switches: the link is taken down and kept down
}

// Equal reports whether two configurations are the same, rules included.
func (c *Config) Equal(o *Config) bool { return c.equal(o) && slices.Equal(c.Rules, o.Rules) }

// equal compares all but Rules.
func (c *Config) equal(o *Config) bool {
	return c.MaxMTU == o.MaxMTU && c.MaxOperationalVLs == o.MaxOperationalVLs && c.SubnetTimeOut == o.SubnetTimeOut &&
		c.PacketLifetime == o.PacketLifetime && c.HOQLife == o.HOQLife && c.LeafHOQLife == o.LeafHOQLife &&
		c.VLStallCount == o.VLStallCount && c.LeafVLStallCount == o.LeafVLStallCount && c.MasterSMSL == o.MasterSMSL &&
		c.LocalPhyErrors == o.LocalPhyErrors && c.OverrunErrors == o.OverrunErrors && c.Link == o.Link &&
		c.Retrain == o.Retrain && c.NoReregister == o.NoReregister
}
