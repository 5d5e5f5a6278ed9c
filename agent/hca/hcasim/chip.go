package hcasim

import (
	"portcullis/agent/hca/register"
)

// chip is the firmware that a card runs, and the fuses that forbid older firmware.
type chip struct {
	power    *power
	identity Identity
	security Security
	keys     []Key

	running Firmware
	pending *Firmware // burnt, and not run yet
	fuse    uint32
	fuseOn  bool // efuses_prog_en
}

func newChip(o Options, p *power) chip {
	return chip{power: p, identity: o.Identity, security: o.Security, keys: o.Keys, running: o.Firmware, fuse: o.Security.EFUSE}
}

// boot runs the firmware that was burnt, unless the fuses forbid it. It burns the fuses if a command or the
// configuration enables it.
func (c *chip) boot() {
	if c.pending != nil && c.pending.SecurityVersion >= c.fuse {
		c.running = *c.pending
	}
	c.pending = nil
	if c.running.SecurityVersion > c.fuse && (c.security.Automatic || c.fuseOn) {
		c.fuse = c.running.SecurityVersion
	}
	c.fuseOn = false
}

// States of the security version (fw_sec_ver_stat).
const (
	fuseEqual = 0
	fuseLower = 1
)

func (c *chip) readMFSV(m register.MFSV) (register.MFSV, register.Status) {
	if m.Index != 0 {
		return m, register.BadParameter
	}
	m = register.MFSV{
		ProgramEnabled: c.fuseOn, Automatic: c.security.Automatic, Stat: fuseEqual,
		Image: c.running.SecurityVersion, EFUSE: c.fuse,
	}
	if c.fuse < c.running.SecurityVersion {
		m.Stat = fuseLower
	}
	return m, register.OK
}

func (c *chip) writeMFSV(m register.MFSV) (register.MFSV, register.Status) {
	if m.Index != 0 {
		return m, register.BadParameter
	}
	c.power.durable(func() { c.fuseOn = m.ProgramEnabled })
	return m, register.OK
}
