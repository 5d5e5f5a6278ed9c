package eventlogtest

import (
	"unicode/utf16"

	"portcullis/attest/eventlog"
)

// Machine is a server whose firmware measures the boot. A policy checks Firmware, Keys, Image and CommandLine; machines of
// one model differ in MAC and Settings.
type Machine struct {
	Firmware    string   // version
	Settings    string   // firmware setup
	MAC         string   // in the network boot option
	Options     []string // further boot options
	Keys        string   // Secure Boot's
	Image       string   // the boot loader
	CommandLine string   // of the kernel, in PCR 9 and 12
	Banks       []Bank   // SHA-1, SHA-256 and SHA-384 when nil
	Locality    byte     // of TPM2_Startup; 0 is not logged
}

// Example is a machine as it is delivered.
func Example() Machine {
	return Machine{
		Firmware: "2.19.1", Settings: "default", MAC: "00:00:5e:00:53:01",
		Keys: "example keys", Image: "provisioning image 7", CommandLine: "root=/dev/ram0 quiet",
	}
}

// Boot is the measurements of a boot as firmware of our days makes them: the
// separators of PCR 0 to 6 together, then boot options and the boot loader.
func (m *Machine) Boot() *Writer {
	w := &Writer{Banks: m.Banks}
	if m.Banks == nil {
		w.Banks = []Bank{SHA1, SHA256, SHA384}
	}
	if m.Locality != 0 {
		w.NoAction(0, append([]byte("StartupLocality\x00"), m.Locality))
	}
	w.Measure(0, eventlog.CRTMVersion, utf16le("Example "+m.Firmware+"\x00"))
	w.MeasureOf(0, eventlog.FirmwareBlob2, []byte("firmware volume "+m.Firmware), blob2("DXE"))
	m.secureBoot(w)
	w.MeasureOf(2, 0x80000004, []byte("option ROM "+m.Firmware), imageLoad(0x6000_0000))
	w.MeasureOf(1, 0x80000009, []byte("SMBIOS "+m.Settings), le64(nil, 0))
	w.Measure(1, eventlog.VariableBoot, variable("BootOrder", []byte{0, 0, 1, 0}))
	w.Measure(1, eventlog.VariableBoot, variable("Boot0000", []byte("PXE "+m.MAC)))
	for _, o := range m.Options {
		w.Measure(1, eventlog.VariableBoot, variable("Boot0001", []byte(o)))
	}
	w.Measure(4, eventlog.EFIAction, []byte("Calling EFI Application from Boot Option"))
	for pcr := range 7 {
		w.Measure(pcr, eventlog.SeparatorType, make([]byte, 4))
	}
	w.MeasureOf(5, eventlog.GPT, []byte("partition table"), gpt())
	w.Measure(7, eventlog.VariableAuthority, variable("db", []byte(m.Keys)))
	w.MeasureOf(4, eventlog.BootApplication, []byte(m.Image), imageLoad(0x7000_0000))
	w.Measure(9, eventlog.IPL, []byte("initrd of "+m.Image))
	w.MeasureOf(9, eventlog.IPL, utf16le(m.CommandLine), []byte(m.CommandLine))
	w.MeasureOf(12, eventlog.IPL, utf16le(m.CommandLine), utf16le(m.CommandLine))
	w.Measure(5, eventlog.EFIAction, []byte("Exit Boot Services Invocation"))
	w.Measure(5, eventlog.EFIAction, []byte("Exit Boot Services Returned with Success"))
	return w
}

func (m *Machine) secureBoot(w *Writer) {
	w.Measure(7, eventlog.VariableConfig, variable("SecureBoot", []byte{1}))
	for _, name := range []string{"PK", "KEK", "db", "dbx"} {
		w.Measure(7, eventlog.VariableConfig, variable(name, []byte(name+" "+m.Keys)))
	}
	w.Measure(7, eventlog.SeparatorType, make([]byte, 4))
}

func utf16le(s string) (out []byte) {
	for _, u := range utf16.Encode([]rune(s)) {
		out = le16(out, u)
	}
	return out
}

// variable is a UEFI_VARIABLE_DATA of a GUID of ours.
func variable(name string, data []byte) []byte {
	b := []byte{0x61, 0xdf, 0xe4, 0x8b, 0xca, 0x93, 0xd2, 0x11, 0xaa, 0x0d, 0x00, 0xe0, 0x98, 0x03, 0x2b, 0x8c}
	b = le64(le64(b, uint64(len(name))), uint64(len(data)))
	return append(append(b, utf16le(name)...), data...)
}

// imageLoad is a UEFI_IMAGE_LOAD_EVENT with a device path that ends at once.
func imageLoad(address uint64) []byte {
	path := []byte{0x7f, 0xff, 0x04, 0x00}
	return append(le64(le64(le64(le64(nil, address), 0x1000), 0), uint64(len(path))), path...)
}

// blob2 is a UEFI_PLATFORM_FIRMWARE_BLOB2.
func blob2(name string) []byte {
	b := append([]byte{byte(len(name))}, name...)
	return le64(le64(b, 0x80_0000), 0x10_0000)
}

// gpt is a UEFI_GPT_DATA without partitions.
func gpt() []byte {
	b := append([]byte("EFI PART"), 0, 0, 1, 0)
	b = le32(le32(le32(b, 92), 0), 0)
	b = le64(le64(le64(le64(b, 1), 0xff), 34), 0xde)
	b = append(b, make([]byte, 16)...)
	b = le32(le32(le32(le64(b, 2), 0), 128), 0)
	return le64(b, 0)
}
