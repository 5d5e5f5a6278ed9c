package secureboot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"unicode/utf16"

	"portcullis/attest/eventlog"
)

// Variables are what a machine's firmware has of Secure Boot: the content of its
// variables as firmware keeps them, each a series of EFI_SIGNATURE_LISTs.
type Variables struct {
	Enabled bool // SecureBoot is 1
	PK      []byte
	KEK     []byte
	DB      []byte
	DBX     []byte
}

// Measurement is one event that firmware measures into PCR 7.
type Measurement struct {
	Digest eventlog.Digest
	Name   string // of the variable
}

// names are the variables that firmware measures, in their order.
var names = []string{"SecureBoot", "PK", "KEK", "db", "dbx"}

// owner returns the GUID that a variable is named with.
func owner(name string) GUID {
	if name == "db" || name == "dbx" {
		return imageSecurity
	}
	return globalVariable
}

// measure returns the digest of a UEFI_VARIABLE_DATA.
func measure(name string, data []byte) Measurement {
	g := owner(name)
	b := binary.LittleEndian.AppendUint64(g[:], uint64(len(name)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	for _, u := range utf16.Encode([]rune(name)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return Measurement{Digest: sha256.Sum256(append(b, data...)), Name: name}
}

// Config returns what firmware measures before its separator: SecureBoot, PK, KEK,
// db and dbx. Some firmware measures more, such as dbt.
func (v *Variables) Config() []Measurement {
	enabled := byte(0)
	if v.Enabled {
		enabled = 1
	}
	var out []Measurement
	for i, data := range [][]byte{{enabled}, v.PK, v.KEK, v.DB, v.DBX} {
		out = append(out, measure(names[i], data))
	}
	return out
}

// Enabled reports whether a digest is that of the variable SecureBoot, and then
// whether it is enabled.
func Enabled(d eventlog.Digest) (enabled, known bool) {
	switch d {
	case measure("SecureBoot", []byte{1}).Digest:
		return true, true
	case measure("SecureBoot", []byte{0}).Digest:
		return false, true
	default:
		return false, false
	}
}

// ParseVariable takes the content of a variable from a file: signature lists as
// they are, or with the four bytes of attributes before them that Linux's efivarfs
// shows.
func ParseVariable(b []byte) ([]byte, error) {
	_, err := parseLists(b)
	if err != nil && len(b) >= 4 && len(b) <= MaxVariable {
		if _, err := parseLists(b[4:]); err == nil {
			return b[4:], nil
		}
	}
	return b, err
}

const variableHeader = 16 + 8 + 8

// FromLog returns the variables that a log has in the data of its events of PCR 7.
// Data counts only where the event's digest is its hash, which TPMs authenticate.
func FromLog(l *eventlog.Log) (*Variables, error) {
	v := &Variables{}
	found := map[string]bool{}
	for i := range l.Events {
		e := &l.Events[i]
		if e.PCR != 7 || e.Digest != sha256.Sum256(e.Data) {
			continue
		}
		for _, name := range names {
			data, ok := variableData(e.Data, name)
			if !ok || found[name] {
				continue
			}
			found[name] = true
			if err := v.set(name, data); err != nil {
				return nil, fmt.Errorf("variable %s: %w", name, err)
			}
		}
	}
	for _, name := range names {
		if !found[name] {
			return nil, fmt.Errorf("the event log does not show the variable %s", name)
		}
	}
	return v, nil
}

func (v *Variables) set(name string, data []byte) error {
	if name == "SecureBoot" {
		if len(data) != 1 || data[0] > 1 {
			return fmt.Errorf("is %.16x, want 00 or 01", data)
		}
		v.Enabled = data[0] == 1
		return nil
	}
	if _, err := parseLists(data); err != nil {
		return err
	}
	*map[string]*[]byte{"PK": &v.PK, "KEK": &v.KEK, "db": &v.DB, "dbx": &v.DBX}[name] = data
	return nil
}

// variableData returns the data of a UEFI_VARIABLE_DATA of a name.
func variableData(b []byte, name string) ([]byte, bool) {
	g := owner(name)
	n := len(name)
	if len(b) < variableHeader+2*n || !bytes.Equal(b[:16], g[:]) || binary.LittleEndian.Uint64(b[16:]) != uint64(n) {
		return nil, false
	}
	for i := range n {
		if binary.LittleEndian.Uint16(b[variableHeader+2*i:]) != uint16(name[i]) {
			return nil, false
		}
	}
	data := b[variableHeader+2*n:]
	return data, binary.LittleEndian.Uint64(b[24:]) == uint64(len(data))
}
