package hca

import (
	"errors"
	"fmt"
	"slices"

	"portcullis/agent/hca/devlink"
	"portcullis/agent/hca/sysfs"
)

// Drivers is what a host's drivers say of their adapters over devlink.
type Drivers interface {
	Info(bus, device string) (*devlink.Info, error)
	Close() error
}

// DialDrivers connects to the kernel. devlink.ErrNone means that the kernel has no devlink.
func DialDrivers() (Drivers, error) {
	c, err := devlink.Dial()
	if err != nil {
		return nil, err // not c: a nil *devlink.Conn is no nil Drivers
	}
	return c, nil
}

// askDrivers asks for all adapters of a driver at once. It records a failed query, and leaves those facts to other sources.
func (h *Host) askDrivers(w Ways, functions []sysfs.Function) map[sysfs.Address]*devlink.Info {
	ours := func(f sysfs.Function) bool { return f.Vendor == sysfs.VendorNVIDIA && f.Driver != "" && !f.Unrelated }
	if w.Drivers == nil || !slices.ContainsFunc(functions, ours) {
		return nil
	}
	c, err := w.Drivers()
	if errors.Is(err, devlink.ErrNone) {
		return nil
	}
	if err != nil {
		h.Notes = append(h.Notes, err)
		return nil
	}
	defer c.Close()
	infos := map[sysfs.Address]*devlink.Info{}
	for _, f := range functions {
		if !ours(f) {
			continue
		}
		i, err := c.Info("pci", string(f.Address))
		if err != nil {
			h.Notes = append(h.Notes, err)
			continue
		}
		infos[f.Address] = i
	}
	return infos
}

// fromDriver takes up what the driver says, if it was asked.
func (d *Device) fromDriver(i *devlink.Info) {
	if i == nil {
		return
	}
	d.Serial.told(FromDevlink, i.BoardSerial)
	d.PSID.told(FromDevlink, i.PSID())
	version(&d.Running, i.RunningFirmware())
	version(&d.Pending, i.StoredFirmware())
}

func version(f *Fact[Version], s string) {
	if s == "" {
		return
	}
	v, err := ParseVersion(s)
	if err != nil {
		f.spoil(fmt.Sprintf("%s: %v", FromDevlink, err))
		return
	}
	f.add(FromDevlink, v)
}
