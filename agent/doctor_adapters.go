package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"portcullis/agent/hca"
	"portcullis/agent/hca/sysfs"
)

// adapters reads every adapter as a run does.
func (d *doctor) adapters(ctx context.Context) {
	d.library()
	host, err := hca.ReadHost(ctx, d.config.Ways())
	if err != nil {
		d.failed(checkAdapters, fail(ClassHCA, "", err))
		d.skip("there is no adapter to look at", checkRegisters, checkLockdown, checkUMAD)
		return
	}
	d.drivers(host)
	d.registers(host)
	d.lockdown(host)
	d.umad()
}

func (d *doctor) library() {
	site, err := d.config.Site()
	switch {
	case err != nil:
		d.failed(checkFirmware, err)
	case site == nil:
		d.warn(checkFirmware, "name the folder with the site's keys, boards and images with --firmware",
			"the site's firmware is not known, so no assurance level is reached")
	default:
		d.ok(checkFirmware, "%s", d.config.Firmware)
	}
}

func (d *doctor) drivers(host *hca.Host) {
	problems := slices.Clone(host.Problems)
	var names []string
	for _, one := range host.Devices {
		names = append(names, called(one))
		if one.Name == "" {
			problems = append(problems, errors.New("adapter "+called(one)+": no RDMA device belongs to it"))
		}
	}
	if len(problems) > 0 {
		d.failed(checkAdapters, fail(ClassHCA, "load the adapters' driver (for example mlx5_ib); run as root", errors.Join(problems...)))
		return
	}
	d.ok(checkAdapters, "%s", strings.Join(names, ", "))
}

func called(d *hca.Device) string {
	if d.Name != "" {
		return d.Name
	}
	return string(d.PCI)
}

// registerSources are ways to an adapter's firmware.
var registerSources = []hca.Source{hca.FromFWCTL, hca.FromCard, hca.FromMSTReg, hca.FromFlint}

// registers looks which way leads to each adapter's firmware. A lock needs one
// that is not a tool.
func (d *doctor) registers(host *hca.Host) {
	var good, none []string
	for _, one := range host.Devices {
		if from := sourcesOf(one); len(from) > 0 {
			good = append(good, called(one)+" by "+strings.Join(from, ", "))
		} else {
			_, why := one.LifeCycle.Why()
			none = append(none, called(one)+": "+why)
		}
	}
	if len(none) > 0 {
		d.warn(checkRegisters, "load mlx5_fwctl (Linux 6.15 and later), or install mstflint; check that the agent may open the nodes below "+d.config.FWCTL,
			"the firmware does not answer, so neither its state nor its lock can be attested: %s", strings.Join(none, "; "))
		return
	}
	d.ok(checkRegisters, "%s", strings.Join(good, "; "))
}

// sourcesOf lists the sources that reach the firmware and have reported something.
func sourcesOf(d *hca.Device) []string {
	var from []string
	for _, l := range d.Lines() {
		for _, s := range l.From {
			if slices.Contains(registerSources, s) {
				from = append(from, string(s))
			}
		}
	}
	slices.Sort(from)
	return slices.Compact(from)
}

func (d *doctor) lockdown(host *hca.Host) {
	viaTools := slices.ContainsFunc(host.Devices, func(one *hca.Device) bool {
		return !slices.ContainsFunc(sourcesOf(one), func(s string) bool { return s == string(hca.FromFWCTL) || s == string(hca.FromCard) })
	})
	switch {
	case host.Lockdown && viaTools:
		d.warn(checkLockdown, "boot a kernel with fwctl (Linux 6.15 and later) and load mlx5_fwctl",
			"the kernel is locked down, which blocks the vendor's tools, and an adapter has no other way")
	case host.Lockdown:
		d.ok(checkLockdown, "the kernel is locked down; fwctl works nevertheless")
	default:
		d.ok(checkLockdown, "the kernel is not locked down")
	}
}

// umad looks whether each port can be tried for its SMP firewall.
func (d *doctor) umad() {
	t, err := sysfs.Open(d.config.Sysfs)
	if err != nil {
		d.failed(checkUMAD, fail(ClassHCA, "", err))
		return
	}
	defer t.Close()
	devices, err := t.RDMADevices()
	if err != nil {
		d.failed(checkUMAD, fail(ClassHCA, "", err))
		return
	}
	var problems, good []string
	for i := range devices {
		for _, p := range devices[i].Ports {
			if p.LinkLayer != sysfs.LinkInfiniBand {
				continue
			}
			port := fmt.Sprintf("%s port %d", devices[i].Name, p.Num)
			if p.UMAD == "" {
				problems = append(problems, port+" has no device for MADs")
				continue
			}
			node := filepath.Join(d.infinib, p.UMAD)
			if err := unix.Faccessat(unix.AT_FDCWD, node, unix.R_OK|unix.W_OK, unix.AT_EACCESS); err != nil {
				problems = append(problems, port+": "+node+": "+err.Error())
				continue
			}
			good = append(good, port+" by "+p.UMAD)
		}
	}
	if len(problems) > 0 {
		d.warn(checkUMAD, "load ib_umad; run as root, or in the group portcullis-umad as the unit does",
			"it cannot be tried whether the host can send SMPs: %s", strings.Join(problems, "cannot find out whether the host can send SMPs: %s"))
		return
	}
	d.ok(checkUMAD, "%s", strings.Join(good, "; "))
}
