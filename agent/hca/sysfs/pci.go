package sysfs

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Address is the address of a PCI function, DDDD:BB:DD.F in hexadecimal, for
// example 0000:17:00.0. A domain may have up to eight digits.
type Address string

// ParseAddress checks an address.
func ParseAddress(s string) (Address, error) {
	domain, rest, _ := strings.Cut(s, ":")
	bus, rest, _ := strings.Cut(rest, ":")
	device, function, _ := strings.Cut(rest, ".")
	if len(domain) < 4 || len(domain) > 8 || !hex(domain) || len(bus) != 2 || !hex(bus) ||
		len(device) != 2 || !hex(device) || device > "1f" || len(function) != 1 || function < "0" || function > "7" {
		return "", fmt.Errorf("PCI address %q: want DDDD:BB:DD.F, for example 0000:17:00.0", s)
	}
	return Address(s), nil
}

// Function is the number of the function in its device, 0 to 7.
func (a Address) Function() uint8 {
	if a == "" {
		return 0
	}
	return a[len(a)-1] - '0'
}

// hex reports whether all of s are lower-case hexadecimal digits, as the kernel
// prints them.
func hex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// PCI ids.
const (
	VendorNVIDIA    = 0x15B3 // Mellanox Technologies
	ClassInfiniBand = 0x0207 // network controller, InfiniBand
	ClassEthernet   = 0x0200 // network controller, Ethernet

	// firstAdapter divides device ids of NVIDIA adapters: below it are those of
	// chips whose firmware does not run, for example 0x0218 where ConnectX-7 has
	// 0x1021.
	firstAdapter = 0x1000
)

// Function is one PCI function that is, or may be, an InfiniBand adapter. On a card with two ports each port may be a
// function of its own.
type Function struct {
	Address   Address
	Vendor    uint16
	DeviceID  uint16
	Class     uint16 // class and subclass
	Driver    string // "" without one
	VPD       VPD
	VPDError  error  // why there is no VPD; nil: VPD is what the card says
	FWCTL     string // device node for firmware commands, for example fwctl0; "" without one
	RDMA      []RDMA // devices with an InfiniBand port, ascending by name
	Recovery  bool   // the device id is that of a chip without firmware ("live fish")
	Unrelated bool   // an Ethernet function without any InfiniBand port
}

const pciDir = "bus/pci/devices"

// Functions reads the PCI functions that are InfiniBand adapters or NVIDIA
// adapters of any kind, ascending by address. Virtual functions are left out:
// they have what their physical function has. RDMA devices behind no such
// function are returned as stray. Problems stay with the tree.
func (t *Tree) Functions() (all []Function, stray []RDMA) {
	devices, err := t.RDMADevices()
	if err != nil && !errors.Is(err, ErrNone) {
		t.Problem(rdmaDir, err)
	}
	devices = slices.DeleteFunc(devices, func(d RDMA) bool { return !d.InfiniBand() })
	nodes := t.fwctlNodes()
	for _, name := range t.names(pciDir) {
		address, err := ParseAddress(name)
		if err != nil {
			t.Problem(path.Join(pciDir, name), err)
			continue
		}
		f, ok := t.function(address, devices)
		if !ok {
			continue
		}
		f.FWCTL = nodes[address]
		all = append(all, f)
	}
	for _, d := range devices {
		if !slices.ContainsFunc(all, func(f Function) bool { return f.Address == d.PCI }) && !t.virtual(d.PCI) {
			stray = append(stray, d)
		}
	}
	return all, stray
}

// virtual reports whether a function is a virtual one.
func (t *Tree) virtual(a Address) bool {
	return a != "" && t.Has(path.Join(pciDir, string(a), "physfn"))
}

func (t *Tree) function(address Address, devices []RDMA) (f Function, ours bool) {
	dir := path.Join(pciDir, string(address))
	if t.virtual(address) {
		return f, false
	}
	f = Function{
		Address:  address,
		Vendor:   uint16(t.demanded(path.Join(dir, "vendor"), 16)),
		DeviceID: uint16(t.demanded(path.Join(dir, "device"), 16)),
		Class:    uint16(t.demanded(path.Join(dir, "class"), 24) >> 8),
	}
	for _, d := range devices {
		if d.PCI == address {
			f.RDMA = append(f.RDMA, d)
		}
	}
	f.Recovery = f.Vendor == VendorNVIDIA && f.DeviceID < firstAdapter
	nvidia := f.Vendor == VendorNVIDIA && (f.Class == ClassInfiniBand || f.Class == ClassEthernet || f.Recovery)
	if !nvidia && f.Class != ClassInfiniBand && len(f.RDMA) == 0 {
		return f, false
	}
	f.Unrelated = f.Class == ClassEthernet && len(f.RDMA) == 0 && !f.Recovery
	f.Driver = t.Link(path.Join(dir, "driver"))
	f.VPD, f.VPDError = t.vpd(path.Join(dir, "vpd"))
	return f, true
}

// demanded reads a number that every function has.
func (t *Tree) demanded(name string, bits int) uint64 {
	s := t.Text(name)
	if s == "" {
		return 0
	}
	v, err := strconv.ParseUint(s, 0, bits)
	if err != nil {
		t.Problem(name, fmt.Errorf("%q is not a number of %d bits", s, bits))
	}
	return v
}

func (t *Tree) vpd(name string) (VPD, error) {
	b, err := t.Bytes(name, maxVPD)
	if err != nil {
		return VPD{}, reason(err)
	}
	return ParseVPD(b)
}

const fwctlDir = "class/fwctl"

// fwctlNodes finds the PCI function behind each node of fwctl. A kernel before
// 6.15 has none.
func (t *Tree) fwctlNodes() map[Address]string {
	nodes := map[Address]string{}
	for _, name := range t.names(fwctlDir) {
		at := path.Join(fwctlDir, name)
		target, err := t.root.Readlink(at)
		if err != nil {
			t.Problem(at, err)
			continue
		}
		address, ok := fwctlFunction(target)
		if !ok {
			continue
		}
		if other, twice := nodes[address]; twice {
			t.Problem(at, fmt.Errorf("%s has %s already", address, other))
			continue
		}
		nodes[address] = name
	}
	return nodes
}

// fwctlFunction finds the function in where a node lies, for example
// ../../devices/pci0000:00/0000:17:00.0/fwctl/fwctl0: mlx5_fwctl registers it below
// the function itself, and not below the auxiliary device that it is a driver of.
// Nodes that lie deeper are not those of the function.
func fwctlFunction(target string) (Address, bool) {
	elements := strings.Split(path.Clean(target), "/")
	if len(elements) < 3 {
		return "", false
	}
	elements = elements[len(elements)-3:]
	a, err := ParseAddress(elements[0])
	return a, err == nil && elements[1] == "fwctl"
}
