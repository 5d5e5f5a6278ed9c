package hca

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"portcullis/attest"
	"portcullis/fabricsm/ib"
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
	t, err := openTree(dir)
	if err != nil {
		return []error{fmt.Errorf("procfs: %w", err)}
	}
	defer t.close()
	f.BootID = t.text("sys/kernel/random/boot_id")
	return t.problems
}

func (f *Facts) readSysfs(dir string) []error {
	t, err := openTree(dir)
	if err != nil {
		return []error{fmt.Errorf("sysfs: %w", err)}
	}
	defer t.close()
	f.Board = readBoard(t)
	names, err := t.list("class/infiniband")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.problem("class/infiniband", errNoHCA)
		return t.problems
	case err != nil:
		t.problem("class/infiniband", err)
		return t.problems
	}
	for _, name := range names {
		if h, isInfiniBand := readHCA(t, name); isInfiniBand {
			f.HCAs = append(f.HCAs, h)
		}
	}
	if len(f.HCAs) == 0 && len(t.problems) == 0 {
		t.problem("class/infiniband", errNoHCA)
	}
	return t.problems
}

// readBoard reads the machine's identity. Serial number and UUID are readable
// by root only; what is absent stays empty and inventory decides.
func readBoard(t *tree) attest.Board {
	first := func(names ...string) string {
		for _, n := range names {
			if v := t.optional("class/dmi/id/" + n); v != "" {
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

// readHCA reads one device. A device without any InfiniBand port, such as a
// RoCE adapter, is not ours.
func readHCA(t *tree, name string) (h attest.HCA, isInfiniBand bool) {
	dir := path.Join("class/infiniband", name)
	ports, isInfiniBand := readPorts(t, path.Join(dir, "ports"))
	if !isInfiniBand {
		return attest.HCA{}, false
	}
	return attest.HCA{
		Name:            name,
		NodeGUID:        readGUID(t, path.Join(dir, "node_guid")),
		SystemImageGUID: readGUID(t, path.Join(dir, "sys_image_guid")),
		PSID:            t.optional(path.Join(dir, "board_id")),
		Type:            t.optional(path.Join(dir, "hca_type")),
		Firmware:        t.optional(path.Join(dir, "fw_ver")),
		Ports:           ports,
	}, true
}

var errGUID = errors.New("no device may have this GUID; set the adapter's GUIDs with its vendor's tools")

func readGUID(t *tree, name string) ib.GUID {
	s := t.text(name)
	if s == "" {
		return 0
	}
	g, err := ib.ParseGUID(s)
	if err == nil && !g.Valid() {
		err = fmt.Errorf("%v: %w", g, errGUID)
	}
	if err != nil {
		t.problem(name, err)
		return 0
	}
	return g
}

// readPorts reads the ports of a device, ascending by number.
func readPorts(t *tree, dir string) (ports []attest.Port, isInfiniBand bool) {
	names, err := t.list(dir)
	if err != nil {
		t.problem(dir, err)
		return nil, false
	}
	for _, name := range names {
		at := path.Join(dir, name)
		num, err := strconv.ParseUint(name, 10, 8)
		if err != nil || num == 0 || ib.PortNum(num) == ib.NoPort || name != strconv.FormatUint(num, 10) {
			t.problem(at, errors.New("is not a port number from 1 to 254"))
			continue
		}
		port := readPort(t, at, ib.PortNum(num))
		isInfiniBand = isInfiniBand || port.LinkLayer == attest.LinkInfiniBand
		ports = append(ports, port)
	}
	slices.SortFunc(ports, func(a, b attest.Port) int { return int(a.Num) - int(b.Num) })
	return ports, isInfiniBand
}

func readPort(t *tree, dir string, num ib.PortNum) attest.Port {
	at := path.Join(dir, "link_layer")
	port := attest.Port{Num: num, LinkLayer: t.text(at)}
	switch port.LinkLayer {
	case attest.LinkInfiniBand:
		port.GUID = readPortGUID(t, path.Join(dir, "gids/0"))
	case attest.LinkEthernet, "":
	default:
		t.problem(at, fmt.Errorf("%q, want %s or %s", port.LinkLayer, attest.LinkInfiniBand, attest.LinkEthernet))
	}
	return port
}

// readPortGUID takes the port GUID the fabric sees: the lower half of GID 0.
// It is not computed from anything else, since a host can set another one.
func readPortGUID(t *tree, name string) ib.GUID {
	s := t.text(name)
	if s == "" {
		return 0
	}
	gid, err := ib.ParseGID(s)
	if err == nil && !gid.GUID().Valid() {
		err = fmt.Errorf("%v: %w", gid, errGUID)
	}
	if err != nil {
		t.problem(name, err)
		return 0
	}
	return gid.GUID()
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}
