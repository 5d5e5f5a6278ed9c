package hca

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"portcullis/agent/hca/fwctl"
	"portcullis/agent/hca/sysfs"
)

// DefaultFWCTL is where the kernel has its device nodes of fwctl.
const DefaultFWCTL = "/dev/fwctl"

// deviceTime bounds reading one adapter. Each command takes milliseconds, a busy
// firmware some seconds.
const deviceTime = time.Minute

// Ways say how the adapters of a host are reached.
type Ways struct {
	Sysfs string
	// FWCTL is a directory of device nodes, or unix:DIR for the sockets of
	// simulated adapters, each named by its node GUID. "" is no way.
	FWCTL string
}

// Opened is a way to one adapter's firmware.
type Opened interface {
	Access
	Close() error
}

// Host is what is known of the adapters of this host.
type Host struct {
	Devices []*Device // ascending by PCI address and name
	// Lockdown reports that the kernel keeps root from PCI configuration space.
	Lockdown bool
	// Problems are those of reading the kernel's files.
	Problems []error
}

// ReadHost reads all adapters. Its error means that not even the kernel's files
// can be read, or that there is no adapter; whatever else is wrong is a fact
// that is not known.
func ReadHost(ctx context.Context, w Ways) (*Host, error) {
	t, err := sysfs.Open(w.Sysfs)
	if err != nil {
		return nil, fmt.Errorf("sysfs: %w", err)
	}
	defer t.Close()
	functions, stray := t.Functions()
	h := &Host{Lockdown: lockdown(t), Problems: t.Problems()}
	for i := range functions {
		f := &functions[i]
		if f.Unrelated {
			continue
		}
		if len(f.RDMA) == 0 {
			h.Devices = append(h.Devices, h.device(ctx, w, f, nil))
		}
		for j := range f.RDMA {
			h.Devices = append(h.Devices, h.device(ctx, w, f, &f.RDMA[j]))
		}
	}
	for i := range stray {
		h.Devices = append(h.Devices, h.device(ctx, w, nil, &stray[i]))
	}
	if len(h.Devices) == 0 {
		return nil, errors.Join(append(h.Problems, errNoHCA)...)
	}
	return h, nil
}

// lockdown reads what the kernel says of itself, for example "none [integrity]
// confidentiality".
func lockdown(t *sysfs.Tree) bool {
	s := t.Optional("kernel/security/lockdown")
	return s != "" && !strings.Contains(s, "[none]")
}

func (h *Host) device(ctx context.Context, w Ways, f *sysfs.Function, r *sysfs.RDMA) *Device {
	if f != nil && f.Vendor != sysfs.VendorNVIDIA {
		return fromKernel(f, r)
	}
	way, from, err := w.open(ctx, f, r)
	if err != nil {
		d := fromKernel(f, r)
		d.unreached(h.why(err), err.Error())
		return d
	}
	defer way.Close()
	ctx, cancel := context.WithTimeout(ctx, deviceTime)
	defer cancel()
	return ReadDevice(ctx, f, r, way, from)
}

// ReadDevice reads one adapter: what the kernel says of its function and of its
// RDMA device, of which either may be nil, and its firmware through access.
func ReadDevice(ctx context.Context, f *sysfs.Function, r *sysfs.RDMA, access Access, from Source) *Device {
	d := fromKernel(f, r)
	fw := &firmware{Device: d, access: access, from: from}
	if f != nil {
		fw.function = f.Address.Function()
	}
	fw.read(ctx)
	return d
}

// errNoWay means that nothing leads to the firmware of an adapter.
var errNoWay = errors.New("no way to the firmware's registers: load mlx5_fwctl (Linux 6.15 and later)")

func (w Ways) open(ctx context.Context, f *sysfs.Function, r *sysfs.RDMA) (Opened, Source, error) {
	if dir, ok := strings.CutPrefix(w.FWCTL, "unix:"); ok {
		if r == nil {
			return nil, "", errNoWay
		}
		d, err := fwctl.Dial(ctx, filepath.Join(dir, r.NodeGUID.String()))
		if err != nil {
			return nil, "", err // not d: a nil *fwctl.Device is no nil Opened
		}
		return d, FromCard, nil
	}
	if w.FWCTL == "" || f == nil || f.FWCTL == "" {
		return nil, "", errNoWay
	}
	d, err := fwctl.Open(filepath.Join(w.FWCTL, f.FWCTL))
	if err != nil {
		return nil, "", err
	}
	return d, FromFWCTL, nil
}

// why gives the reason that nothing was reached.
func (h *Host) why(err error) Reason {
	switch {
	case errors.Is(err, errNoWay) && h.Lockdown:
		return ReasonLockdown
	case errors.Is(err, errNoWay), errors.Is(err, fs.ErrNotExist):
		return ReasonNoAccess
	}
	return reasonOf(err)
}

// unreached notes for each fact that only the firmware tells why it is not
// known.
func (d *Device) unreached(r Reason, detail string) {
	d.HardwareID.miss(r, detail)
	d.BaseGUID.miss(r, detail)
	d.BaseMAC.miss(r, detail)
	d.AlternateGUID.miss(r, detail)
	d.Pending.miss(r, detail)
	d.LifeCycle.miss(r, detail)
	d.SecureBoot.miss(r, detail)
	d.Encryption.miss(r, detail)
	d.Development.miss(r, detail)
	d.Attributes.miss(r, detail)
	d.SecurityVersion.miss(r, detail)
	d.RollbackFloor.miss(r, detail)
	d.MLOCK.miss(r, detail)
	for i := range d.Ports {
		d.Ports[i].HasSMI.miss(r, detail)
	}
}
