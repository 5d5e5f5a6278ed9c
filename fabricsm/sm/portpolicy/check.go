package portpolicy

import (
	"cmp"

	"portcullis/fabricsm/ib"
)

// SetDefaults sets each field that is zero to its default.
func (c *Config) SetDefaults() {
	c.MaxMTU = cmp.Or(c.MaxMTU, ib.MTU4096)
	c.MaxOperationalVLs = cmp.Or(c.MaxOperationalVLs, 5)
	c.SubnetTimeOut = cmp.Or(c.SubnetTimeOut, 18)
	c.PacketLifetime = cmp.Or(c.PacketLifetime, 18)
	c.HOQLife, c.LeafHOQLife = cmp.Or(c.HOQLife, 18), cmp.Or(c.LeafHOQLife, 16)
	c.VLStallCount, c.LeafVLStallCount = cmp.Or(c.VLStallCount, 7), cmp.Or(c.LeafVLStallCount, 7)
	c.LocalPhyErrors, c.OverrunErrors = cmp.Or(c.LocalPhyErrors, 8), cmp.Or(c.OverrunErrors, 8)
}

// Check reports every value that does not fit its field of PortInfo or SwitchInfo
// (IBTA volume 1, 14.2.5.4 and 14.2.5.6).
func (c *Config) Check(wrong func(format string, args ...any)) {
	const expTime = 31 // five bits
	for _, n := range []struct {
		name    string
		n, most int
	}{
		{"largest MTU", int(c.MaxMTU), int(ib.MTU4096)},
		{"most VLs", int(c.MaxOperationalVLs), 5},
		{"subnet timeout", int(c.SubnetTimeOut), expTime},
		{"packet lifetime", int(c.PacketLifetime), expTime},
		{"head-of-queue lifetime", int(c.HOQLife), expTime},
		{"head-of-queue lifetime towards hosts", int(c.LeafHOQLife), expTime},
		{"VL stall count", int(c.VLStallCount), 7},
		{"SL to the subnet manager", int(c.MasterSMSL), 15},
		{"threshold of local physical errors", int(c.LocalPhyErrors), 15},
		{"threshold of overrun errors", int(c.OverrunErrors), 15},
	} {
		if n.n > n.most {
			wrong("%s %d: want 0 to %d", n.name, n.n, n.most)
		}
	}
}
