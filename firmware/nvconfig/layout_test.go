package nvconfig

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestLayouts checks that no two fields share a bit, no field leaves its item, and no name or address is there twice.
// Every named value must fit its field.
func TestLayouts(t *testing.T) {
	names, items := map[string]bool{}, map[itemKey]bool{}
	for _, l := range Layouts() {
		key := itemKey{l.Class, l.Index}
		if items[key] || l.Class != l.Class.Family() || l.Size%4 != 0 || l.Size == 0 || l.Size > MaxData {
			t.Errorf("%s: class %v index %d size %d", l.Name, l.Class, l.Index, l.Size)
		}
		items[key] = true
		used := make([]bool, 8*l.Size)
		for _, f := range l.Fields {
			if names[f.Name] {
				t.Errorf("%s is there twice", f.Name)
			}
			names[f.Name] = true
			if f.Width > 64 && (f.Bit%8 != 0 || f.Width%8 != 0) {
				t.Errorf("%s: %d bits from %d are no bytes", f.Name, f.Width, f.Bit)
			}
			for bit := f.Bit; bit < f.Bit+f.Width; bit++ {
				if bit >= len(used) || used[bit] {
					t.Fatalf("%s: bit %d is outside of %s or of two fields", f.Name, bit, l.Name)
				}
				used[bit] = true
			}
			if v, ok := LookUp(f.Valid); f.Valid != "" && (!ok || v.Item.Name != l.Name || v.Field.Kind != Flag) {
				t.Errorf("%s counts by %s, which is no flag of %s", f.Name, f.Valid, l.Name)
			}
			for _, v := range f.Values {
				if v.Number>>f.Width != 0 {
					t.Errorf("%s: %s=%d does not fit", f.Name, v.Name, v.Number)
				}
			}
			if (f.Kind == Enum) != (len(f.Values) > 0) {
				t.Errorf("%s: kind %d with %d words", f.Name, f.Kind, len(f.Values))
			}
		}
	}
}

// TestFieldPlaces compares with the places as they are published.
func TestFieldPlaces(t *testing.T) {
	for _, tt := range []struct{ name, value, data string }{
		{"SM_DISABLE", "True", "\x80\x00\x00\x00"},
		{"HOST_PRIV_FLASH_ACCESS", "DISABLE", "\x00\x02" + zeros(14)},
		{"HOST_PRIV_NV_GLOBAL", "DISABLE", "\x00\x80" + zeros(14)},
		{"HOST_PRIV_NV_INTERNAL_CPU", "DISABLE", "\x02" + zeros(15)},
		{"HOST_PRIV_NIC_RESET", "DISABLE", "\x80" + zeros(15)},
		{"HOST_PRIV_LEVEL", "LIMITED", "\x10\x00\x00\x00"},
		{"HOST_DISABLE_RSHIM", "True", "\x00\x00\x00\x08"},
		{"INTERNAL_CPU_RSHIM", "DISABLED", "\x00\x00\x20" + zeros(9)},
		{"NUM_OF_VFS", "258", zeros(6) + "\x01\x02" + zeros(4)},
		{"SRIOV_EN", "true", zeros(4) + "\x80" + zeros(7)},
		{"VIRTUAL_GUID_ERASE_ON_POWERUP", "1", "\x20" + zeros(11)},
		{"VIRTUAL_NODE_GUID", "0x0102030405060708", zeros(4) + "\x01\x02\x03\x04\x05\x06\x07\x08"},
		{"PSID_LOCK", "MT_0000000838", zeros(4) + "MT_0000000838" + zeros(3)},
		{"LINK_TYPE", "IB", "\x00\x00\x00\x04"},
		{"LEGACY_BOOT_PROTOCOL", "ISCSI_WO_FAIL_PXE", "\x00\x05\x00\x00"},
		{"P2P_ORDERING_MODE", "secure_all", "\x00\x00\x30\x00"},
		{"SAFE_MODE_THRESHOLD", "255", "\x00\x00\x00\xff"},
		{"SECURE_HOST_STATE", "LOCKED", "\x01" + zeros(31)},
		{"PROFILE_UUID", "c0ffee00-1122-3344-5566-778899aabbcc", "\xc0\xff\xee\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc" + zeros(8)},
	} {
		p, ok := LookUp(tt.name)
		if !ok {
			t.Fatalf("no parameter is called %s", tt.name)
		}
		data := make([]byte, p.Item.Size)
		if err := p.Field.Set(data, tt.value); err != nil || string(data) != tt.data {
			t.Errorf("%s=%s: %x, %v; want %x", tt.name, tt.value, data, err, tt.data)
		}
		text, err := p.Field.Format(data)
		again := make([]byte, p.Item.Size)
		if err != nil || p.Field.Set(again, text) != nil || !bytes.Equal(again, data) {
			t.Errorf("%s: shown as %q, %v, which is read as %x", tt.name, text, err, again)
		}
	}
}

