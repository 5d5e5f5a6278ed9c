package hca

import (
	"errors"
	"io/fs"

	"portcullis/agent/hca/sysfs"
)

// fromKernel starts a device with the data in the kernel's files about a function and one RDMA device of it; either may be
// nil.
func fromKernel(f *sysfs.Function, r *sysfs.RDMA) *Device {
	d := &Device{NoNVIDIA: f != nil && f.Vendor != sysfs.VendorNVIDIA}
	if f != nil {
		d.fromFunction(f)
	}
	if r == nil {
		const without = "no RDMA device belongs to the function: load mlx5_ib"
		d.NodeGUID.miss(ReasonNoDriver, without)
		d.SystemImageGUID.miss(ReasonNoDriver, without)
		return d
	}
	d.fromRDMA(r)
	return d
}

func (d *Device) fromFunction(f *sysfs.Function) {
	d.PCI = f.Address
	d.DeviceID.add(FromSysfs, DeviceID(f.DeviceID))
	if f.Vendor == sysfs.VendorNVIDIA {
		d.Recovery.add(FromSysfs, answer(f.Recovery))
	}
	switch {
	case f.VPDError == nil:
		d.Serial.told(FromVPD, f.VPD.Serial)
		d.PartNumber.told(FromVPD, f.VPD.Part)
	case errors.Is(f.VPDError, fs.ErrNotExist):
		d.Serial.miss(ReasonNotTold, "the function has no vital product data")
		d.PartNumber.miss(ReasonNotTold, "the function has no vital product data")
	default:
		d.Serial.fail(f.VPDError)
		d.PartNumber.fail(f.VPDError)
	}
}

func (d *Device) fromRDMA(r *sysfs.RDMA) {
	d.Name, d.Type = r.Name, r.Type
	d.NodeGUID.told(FromSysfs, r.NodeGUID)
	d.SystemImageGUID.told(FromSysfs, r.SystemImageGUID)
	d.PSID.told(FromSysfs, r.BoardID)
	if v, err := ParseVersion(r.Firmware); err == nil {
		d.Running.add(FromSysfs, v)
	} else if r.Firmware != "" {
		d.Running.miss(ReasonUnreadable, err.Error())
	}
	for _, p := range r.Ports {
		if p.LinkLayer != sysfs.LinkInfiniBand {
			d.Ethernet = append(d.Ethernet, p.Num)
			continue
		}
		port := Port{Num: p.Num}
		port.GUID.told(FromSysfs, p.GUID)
		d.Ports = append(d.Ports, port)
	}
}
