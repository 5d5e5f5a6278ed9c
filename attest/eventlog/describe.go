package eventlog

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Type is what a host says an event is.
type Type uint32

// Types that matter to reading or to people.
const (
	PostCode          Type = 0x00000001
	NoAction          Type = 0x00000003
	SeparatorType     Type = 0x00000004
	Action            Type = 0x00000005
	CRTMVersion       Type = 0x00000008
	IPL               Type = 0x0000000d
	VariableConfig    Type = 0x80000001
	VariableBoot      Type = 0x80000002
	BootApplication   Type = 0x80000003
	GPT               Type = 0x80000006
	EFIAction         Type = 0x80000007
	FirmwareBlob2     Type = 0x8000000a
	VariableBoot2     Type = 0x8000000c
	HCRTM             Type = 0x80000010
	VariableAuthority Type = 0x800000e0
)

const (
	maxDescription      = 80         // characters
	variableHeaderBytes = 16 + 8 + 8 // GUID, characters of the name, bytes of the data
)

var typeNames = map[Type]string{
	0x00000000: "EV_PREBOOT_CERT", PostCode: "EV_POST_CODE", NoAction: "EV_NO_ACTION", SeparatorType: "EV_SEPARATOR",
	Action: "EV_ACTION", 0x00000006: "EV_EVENT_TAG", 0x00000007: "EV_S_CRTM_CONTENTS", CRTMVersion: "EV_S_CRTM_VERSION",
	0x00000009: "EV_CPU_MICROCODE", 0x0000000a: "EV_PLATFORM_CONFIG_FLAGS", 0x0000000b: "EV_TABLE_OF_DEVICES",
	0x0000000c: "EV_COMPACT_HASH", IPL: "EV_IPL", 0x0000000e: "EV_IPL_PARTITION_DATA",
	0x0000000f: "EV_NONHOST_CODE", 0x00000010: "EV_NONHOST_CONFIG", 0x00000011: "EV_NONHOST_INFO",
	0x00000012:     "EV_OMIT_BOOT_DEVICE_EVENTS",
	VariableConfig: "EV_EFI_VARIABLE_DRIVER_CONFIG", VariableBoot: "EV_EFI_VARIABLE_BOOT",
	BootApplication: "EV_EFI_BOOT_SERVICES_APPLICATION", 0x80000004: "EV_EFI_BOOT_SERVICES_DRIVER",
	0x80000005: "EV_EFI_RUNTIME_SERVICES_DRIVER", GPT: "EV_EFI_GPT_EVENT", EFIAction: "EV_EFI_ACTION",
	0x80000008: "EV_EFI_PLATFORM_FIRMWARE_BLOB", 0x80000009: "EV_EFI_HANDOFF_TABLES",
	FirmwareBlob2: "EV_EFI_PLATFORM_FIRMWARE_BLOB2", 0x8000000b: "EV_EFI_HANDOFF_TABLES2",
	VariableBoot2: "EV_EFI_VARIABLE_BOOT2", HCRTM: "EV_EFI_HCRTM_EVENT",
	VariableAuthority: "EV_EFI_VARIABLE_AUTHORITY", 0x800000e1: "EV_EFI_SPDM_FIRMWARE_BLOB",
	0x800000e2: "EV_EFI_SPDM_FIRMWARE_CONFIG",
}

// String names the type as the profile does.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("event type 0x%08x", uint32(t))
}

// texts read what data of a type says; of others, nothing is said.
var texts = map[Type]func([]byte) string{
	Action: plainText, EFIAction: plainText, IPL: plainText, PostCode: plainText, CRTMVersion: decodeUTF16,
	VariableConfig: variableName, VariableBoot: variableName, VariableBoot2: variableName, VariableAuthority: variableName,
}

func plainText(b []byte) string { return string(b) }

// Describe says in printable ASCII what the host claims the event to be.
func (e *Event) Describe() string {
	read, ok := texts[e.Type]
	if !ok {
		return e.Type.String()
	}
	return strings.TrimRight(e.Type.String()+" "+printable(read(e.Data)), " ")
}

// briefData is enough of an event's data to describe it.
const briefData = variableHeaderBytes + 2*maxDescription

// Brief returns the part of the data that Describe reads.
func (e *Event) Brief() []byte {
	if texts[e.Type] == nil {
		return nil
	}
	return e.Data[:min(len(e.Data), briefData)]
}

// variableName reads the name out of a UEFI_VARIABLE_DATA, "" if there is none.
func variableName(b []byte) string {
	if len(b) < variableHeaderBytes {
		return ""
	}
	n := min(binary.LittleEndian.Uint64(b[16:]), uint64(len(b)-variableHeaderBytes)/2)
	return decodeUTF16(b[variableHeaderBytes : variableHeaderBytes+2*int(n)])
}

func decodeUTF16(b []byte) string {
	units := make([]uint16, 0, min(len(b)/2, maxDescription))
	for len(b) >= 2 && len(units) < maxDescription {
		units = append(units, binary.LittleEndian.Uint16(b))
		b = b[2:]
	}
	return string(utf16.Decode(units))
}

// printable leaves out what a terminal might obey.
func printable(s string) string {
	var out strings.Builder
	for _, r := range strings.TrimRight(s, "\x00") {
		if out.Len() == maxDescription {
			break
		}
		if r < ' ' || r > '~' {
			r = '?'
		}
		out.WriteRune(r)
	}
	return out.String()
}
