package softhca

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
)

// AdapterFlags describe the kind of adapter.
type AdapterFlags uint32

// Kinds of adapters.
const (
	Function AdapterFlags = 0x01 // a virtual function: without subnet management
	Plane    AdapterFlags = 0x02 // only subnet management: one plane of a port with several
	Caller   AdapterFlags = 0x04 // the kernel registers it in the name of the program that attaches it
)

// attachSize is the size of the payload of TypeAttach.
const attachSize = 228

// Sizes of its texts, which end with a zero byte.
const (
	nameSize, descriptionSize, hcaTypeSize, boardSize, pciSize = 32, 64, 32, 32, 16
)

// Attach describes an adapter to the kernel.
type Attach struct {
	Name        string // of the device, such as mlx5_0
	Flags       AdapterFlags
	Ports       int // 1 to MaxPorts
	NodeType    ib.NodeType
	PKeys       int           // entries of each P_Key table
	Hold        time.Duration // how long the kernel shows the device without its ports; whole milliseconds
	Vendor      uint32
	Device      uint32
	Revision    uint32
	Firmware    [3]uint16 // major, minor and sub-minor version
	NodeGUID    ib.GUID
	SystemGUID  ib.GUID
	Description string
	HCAType     string // such as MT4129
	Board       string // its PSID
	PCI         string // address of the PCI function that it is on, such as 0001:00:00.0; empty: none
}

// Payload returns the description as it is sent, or an error where the module would refuse it.
func (a *Attach) Payload() ([]byte, error) {
	switch {
	case a.Name == "" || strings.ContainsAny(a.Name, "/\x00"):
		return nil, fmt.Errorf("softhca: %q is no name of a device", a.Name)
	case a.Ports < 1 || a.Ports > MaxPorts:
		return nil, fmt.Errorf("softhca: adapter %s has %d ports: the module knows 1 to %d", a.Name, a.Ports, MaxPorts)
	case a.PKeys < 1 || a.PKeys > MaxPKeys:
		return nil, fmt.Errorf("softhca: adapter %s has P_Key tables of %d entries: the module knows 1 to %d", a.Name, a.PKeys, MaxPKeys)
	case a.Hold < 0 || a.Hold > time.Hour:
		return nil, fmt.Errorf("softhca: adapter %s is half registered for %v: want an hour at most", a.Name, a.Hold)
	}
	le, be := binary.LittleEndian, binary.BigEndian
	b := le.AppendUint32(make([]byte, 0, attachSize), Version)
	b = le.AppendUint32(b, uint32(a.Flags))
	b = append(b, byte(a.Ports), byte(a.NodeType))
	b = le.AppendUint16(b, uint16(a.PKeys))
	for _, v := range []uint32{uint32(a.Hold.Milliseconds()), a.Vendor, a.Device, a.Revision} {
		b = le.AppendUint32(b, v)
	}
	for _, v := range a.Firmware {
		b = le.AppendUint16(b, v)
	}
	b = append(b, 0, 0)
	b = be.AppendUint64(b, uint64(a.NodeGUID))
	b = be.AppendUint64(b, uint64(a.SystemGUID))
	for _, text := range []struct {
		text string
		size int
	}{{a.Name, nameSize}, {a.Description, descriptionSize}, {a.HCAType, hcaTypeSize}, {a.Board, boardSize}, {a.PCI, pciSize}} {
		if len(text.text) >= text.size {
			return nil, fmt.Errorf("softhca: %q is longer than %d bytes", text.text, text.size-1)
		}
		b = append(b, text.text...)
		b = append(b, make([]byte, text.size-len(text.text))...)
	}
	return b, nil
}

// ParseAttach reads the payload of TypeAttach.
func ParseAttach(b []byte) (a Attach, err error) {
	if len(b) != attachSize {
		return a, fmt.Errorf("softhca: description of an adapter with %d bytes, want %d", len(b), attachSize)
	}
	le, be := binary.LittleEndian, binary.BigEndian
	if v := le.Uint32(b); v != Version {
		return a, fmt.Errorf("softhca: version %d of the protocol, want %d", v, Version)
	}
	a = Attach{
		Flags: AdapterFlags(le.Uint32(b[4:])), Ports: int(b[8]), NodeType: ib.NodeType(b[9]), PKeys: int(le.Uint16(b[10:])),
		Hold: time.Duration(le.Uint32(b[12:])) * time.Millisecond, Vendor: le.Uint32(b[16:]), Device: le.Uint32(b[20:]), Revision: le.Uint32(b[24:]),
		NodeGUID: ib.GUID(be.Uint64(b[36:])), SystemGUID: ib.GUID(be.Uint64(b[44:])),
	}
	for i := range a.Firmware {
		a.Firmware[i] = le.Uint16(b[28+2*i:])
	}
	b = b[52:]
	for _, text := range []struct {
		to   *string
		size int
	}{{&a.Name, nameSize}, {&a.Description, descriptionSize}, {&a.HCAType, hcaTypeSize}, {&a.Board, boardSize}, {&a.PCI, pciSize}} {
		s, _, ended := strings.Cut(string(b[:text.size]), "\x00")
		if !ended {
			return Attach{}, errors.New("softhca: a text does not end")
		}
		*text.to, b = s, b[text.size:]
	}
	if _, err := a.Payload(); err != nil {
		return Attach{}, err
	}
	return a, nil
}
