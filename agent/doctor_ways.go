package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"portcullis/agent/hca/fwctl"
	"portcullis/agent/hca/mst"
	"portcullis/agent/hca/sysfs"
)

// ways checks which of the two ways to firmware is open from where this program runs, such as in the sandbox of a unit, and
// what is missing for the other.
func (d *doctor) ways(ctx context.Context) {
	if strings.HasPrefix(d.config.FWCTL, "unix:") {
		d.skip("the adapters are simulated", checkFWCTL, checkTools)
		return
	}
	t, err := sysfs.Open(d.config.Sysfs)
	if err != nil {
		d.skip("the kernel's files cannot be read", checkFWCTL, checkTools)
		return
	}
	functions, _ := t.Functions()
	t.Close()
	functions = slices.DeleteFunc(functions, func(f sysfs.Function) bool { return f.Unrelated || f.Vendor != sysfs.VendorNVIDIA })
	if len(functions) == 0 {
		d.skip("no PCI function is an NVIDIA adapter", checkFWCTL, checkTools)
		return
	}
	d.tools(ctx, functions, d.fwctl(functions))
}

// fwctl opens each adapter's node of fwctl, as a run does. The kernel requires only access to the node. Only the scope
// "debug write full", which is never used, requires a capability (drivers/fwctl/main.c).
func (d *doctor) fwctl(functions []sysfs.Function) (all bool) {
	var good, problems []string
	for _, f := range functions {
		if f.FWCTL == "" || d.config.FWCTL == "" {
			problems = append(problems, string(f.Address)+": the kernel has no node for it")
			continue
		}
		node, err := fwctl.Open(filepath.Join(d.config.FWCTL, f.FWCTL))
		if err != nil {
			problems = append(problems, string(f.Address)+": "+err.Error())
			continue
		}
		_ = node.Close() // nothing was sent
		good = append(good, string(f.Address)+" by "+f.FWCTL)
	}
	if len(problems) > 0 {
		d.warn(checkFWCTL, "load mlx5_fwctl (Linux 6.15 and later); the account must be able to read and write the node, and a unit needs DeviceAllow=char-fwctl rw; no capability is needed",
			"not every adapter can be locked: %s", strings.Join(problems, "; "))
		return false
	}
	d.ok(checkFWCTL, "%s", strings.Join(good, ", "))
	return true
}

// tools looks whether the vendor's tools may do what they do.
func (d *doctor) tools(ctx context.Context, functions []sysfs.Function, fwctlLeads bool) {
	if !d.config.VendorTools {
		d.ok(checkTools, "they are switched off (vendor_tools: false)")
		return
	}
	var missing []string
	name := ""
	if s, err := mst.Find(ctx, mst.Folders()); err != nil {
		missing = append(missing, err.Error())
	} else {
		name = s.Name + " " + s.Version.String()
	}
	here, err := whatToolsNeed(d.config.Sysfs, functions)
	if err != nil {
		missing = append(missing, err.Error())
	}
	missing = append(missing, here.missing()...)
	switch {
	case len(missing) == 0:
		d.ok(checkTools, "%s may access the firmware", name)
	case fwctlLeads:
		d.ok(checkTools, "fwctl reaches every adapter, so they are not needed; they lack: %s", strings.Join(missing, "; "))
	default:
		d.warn(checkTools, "use a kernel with fwctl, or in the unit the drop-in /usr/share/portcullis/vendor-tools.conf",
			"they cannot replace fwctl; they lack: %s", strings.Join(missing, "; "))
	}
}

// toolsNeed is what the vendor's tools need of where they run.
type toolsNeed struct {
	root   bool
	admin  bool     // CAP_SYS_ADMIN
	closed []string // files of configuration space that cannot be written, and why
}

// whatToolsNeed looks at this process, from which tools inherit.
func whatToolsNeed(sysfs string, functions []sysfs.Function) (toolsNeed, error) {
	n := toolsNeed{root: os.Geteuid() == 0}
	for _, f := range functions {
		file := filepath.Join(sysfs, "bus/pci/devices", string(f.Address), "config")
		if err := unix.Faccessat(unix.AT_FDCWD, file, unix.R_OK|unix.W_OK, unix.AT_EACCESS); err != nil {
			n.closed = append(n.closed, fmt.Sprintf("%s: %v", file, err))
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&head, &sets[0]); err != nil {
		return n, errors.New("cannot find out which capabilities there are: " + err.Error())
	}
	n.admin = sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
	return n, nil
}

// missing lists the needs of the tools that are not met. mstflint opens devices for root only (mtcr_ul). The kernel shows
// configuration space beyond 64 bytes, which holds the gateway to the firmware, only with CAP_SYS_ADMIN (pci-sysfs.c).
func (n *toolsNeed) missing() (out []string) {
	if !n.root {
		out = append(out, "the account root")
	}
	if !n.admin {
		out = append(out, "the capability CAP_SYS_ADMIN")
	}
	if len(n.closed) > 0 {
		out = append(out, "writing to configuration space ("+strings.Join(n.closed, ", ")+")")
	}
	return out
}