func zeros(n int) string { return string(make([]byte, n)) }

// TestSetLeavesOtherBits holds the setter of each field to its own bits, on
// random data.
func TestSetLeavesOtherBits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, l := range Layouts() {
		for _, f := range l.Fields {
			before := make([]byte, l.Size)
			for i := range before {
				before[i] = byte(random.Uint32())
			}
			data := slices.Clone(before)
			if f.Width > 64 {
				continue // bytes, which TestFieldPlaces sees
			}
			v := random.Uint64() >> (64 - f.Width)
			if err := f.SetUint(data, v); err != nil {
				t.Fatal(err)
			}
			if got, err := f.Uint(data); err != nil || got != v {
				t.Errorf("%s: %d, %v; want %d", f.Name, got, err, v)
			}
			for bit := range 8 * l.Size {
				if own := bit >= f.Bit && bit < f.Bit+f.Width; !own && (before[bit/8]^data[bit/8])>>(7-bit%8)&1 != 0 {
					t.Errorf("%s changes bit %d", f.Name, bit)
				}
			}
		}
	}
}

func TestFieldRefuses(t *testing.T) {
	for _, tt := range []struct{ name, value string }{
		{"SM_DISABLE", "yes"},
		{"SM_DISABLE", "2"},
		{"HOST_PRIV_LEVEL", "RESTRICTED"},
		{"HOST_PRIV_LEVEL", "4"},
		{"NUM_OF_VFS", "65536"},
		{"NUM_OF_VFS", "-1"},
		{"PSID_LOCK", "MT_00000008380000"},
		{"PSID_LOCK", "MT_\x1b[2J"},
		{"VIRTUAL_NODE_GUID", "0102"},
		{"PROFILE_UUID", "c0ffee00"},
		{"DEVICE_ID", "0x00"},
	} {
		p, _ := LookUp(tt.name)
		data := make([]byte, p.Item.Size)
		if err := p.Field.Set(data, tt.value); err == nil || !bytes.Equal(data, make([]byte, len(data))) {
			t.Errorf("%s=%q: %v, data %x", tt.name, tt.value, err, data)
		}
		if _, err := p.Field.Format(data[:0]); err == nil {
			t.Errorf("%s out of no data: no error", tt.name)
		}
		if err := p.Field.Set(nil, "0"); err == nil {
			t.Errorf("%s into no data: no error", tt.name)
		}
	}
	psid, _ := LookUp("PSID_LOCK")
	hostile := append(make([]byte, 4), "A\x00B\x1b[2J\xff        "[:16]...)
	if text, err := psid.Field.Format(hostile); err != nil || text != `"A\x00B\x1b[2J\xff        "` {
		t.Errorf("hostile text is shown as %s, %v", text, err)
	}
}

// TestPlacesAsPublished compares each place with testdata/places.tsv.
func TestPlacesAsPublished(t *testing.T) {
	text, err := os.ReadFile("testdata/places.tsv")
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, place, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			published[name] = place
		}
	}
	for _, l := range Layouts() {
		for _, f := range l.Fields {
			if strings.HasPrefix(f.Name, "MLNX_FILE") || f.Name == "FILE_DATE" || f.Name == "FILE_TIME" {
				continue // published by digit; TestVectors has them
			}
			dword := f.Bit / 32
			low := 31 - f.Bit%32 - (f.Width - 1)
			if f.Width > 32 {
				low = 0
			}
			if got := fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d", l.Name, l.Class, l.Index, l.Size, 4*dword, low, f.Width); got != published[f.Name] {
				t.Errorf("%s: %q, published is %q", f.Name, got, published[f.Name])
			}
			delete(published, f.Name)
		}
	}
	if len(published) != 0 {
		t.Errorf("not in our table: %v", published)
	}
}
