package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// Link layers as the kernel spells them.
const (
	LinkInfiniBand = "InfiniBand"
	LinkEthernet   = "Ethernet"
)

const rdmaDir = "class/infiniband"

// RDMA is one RDMA device, as its driver describes it. A field that the driver does not report is empty.
type RDMA struct {
	Name            string  // for example mlx5_0; an administrator may rename it
	PCI             Address // function it belongs to
	NodeGUID        ib.GUID // zero: unreadable, and a problem of the tree
	SystemImageGUID ib.GUID
	Firmware        string // fw_ver
	BoardID         string // board_id, the PSID of NVIDIA adapters
	Type            string // hca_type
	Revision        string // hw_rev
	Ports           []Port // ascending by number
}

// InfiniBand reports whether the device has a port of that link layer.
func (d *RDMA) InfiniBand() bool {
	return slices.ContainsFunc(d.Ports, func(p Port) bool { return p.LinkLayer == LinkInfiniBand })
}

// Port is one port of an RDMA device. All but Num and LinkLayer are read for
// InfiniBand ports alone.
type Port struct {
	Num       ib.PortNum
	LinkLayer string
	GUID      ib.GUID      // lower half of GID 0: the one the fabric sees
	State     ib.PortState // zero: not reported
	PhysState ib.PhysState // zero: not reported
	LID       ib.LID
	SMLID     ib.LID
	Rate      string // for example "400 Gb/sec (4X NDR)"
	CapMask   uint32
	PKeys     []ib.PKey // table, by index
	UMAD      string    // device node that takes MADs, for example umad0
	ISSM      string    // device node that makes the port say it has a Subnet Manager
}

// ErrNone means that the kernel has no RDMA device at all.
var ErrNone = errors.New("no RDMA device")

// RDMADevices reads all RDMA devices, ascending by name. Problems stay with
// the tree; a device that has any is given as far as it was read.
func (t *Tree) RDMADevices() ([]RDMA, error) {
	names, err := t.List(rdmaDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNone
	case err != nil:
		t.Problem(rdmaDir, err)
		return nil, nil
	}
	mad := t.madNodes()
	var all []RDMA
	for _, name := range names {
		all = append(all, t.rdma(name, mad))
	}
	return all, nil
}

// rdma reads one device. One without any InfiniBand port, such as a RoCE
// adapter, is not read further than that.
func (t *Tree) rdma(name string, mad map[madPort]madNode) RDMA {
	dir := path.Join(rdmaDir, name)
	d := RDMA{Name: name, PCI: Address(t.Link(path.Join(dir, "device")))}
	d.Ports = t.ports(name, path.Join(dir, "ports"), mad)
	if !d.InfiniBand() {
		return d
	}
	d.NodeGUID = t.guid(path.Join(dir, "node_guid"))
	d.SystemImageGUID = t.guid(path.Join(dir, "sys_image_guid"))
	d.Firmware = t.Optional(path.Join(dir, "fw_ver"))
	d.BoardID = t.Optional(path.Join(dir, "board_id"))
	d.Type = t.Optional(path.Join(dir, "hca_type"))
	d.Revision = t.Optional(path.Join(dir, "hw_rev"))
	return d
}

func (t *Tree) ports(device, dir string, mad map[madPort]madNode) (ports []Port) {
	names, err := t.List(dir)
	if err != nil {
		t.Problem(dir, err)
		return nil
	}
	for _, name := range names {
		at := path.Join(dir, name)
		num, err := strconv.ParseUint(name, 10, 8)
		if err != nil || num == 0 || ib.PortNum(num) == ib.NoPort || name != strconv.FormatUint(num, 10) {
			t.Problem(at, errors.New("is not a port number from 1 to 254"))
			continue
		}
		port := t.port(at, ib.PortNum(num))
		node := mad[madPort{device, port.Num}]
		port.UMAD, port.ISSM = node.umad, node.issm
		ports = append(ports, port)
	}
	slices.SortFunc(ports, func(a, b Port) int { return int(a.Num) - int(b.Num) })
	return ports
}

