package hcasim

import "portcullis/agent/hca/register"

// Reset levels and types that MFRL offers.
const (
	fullChip = 1 << 0
	triggers = register.PCIeLink | register.WarmReboot
	// syncDriver has the driver take the PCIe link down and up
	// (pci_sync_for_fw_update_start).
	syncDriver = 1
)

func (c *Card) readMFRL(register.MFRL) (register.MFRL, register.Status) {
	return register.MFRL{Trigger: triggers, Types: fullChip}, register.OK
}

// writeMFRL says what will reset the firmware. If the driver should do it, it does so as soon as the command is answered.
// Otherwise nothing happens until the host is switched off and on (Reset). mstconfig requests the latter after each
// setting.
func (c *Card) writeMFRL(m register.MFRL) (register.MFRL, register.Status) {
	if m.Trigger == 0 || m.Trigger&^triggers != 0 || m.Type != 0 || m.Sync > syncDriver || c.denied(nicReset) {
		return m, register.BadParameter
	}
	c.resetWanted = m.Sync == syncDriver
	return register.MFRL{Trigger: m.Trigger, Types: fullChip, Sync: m.Sync}, register.OK
}
