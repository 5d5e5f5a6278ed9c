package hca

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"portcullis/agent/hca/devlink"
	"portcullis/agent/hca/fwctl"
	"portcullis/agent/hca/mst"
	"portcullis/agent/hca/sysfs"
	"portcullis/attest"
)

// DefaultFWCTL is where the kernel has its device nodes of fwctl.
const DefaultFWCTL = "/dev/fwctl"

// deviceTime bounds reading one adapter. Each command takes milliseconds, a busy
// firmware some seconds.
const deviceTime = time.Minute

// toolTime bounds reading one adapter with the tools, which are started again for each register.
const toolTime = 90 * time.Second

// Ways say how the adapters of a host are reached.
type Ways struct {
	Sysfs string
	// FWCTL is a directory of device nodes, or unix:DIR for the sockets of
	// simulated adapters, each named by its node GUID. "" is no way.
	FWCTL string
	// Drivers connects to the drivers' data over devlink; nil: they are not asked.
	Drivers func() (Drivers, error)
	// Tools are the folders with the vendor's tools, for adapters that have no
	// node of fwctl. None: they are not used.
	Tools []string
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
	// Notes say which sources could not be asked, where others may have been.
	Notes []error
	// Tools are those that were run, with their version.
	Tools []attest.Tool

	infos    map[sysfs.Address]*devlink.Info
	searched bool              // for the tools
	suite    *mst.Suite        // nil: none
	noWay    error             // why neither fwctl nor tools lead to an adapter
	blind    map[*Device]error // adapters that the tools could not open
	asked    int               // adapters that the tools were asked for
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
	h := &Host{Lockdown: lockdown(t), Problems: t.Problems(), Tools: []attest.Tool{}, noWay: errNoWay, blind: map[*Device]error{}}
	h.infos = h.askDrivers(w, functions)
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
		return nil, errors.Join(append(h.Problems, fmt.Errorf("%s: %w", filepath.Join(w.Sysfs, "class/infiniband"), errNoHCA))...)
	}
	h.tellBlind()
	return h, nil
}

// tellBlind says of adapters that the tools could not open why that is: where
// they could open none, it is not the adapters.
func (h *Host) tellBlind() {
	reason := ReasonUnreadable
	switch {
	case len(h.blind) < h.asked:
	case h.Lockdown:
		reason = ReasonLockdown
	default:
		reason = ReasonBlind
	}
	for d, err := range h.blind {
		d.unreached(reason, err.Error())
	}
}

// tools finds the vendor's tools once they are needed.
func (h *Host) tools(ctx context.Context, w Ways) *mst.Suite {
	if h.searched || len(w.Tools) == 0 {
		return h.suite
	}
	h.searched = true
	s, err := mst.Find(ctx, w.Tools)
	if err != nil {
		h.noWay = fmt.Errorf("%w, or the vendor's tools: %w", errNoWay, err)
		return nil
	}
	h.suite = s
	h.Tools = []attest.Tool{{Name: s.Name, Version: s.Version.String()}}
	return s
}

// lockdown reads what the kernel says of itself, for example "none [integrity]
// confidentiality".
func lockdown(t *sysfs.Tree) bool {
	s := t.Optional("kernel/security/lockdown")
	return s != "" && !strings.Contains(s, "[none]")
}

func (h *Host) device(ctx context.Context, w Ways, f *sysfs.Function, r *sysfs.RDMA) *Device {
	d := fromKernel(f, r)
	if d.NoNVIDIA {
		return d
	}
	d.fromDriver(h.infos[d.PCI])
	way, from, err := w.open(ctx, f, r)
	if err == nil {
		defer way.Close()
		ctx, cancel := context.WithTimeout(ctx, deviceTime)
		defer cancel()
		d.byRegisters(ctx, way, from)
		return d
	}
	if errors.Is(err, errNoWay) && f != nil {
		if s := h.tools(ctx, w); s != nil {
			h.byTools(ctx, s, d)
			return d
		}
		err = h.noWay
	}
	d.unreached(h.why(err), err.Error())
	return d
}

func (h *Host) byTools(ctx context.Context, s *mst.Suite, d *Device) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	h.asked++
	if err := d.byTools(ctx, s, d.PCI.Function()); err != nil {
		h.blind[d] = err
	}
}

// ReadDevice reads one adapter: the kernel's data about its function and its RDMA device, of which either may be nil, and
// its firmware through access.
func ReadDevice(ctx context.Context, f *sysfs.Function, r *sysfs.RDMA, access Access, from Source) *Device {
	d := fromKernel(f, r)
	d.byRegisters(ctx, access, from)
	return d
}

func (d *Device) byRegisters(ctx context.Context, access Access, from Source) {
	fw := &firmware{Device: d, access: access, from: from, function: d.PCI.Function()}
	fw.read(ctx)
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
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", errNoWay
	}
	if err != nil {
		return nil, "", err
	}
	return d, FromFWCTL, nil
}

// why returns the reason why no source was reached.
func (h *Host) why(err error) Reason {
	switch {
	case errors.Is(err, errNoWay) && h.Lockdown:
		return ReasonLockdown
	case errors.Is(err, errNoWay), errors.Is(err, fs.ErrNotExist):
		return ReasonNoAccess
	}
	return reasonOf(err)
}

// unreached records the reason for each unknown fact that only the firmware reports.
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