func (t *Tree) port(dir string, num ib.PortNum) Port {
	at := path.Join(dir, "link_layer")
	p := Port{Num: num, LinkLayer: t.Text(at)}
	switch p.LinkLayer {
	case LinkInfiniBand:
	case LinkEthernet, "":
		return p
	default:
		t.Problem(at, fmt.Errorf("%q, want %s or %s", p.LinkLayer, LinkInfiniBand, LinkEthernet))
		return p
	}
	p.GUID = t.portGUID(path.Join(dir, "gids/0"))
	p.State = ib.PortState(t.number(path.Join(dir, "state"), 8))
	p.PhysState = ib.PhysState(t.number(path.Join(dir, "phys_state"), 8))
	p.LID = ib.LID(t.number(path.Join(dir, "lid"), 16))
	p.SMLID = ib.LID(t.number(path.Join(dir, "sm_lid"), 16))
	p.Rate = t.Optional(path.Join(dir, "rate"))
	p.CapMask = uint32(t.number(path.Join(dir, "cap_mask"), 32))
	p.PKeys = t.pkeys(path.Join(dir, "pkeys"))
	return p
}

// number reads an attribute such as "4: ACTIVE" or "0x1b"; absent is 0.
func (t *Tree) number(name string, bits int) uint64 {
	s := t.Optional(name)
	if s == "" {
		return 0
	}
	digits, _, _ := strings.Cut(s, ":")
	v, err := strconv.ParseUint(digits, 0, bits)
	if err != nil {
		t.Problem(name, fmt.Errorf("%q is not a number of %d bits", s, bits))
		return 0
	}
	return v
}

// pkeys reads a table of P_Keys; its files are named by index, without gaps.
func (t *Tree) pkeys(dir string) []ib.PKey {
	var table []ib.PKey
	for i := range t.names(dir) {
		name := path.Join(dir, strconv.Itoa(i))
		s := t.Text(name)
		if s == "" {
			return nil
		}
		v, err := strconv.ParseUint(s, 0, 16)
		if err != nil {
			t.Problem(name, fmt.Errorf("%q is not a P_Key", s))
			return nil
		}
		table = append(table, ib.PKey(v))
	}
	return table
}

var errGUID = errors.New("no device may have this GUID; set the adapter's GUIDs with its vendor's tools")

func (t *Tree) guid(name string) ib.GUID { return t.validGUID(name, ib.ParseGUID) }

// portGUID takes the port GUID the fabric sees: the lower half of GID 0. It is
// not computed from anything else, since a host can set another one.
func (t *Tree) portGUID(name string) ib.GUID {
	return t.validGUID(name, func(s string) (ib.GUID, error) {
		gid, err := ib.ParseGID(s)
		return gid.GUID(), err
	})
}

// validGUID reads the GUID in a file, 0 where it is empty or holds none that a device
// may have.
func (t *Tree) validGUID(name string, parse func(string) (ib.GUID, error)) ib.GUID {
	s := t.Text(name)
	if s == "" {
		return 0
	}
	g, err := parse(s)
	if err == nil && !g.Valid() {
		err = fmt.Errorf("%s: %w", s, errGUID)
	}
	if err != nil {
		t.Problem(name, err)
		return 0
	}
	return g
}

type madPort struct {
	device string
	port   ib.PortNum
}

type madNode struct{ umad, issm string }

const madDir = "class/infiniband_mad"

// madNodes reads which device nodes belong to which port. The kernel need not
// have any.
func (t *Tree) madNodes() map[madPort]madNode {
	nodes := map[madPort]madNode{}
	for _, name := range t.names(madDir) {
		umad, issm := strings.HasPrefix(name, "umad"), strings.HasPrefix(name, "issm")
		if !umad && !issm {
			continue // abi_version
		}
		at := madPort{
			device: t.Text(path.Join(madDir, name, "ibdev")),
			port:   ib.PortNum(t.number(path.Join(madDir, name, "port"), 8)),
		}
		node := nodes[at]
		if umad {
			node.umad = name
		} else {
			node.issm = name
		}
		nodes[at] = node
	}
	return nodes
}
