package hcasim

import (
	"encoding/binary"

	"portcullis/firmware/nvconfig"
)

// privilege is a field of nv_external_host_priv_conf: the place of its two bits.
type privilege int

// Privileges of the host.
const (
	nvHost   privilege = 18
	nvPort   privilege = 20
	nvGlobal privilege = 22
	fwUpdate privilege = 28
	nicReset privilege = 30
)

const privilegeDisabled = 2

// privilegeOf says which privilege lets the host write a setting.
func privilegeOf(a nvconfig.Address) privilege {
	switch a.Class().Family() {
	case nvconfig.Port:
		return nvPort
	case nvconfig.Host, nvconfig.HostFunction:
		return nvHost
	default:
		return nvGlobal
	}
}

// denied reports that the settings in force take a privilege from the host.
func (c *Card) denied(p privilege) bool {
	data := c.store.globalInForce(hostPrivIndex)
	return c.o.Traits.HonorsPrivileges && len(data) >= 4 && binary.BigEndian.Uint32(data)>>p&3 == privilegeDisabled
}
