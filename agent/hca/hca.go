package hca

import (
	"errors"
	"fmt"
	"slices"

	"portcullis/agent/hca/sysfs"
	"portcullis/attest"
)

// Default places of the kernel's trees.
const (
	DefaultSysfs  = "/sys"
	DefaultProcfs = "/proc"
)

// Facts are what the kernel says about this host.
type Facts struct {
	BootID string
	Board  attest.Board
	HCAs   []attest.HCA // ascending by name
}

var (
	errNoHCA = errors.New("no InfiniBand adapter; load its driver (for example mlx5_ib), or check that the port is set to InfiniBand and not Ethernet")
	// ErrIncomplete is the class of every error of Collect.
	ErrIncomplete = errors.New("the host's adapters cannot be read completely")
)

// Collect reads the trees at sysfs and procfs. Its error lists every problem
// with its file.
func Collect(sysfs, procfs string) (*Facts, error) {
	f := &Facts{}
	problems := slices.Concat(f.readProcfs(procfs), f.readSysfs(sysfs))
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w:\n%w", ErrIncomplete, errors.Join(problems...))
	}
	return f, nil
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

func (f *Facts) readSysfs(dir string) []error {
	t, err := sysfs.Open(dir)
	if err != nil {
		return []error{fmt.Errorf("sysfs: %w", err)}
	}
	defer t.Close()
	f.Board = readBoard(t)
	devices, err := t.RDMADevices()
	if err != nil {
		t.Problem("class/infiniband", errNoHCA)
		return t.Problems()
	}
	for _, d := range devices {
		if d.InfiniBand() {
			f.HCAs = append(f.HCAs, statement(d))
		}
	}
	if len(f.HCAs) == 0 && len(t.Problems()) == 0 {
		t.Problem("class/infiniband", errNoHCA)
	}
	return t.Problems()
}

// statement gives a device as statements have it.
func statement(d sysfs.RDMA) attest.HCA {
	h := attest.HCA{
		Name: d.Name, NodeGUID: d.NodeGUID, SystemImageGUID: d.SystemImageGUID,
		PSID: d.BoardID, Type: d.Type, Firmware: attest.Firmware{Running: d.Firmware},
	}
	for _, p := range d.Ports {
		h.Ports = append(h.Ports, attest.Port{Num: p.Num, GUID: p.GUID, LinkLayer: p.LinkLayer})
	}
	return h
}

// readBoard reads the machine's identity. Serial number and UUID are readable
// by root only; what is absent stays empty and inventory decides.
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
