package hca

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"portcullis/agent/hca/sysfs"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// Default places of the kernel's trees.
const (
	DefaultSysfs  = "/sys"
	DefaultProcfs = "/proc"
)

// Facts are what is known of this host.
type Facts struct {
	BootID string
	Board  attest.Board
	HCAs   []attest.HCA  // ascending by name
	Tools  []attest.Tool // of the vendor's, that were run
}

var (
	errNoHCA = errors.New("no InfiniBand adapter; load its driver (for example mlx5_ib), or check that the port is set to InfiniBand and not Ethernet")
	// ErrIncomplete is the class of every error of Collect.
	ErrIncomplete = errors.New("the host's adapters cannot be read completely")
)

// Collect reads the host: board and boot from the kernel's trees, and each adapter in every way there is. A fact that the
// firmware or a tool does not report is recorded as unknown. An adapter without a driver, port or GUID is an error, which
// lists every problem with its place. Without a site no assurance level is reached.
func Collect(ctx context.Context, w Ways, procfs string, site Site) (*Facts, error) {
	f := &Facts{}
	problems := slices.Concat(f.readProcfs(procfs), f.readBoard(w.Sysfs))
	host, err := ReadHost(ctx, w)
	if err != nil {
		problems = append(problems, err)
	} else {
		problems = append(problems, host.Problems...)
		problems = append(problems, f.readAdapters(host, site)...)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w:\n%w", ErrIncomplete, errors.Join(problems...))
	}
	return f, nil
}

// BootID reads the kernel's name of this boot from procfs.
func BootID(procfs string) (string, error) {
	f := &Facts{}
	err := errors.Join(f.readProcfs(procfs)...)
	return f.BootID, err
}

func (f *Facts) readProcfs(dir string) []error {
	t, err := sysfs.Open(dir)
	if err != nil {
		return []error{fmt.Errorf("procfs: %w", err)}
	}
	defer t.Close()
	f.BootID = t.Text("sys/kernel/random/boot_id")
	return t.Problems()
}

func (f *Facts) readBoard(dir string) []error {
	t, err := sysfs.Open(dir)
	if err != nil {
		return nil // ReadHost says so
	}
	defer t.Close()
	f.Board = readBoard(t)
	return t.Problems()
}

// readAdapters takes up the adapters, none left out.
func (f *Facts) readAdapters(h *Host, site Site) (problems []error) {
	f.Tools = h.Tools
	for _, d := range h.Devices {
		if d.Name == "" {
			problems = append(problems, fmt.Errorf("adapter %s: no RDMA device belongs to it: load its driver (for example mlx5_ib), or burn its firmware again if it is in recovery mode", d.PCI))
			continue
		}
		if unknown := d.unknownGUIDs(); len(unknown) > 0 {
			problems = append(problems, unknown...)
			continue
		}
		f.HCAs = append(f.HCAs, d.Statement(d.Judge(site)))
	}
	slices.SortFunc(f.HCAs, func(a, b attest.HCA) int { return cmp.Compare(a.Name, b.Name) })
	return problems
}

// unknownGUIDs reports which GUIDs are unknown, or reported differently by driver and firmware. A statement cannot name
// such an adapter.
func (d *Device) unknownGUIDs() (problems []error) {
	check := func(name string, fact *Fact[ib.GUID]) {
		if g, ok := fact.Value(); !ok || !g.Valid() {
			reason, detail := fact.Why()
			problems = append(problems, fmt.Errorf("adapter %s: %s %v is not valid, or not known: %s %s", d.Name, name, g, reason, detail))
		}
	}
	check("node_guid", &d.NodeGUID)
	check("system_image_guid", &d.SystemImageGUID)
	for i := range d.Ports {
		check(fmt.Sprintf("port_%d_guid", d.Ports[i].Num), &d.Ports[i].GUID)
	}
	return problems
}

// readBoard reads the machine's identity. Serial number and UUID are readable by root only. An absent value stays empty,
// and inventory decides.
func readBoard(t *sysfs.Tree) attest.Board {
	first := func(names ...string) string {
		for _, n := range names {
			if v := t.Optional("class/dmi/id/" + n); v != "" {
				return v
			}
		}
		return ""
	}
	return attest.Board{
		Vendor:      first("board_vendor", "sys_vendor"),
		Name:        first("board_name", "product_name"),
		Serial:      first("board_serial", "product_serial"),
		ProductUUID: first("product_uuid"),
	}
}
