package nvconfig

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// TestHeaders has headers of published files and writes of tools, byte for byte.
func TestHeaders(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bytes  string
		want   Header
		length int
		locked bool
	}{
		{"SM_DISABLE in a file", "110000040000012200000000", Header{Priority: OEM, ReadEnabled: true, Address: GlobalItem(290)}, 4, true},
		{"host of the Arm side", "030002040700008300000000", Header{OverrideEnabled: true, ReadEnabled: true, WriterHost: 1, Address: HostItem(0, 131)}, 4, false},
		{"signature", "330001400600000400000000", Header{Priority: MLNX, OverrideEnabled: true, ReadEnabled: true, Address: FileItemAddress(4)}, 320, false},
		{"all functions", "1100000cc300011100000000", Header{Priority: OEM, ReadEnabled: true, Address: AllFunctionsItem(273)}, 12, true},
		{"read of a current value", "004900040101001200000000", Header{Access: Current, Writer: WriterMlxconfig, Address: PortItem(1, 18)}, 4, false},
		{"default, version 5", "008050040000012200000000", Header{Access: Default, Version: 5, Address: GlobalItem(290)}, 4, false},
		{"OEM that lets others", "120000040000012200000000", Header{Priority: OEM, OverrideEnabled: true, Address: GlobalItem(290)}, 4, false},
	} {
		raw, err := hex.DecodeString(tt.bytes)
		if err != nil {
			t.Fatal(err)
		}
		got, n, err := ParseHeader(raw)
		if err != nil || got != tt.want || n != tt.length || got.Locked() != tt.locked {
			t.Errorf("%s: %+v, %d bytes, locked %v, %v; want %+v, %d, %v", tt.name, got, n, got.Locked(), err, tt.want, tt.length, tt.locked)
		}
		if err := got.Check(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if b := tt.want.Append(nil, tt.length); !bytes.Equal(b, raw) {
			t.Errorf("%s: written as %x, want %s", tt.name, b, tt.bytes)
		}
		for n := range len(raw) {
			if _, _, err := ParseHeader(raw[:n]); err == nil {
				t.Errorf("%s: %d bytes make a header", tt.name, n)
			}
		}
	}
}

// TestHeaderRefuses has bits that a header of ours never has.
func TestHeaderRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ bytes, want string }{
		"bit 31":             {"910000040000012200000000", "reserved bits"},
		"bit 27":             {"190000040000012200000000", "reserved bits"},
		"bit 21":             {"112000040000012200000000", "reserved bits"},
		"dword 2":            {"110000040000012200000001", "reserved bits"},
		"priority 2":         {"210000040000012200000000", "priority 2 is unknown"},
		"access mode 3":      {"11c000040000012200000000", "access mode 3 is unknown"},
		"class 2":            {"110000040200012200000000", "class 0x02 is unknown"},
		"port 0":             {"110000040100001200000000", "ports count from 1"},
		"all ports and one":  {"110000048101001200000000", "names all and one"},
		"all hosts and one":  {"110000048304011100000000", "names all and one"},
		"all functions, one": {"1100000443000511" + "00000000", "names all and one"},
	} {
		raw, err := hex.DecodeString(tt.bytes)
		if err != nil {
			t.Fatal(err)
		}
		h, n, err := ParseHeader(raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if b := h.Append(nil, n); !bytes.Equal(b, raw) {
			t.Errorf("%s: written as %x, want %s: no bit may get lost", name, b, tt.bytes)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		a    Address
		bits uint32
		text string
	}{
		{GlobalItem(290), 0x00000122, "global item 290"},
		{PortItem(2, 18), 0x01020012, "port 2 item 18"},
		{AllPortsItem(18), 0x81000012, "all ports item 18"},
		{HostItem(3, 131), 0x070C0083, "host 3 item 131"},
		{FunctionItem(1, 2, 273), 0x03040911, "host 1 function 2 item 273"},
		{AllFunctionsItem(273), 0xC3000111, "all functions of all hosts item 273"},
		{Address(0x43040111), 0x43040111, "host 1 all functions item 273"},
		{Address(0x83000911), 0x83000911, "all hosts function 2 item 273"},
		{Address(0x09004001), 0x09004001, "module 1 item 1"},
		{FileItemAddress(0xC), 0x0600000C, "file item 12"},
		{Address(0x55000001), 0x55000001, "class 0x55 item 1"},
	} {
		if uint32(tt.a) != tt.bits || tt.a.String() != tt.text {
			t.Errorf("0x%08x, %q; want 0x%08x, %q", uint32(tt.a), tt.a, tt.bits, tt.text)
		}
	}
	f := FunctionItem(63, 255, 1023)
	if f.Host() != 63 || f.Function() != 255 || f.Index() != 1023 || f.Port() != 0 || f.Module() != 0 {
		t.Errorf("%v: host %d function %d index %d", f, f.Host(), f.Function(), f.Index())
	}
}

// TestPriorityOrder: MLNX before OEM before USER, and nothing unknown protects.
func TestPriorityOrder(t *testing.T) {
	order := []Priority{MLNX, OEM, User, 2}
	for i, p := range order {
		for j, q := range order {
			if p.Later(q) != (i > j) {
				t.Errorf("%v later than %v: %v", p, q, p.Later(q))
			}
		}
	}
	if (Header{Priority: 2}).Locked() {
		t.Error("an item of unknown priority is told to be locked")
	}
}
