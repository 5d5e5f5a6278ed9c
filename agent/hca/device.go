package hca

import (
	"fmt"
	"strconv"
	"strings"

	"portcullis/agent/hca/register"
	"portcullis/agent/hca/sysfs"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// Version is a firmware version. The zero Version is none.
type Version struct{ Major, Minor, SubMinor uint32 }

// String returns it as the vendor prints it, for example 28.43.1014 or 16.35.0002.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%04d", v.Major, v.Minor, v.SubMinor) }

// ParseVersion reads three dotted decimal numbers; leading zeros do not count.
func ParseVersion(s string) (Version, error) {
	var n [3]uint32
	parts := strings.Split(s, ".")
	if len(parts) != len(n) {
		return Version{}, fmt.Errorf("firmware version %q: want three dotted numbers, for example 28.43.1014", s)
	}
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 32)
		if err != nil || len(p) > 10 || p[0] == '+' {
			return Version{}, fmt.Errorf("firmware version %q: want three dotted numbers, for example 28.43.1014", s)
		}
		n[i] = uint32(v)
	}
	return Version{n[0], n[1], n[2]}, nil
}

// MAC is a base MAC address of manufacture.
type MAC uint64

// String returns 12 lower-case hexadecimal digits.
func (m MAC) String() string { return fmt.Sprintf("%012x", uint64(m)) }

// Number is a number that may be zero and known.
type Number uint32

// DeviceID is a PCI device id, or the id in recovery mode.
type DeviceID uint16

func (d DeviceID) String() string { return fmt.Sprintf("0x%04x", uint16(d)) }

// Device is what is known of one adapter: one PCI function with its InfiniBand
// ports.
type Device struct {
	PCI  sysfs.Address // "" for a device without a function
	Name string        // of the RDMA device, for example mlx5_0; "" without a driver

	Serial     Fact[string]
	PartNumber Fact[string]
	DeviceID   Fact[DeviceID]
	HardwareID Fact[DeviceID]

	NodeGUID        Fact[ib.GUID]
	SystemImageGUID Fact[ib.GUID]
	BaseGUID        Fact[ib.GUID]       // of manufacture
	BaseMAC         Fact[MAC]           // of manufacture
	AlternateGUID   Fact[attest.Answer] // whether the host assigned another GUID than that of manufacture

	PSID            Fact[string]
	OrigPSID        Fact[string] // of manufacture, reported only where it is another one
	Running         Fact[Version]
	Pending         Fact[Version] // after the next reset; that of Running where none waits
	LifeCycle       Fact[attest.LifeCycle]
	SecureBoot      Fact[attest.Answer]
	Encryption      Fact[attest.Answer]
	Development     Fact[attest.Answer] // the chip, not the firmware, is one for development
	Recovery        Fact[attest.Answer] // "live fish": the firmware does not run
	Attributes      Fact[string]        // words, joined by ", "; "" none
	SecurityVersion Fact[Number]        // of the image that runs
	RollbackFloor   Fact[Number]        // burned into the chip

	MLOCK  Fact[register.LockState]
	Tokens []Token // of every kind that the device has
	Ports  []Port  // InfiniBand ports, ascending by number

	Ethernet []ib.PortNum // ports of that link layer, ascending

	// Registers are MGIR and MFSV as they were read, for a digest.
	Registers []byte
	// Type is the driver's name of the chip.
	Type string
	// NoNVIDIA says that the adapter is of a maker whose firmware this product
	// cannot judge.
	NoNVIDIA bool
}

// Token is one kind of token session.
type Token struct {
	Kind    register.Session
	Session Fact[attest.Answer] // open, or a challenge is out
}

// Port is one InfiniBand port.
type Port struct {
	Num    ib.PortNum
	GUID   Fact[ib.GUID]       // that the fabric sees
	HasSMI Fact[attest.Answer] // the host has queue pair 0 there
}

// Lines returns every fact as text, in fixed order.
func (d *Device) Lines() []Line {
	lines := []Line{
		d.Serial.line("serial"), d.PartNumber.line("part_number"), d.DeviceID.line("device_id"),
		d.HardwareID.line("hardware_id"), d.NodeGUID.line("node_guid"), d.SystemImageGUID.line("system_image_guid"),
		d.BaseGUID.line("base_guid"), d.BaseMAC.line("base_mac"), d.AlternateGUID.line("alternate_guid"),
		d.PSID.line("psid"), d.Running.line("running"), d.Pending.line("pending"), d.LifeCycle.line("life_cycle"),
		d.SecureBoot.line("secure_boot"), d.Encryption.line("encryption"), d.Development.line("development"),
		d.Recovery.line("recovery"), d.Attributes.line("attributes"), d.SecurityVersion.line("security_version"),
		d.RollbackFloor.line("rollback_floor"), d.MLOCK.line("mlock"),
	}
	if len(d.OrigPSID.Readings) > 0 {
		lines = append(lines, d.OrigPSID.line("orig_psid"))
	}
	for i := range d.Tokens {
		t := &d.Tokens[i]
		lines = append(lines, t.Session.line("token_"+tokenKind(t.Kind)))
	}
	for i := range d.Ports {
		p := &d.Ports[i]
		at := fmt.Sprintf("port_%d_", p.Num)
		lines = append(lines, p.GUID.line(at+"guid"), p.HasSMI.line(at+"has_smi"))
	}
	return lines
}

// tokenKind is a kind of token as statements spell it.
func tokenKind(s register.Session) string {
	return strings.ToLower(strings.ReplaceAll(s.String(), " ", "-"))
}

func answer(yes bool) attest.Answer {
	if yes {
		return attest.Yes
	}
	return attest.No
}
