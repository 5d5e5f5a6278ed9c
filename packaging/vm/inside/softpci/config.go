//go:build vm

package softpci

import (
	"encoding/binary"
	"fmt"

	"portcullis/agent/hca/sysfs"
)

// Config is what a function is to the machine.
type Config struct {
	DeviceID   uint16 // of the PCI function
	HardwareID uint32 // of the chip
	VPD        sysfs.VPD
	FWCTL      bool // it has a device node of fwctl
}

// ConnectX7 returns the function of a ConnectX-7 with that serial number.
func ConnectX7(serial string) Config {
	return Config{
		DeviceID: 0x1021, HardwareID: 0x0218,
		VPD: sysfs.VPD{Name: "NVIDIA ConnectX-7 HHHL Adapter card; simulated", Part: "MCX75310AAS-NEAT", Serial: serial, Revision: "A5", UUID: "0f1e2d3c4b5a69788796a5b4c3d2e1f0"},
	}
}

// Sizes and offsets, of softpci.h and of the configuration space that encode makes.
const (
	version     = 1
	configSize  = 256
	maxWords    = 16
	maxVPD      = 1024
	mailboxSize = 0x340 // what ConnectX-7 has

	capExpress = 0x60
	capVPD     = 0x48
	capGateway = 0xc0
)

// Registers of the configuration space beside the gateway's ("CR space").
var words = []struct{ address, value uint32 }{
	{0xb5f04, 0}, // bit 31: the firmware is not ready
	{0x00000, 0},
}

const addressHardwareID = 0xf0014

func (c Config) encode() ([]byte, error) {
	vpd, err := encodeVPD(c.VPD)
	if err != nil {
		return nil, err
	}
	var config, writable [configSize]byte
	c.header(&config, &writable)
	express(&config, &writable)
	put(config[capVPD:], 0x03, capGateway) // VPD
	put(writable[capVPD:], 0, 0, 0xff, 0xff)
	put(config[capGateway:], 0x09, 0, 0x18) // vendor specific
	p := make([]byte, 0, 1692)
	le := binary.LittleEndian
	flags := uint32(0)
	if c.FWCTL {
		flags = 1
	}
	for _, v := range []uint32{version, flags, capGateway, capVPD, uint32(len(vpd)), mailboxSize, uint32(len(words) + 1)} {
		p = le.AppendUint32(p, v)
	}
	p = append(append(p, config[:]...), writable[:]...)
	var list [maxWords * 8]byte
	le.PutUint32(list[0:], addressHardwareID)
	le.PutUint32(list[4:], c.HardwareID)
	for i, w := range words {
		le.PutUint32(list[8*(i+1):], w.address)
		le.PutUint32(list[8*(i+1)+4:], w.value)
	}
	p = append(p, list[:]...)
	return append(p, append(vpd, make([]byte, maxVPD-len(vpd))...)...), nil
}

// header fills what every function has.
func (c Config) header(config, writable *[configSize]byte) {
	le := binary.LittleEndian
	le.PutUint16(config[0x00:], sysfs.VendorNVIDIA)
	le.PutUint16(config[0x02:], c.DeviceID)
	put(writable[0x04:], 0x47, 0x05)     // command
	put(config[0x06:], 0x10)             // status: there are capabilities
	put(config[0x09:], 0x00, 0x07, 0x02) // class: InfiniBand
	put(writable[0x0c:], 0xff)           // size of a cache line
	le.PutUint16(config[0x2c:], sysfs.VendorNVIDIA)
	le.PutUint16(config[0x2e:], 0x0041)
	put(config[0x34:], capExpress)
	put(writable[0x3c:], 0xff) // interrupt line
}

// express fills the capability of an endpoint with 16 lanes of 32 GT/s.
func express(config, writable *[configSize]byte) {
	le := binary.LittleEndian
	at := config[capExpress:]
	put(at, 0x10, capVPD)
	le.PutUint16(at[0x02:], 0x0002)     // version 2, endpoint
	le.PutUint32(at[0x0c:], 0x00000105) // link: 16 lanes, 32 GT/s
	le.PutUint16(at[0x12:], 0x0105)     // the same, as it is
	le.PutUint32(at[0x2c:], 0x0000003e) // speeds up to that
	put(writable[capExpress+0x08:], 0xff, 0xff)
	put(writable[capExpress+0x10:], 0xff, 0x0f)
	put(writable[capExpress+0x28:], 0xff, 0xff)
}

func put(at []byte, b ...byte) { copy(at, b) }

// encodeVPD writes vital product data as ParseVPD reads it.
func encodeVPD(v sysfs.VPD) ([]byte, error) {
	p := append([]byte{0x82}, binary.LittleEndian.AppendUint16(nil, uint16(len(v.Name)))...)
	p = append(p, v.Name...)
	var fields []byte
	for _, f := range []struct{ keyword, value string }{{"PN", v.Part}, {"EC", v.Revision}, {"SN", v.Serial}, {"V3", v.UUID}} {
		if len(f.value) > 255 {
			return nil, fmt.Errorf("VPD keyword %s has %d bytes, at most 255 are possible", f.keyword, len(f.value))
		}
		fields = append(append(fields, f.keyword...), byte(len(f.value)))
		fields = append(fields, f.value...)
	}
	fields = append(fields, 'R', 'V', 1, 0)
	p = append(binary.LittleEndian.AppendUint16(append(p, 0x90), uint16(len(fields))), fields...)
	var sum byte
	for _, b := range p {
		sum += b
	}
	p[len(p)-1] = -sum
	p = append(p, 0x78)
	if len(p) > maxVPD {
		return nil, fmt.Errorf("VPD has %d bytes, at most %d are possible", len(p), maxVPD)
	}
	return p, nil
}
