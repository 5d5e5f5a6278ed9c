package devlink

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	familyID = 20
	device   = "0000:17:00.0"
)

// encode makes attributes.
func encode(t testing.TB, fill func(e *netlink.AttributeEncoder)) []byte {
	t.Helper()
	e := netlink.NewAttributeEncoder()
	fill(e)
	b, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func nested(e *netlink.AttributeEncoder, kind uint16, name, value string) {
	e.Nested(kind, func(n *netlink.AttributeEncoder) error {
		n.String(attrVersionName, name)
		n.String(attrVersionValue, value)
		return nil
	})
}

// connectX7 is what mlx5_core answers for one (devlink-info of mlx5.rst).
func connectX7(t testing.TB) []byte {
	return encode(t, func(e *netlink.AttributeEncoder) {
		e.String(attrBus, "pci")
		e.String(attrDevice, device)
		e.String(attrDriver, "mlx5_core")
		e.String(attrSerial, "b83fd2030000a100")
		e.String(attrBoardSerial, "MT2244XZ0123")
		nested(e, attrVersionFixed, "fw.psid", "MT_0000000838")
		nested(e, attrVersionRunning, "fw.version", "28.43.1014")
		nested(e, attrVersionRunning, "fw", "28.43.1014")
		nested(e, attrVersionStored, "fw.version", "28.39.1002")
		nested(e, attrVersionStored, "fw", "28.39.1002")
		e.Uint32(200, 7) // of a newer kernel
	})
}

// kernel answers requests for information.
func kernel(t *testing.T, answer func() ([]genetlink.Message, error)) *Conn {
	t.Helper()
	c := genltest.Dial(genltest.ServeFamily(
		genetlink.Family{ID: familyID, Name: familyName, Version: 1},
		func(g genetlink.Message, _ netlink.Message) ([]genetlink.Message, error) {
			if g.Header == (genetlink.Header{}) { // no request: the reader wants more
				return nil, io.EOF
			}
			if g.Header.Command != commandGet || g.Header.Version != 1 {
				t.Errorf("header %+v", g.Header)
			}
			want := encode(t, func(e *netlink.AttributeEncoder) { e.String(attrBus, "pci"); e.String(attrDevice, device) })
			if diff := cmp.Diff(g.Data, want); diff != "" {
				t.Errorf("request (-got +want):\n%s", diff)
			}
			return answer()
		}))
	conn, err := open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestInfo(t *testing.T) {
	t.Parallel()
	c := kernel(t, func() ([]genetlink.Message, error) { return []genetlink.Message{{Data: connectX7(t)}}, nil })
	i, err := c.Info("pci", device)
	if err != nil {
		t.Fatal(err)
	}
	want := &Info{
		Bus: "pci", Device: device, Driver: "mlx5_core", Serial: "b83fd2030000a100", BoardSerial: "MT2244XZ0123",
		Fixed:   map[string]string{"fw.psid": "MT_0000000838"},
		Running: map[string]string{"fw.version": "28.43.1014", "fw": "28.43.1014"},
		Stored:  map[string]string{"fw.version": "28.39.1002", "fw": "28.39.1002"},
	}
	if diff := cmp.Diff(i, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if i.PSID() != "MT_0000000838" || i.RunningFirmware() != "28.43.1014" || i.StoredFirmware() != "28.39.1002" {
		t.Errorf("got %s, %s, %s", i.PSID(), i.RunningFirmware(), i.StoredFirmware())
	}
}

func TestInfoErrors(t *testing.T) {
	t.Parallel()
	other := encode(t, func(e *netlink.AttributeEncoder) { e.String(attrBus, "pci"); e.String(attrDevice, "0000:18:00.0") })
	for name, tt := range map[string]struct {
		answer func() ([]genetlink.Message, error)
		want   string
	}{
		"no such adapter": {func() ([]genetlink.Message, error) { return nil, genltest.Error(int(unix.ENODEV)) }, "no such device"},
		"another adapter": {func() ([]genetlink.Message, error) { return []genetlink.Message{{Data: other}}, nil }, "the answer is about pci/0000:18:00.0"},
		"no answer":       {func() ([]genetlink.Message, error) { return []genetlink.Message{}, nil }, "devlink pci/0000:17:00.0: "},
		"no attributes":   {func() ([]genetlink.Message, error) { return []genetlink.Message{{Data: []byte{1, 2, 3, 4, 5}}}, nil }, "devlink pci/0000:17:00.0: "},
	} {
		c := kernel(t, tt.answer)
		if i, err := c.Info("pci", device); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %+v, %v, want %q", name, i, err, tt.want)
		}
	}
	none := genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return nil, genltest.Error(int(unix.ENOENT))
	})
	defer none.Close()
	if _, err := open(none); !errors.Is(err, ErrNone) {
		t.Errorf("kernel without devlink: got %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(e *netlink.AttributeEncoder){
		"twice":          func(e *netlink.AttributeEncoder) { e.String(attrSerial, "a"); e.String(attrSerial, "b") },
		"no end":         func(e *netlink.AttributeEncoder) { e.Bytes(attrSerial, []byte("a")) },
		"terminal codes": func(e *netlink.AttributeEncoder) { e.String(attrSerial, "\x1b[2J") },
		"too long":       func(e *netlink.AttributeEncoder) { e.String(attrSerial, strings.Repeat("a", 257)) },
		"version twice": func(e *netlink.AttributeEncoder) {
			nested(e, attrVersionStored, "fw", "1")
			nested(e, attrVersionStored, "fw", "2")
		},
		"version without name": func(e *netlink.AttributeEncoder) { nested(e, attrVersionStored, "", "1") },
		"version that is none": func(e *netlink.AttributeEncoder) { e.Bytes(attrVersionStored, []byte{9, 0, 9, 0, 1}) },
		"name twice in a version": func(e *netlink.AttributeEncoder) {
			e.Nested(attrVersionStored, func(n *netlink.AttributeEncoder) error {
				n.String(attrVersionName, "a")
				n.String(attrVersionName, "b")
				return nil
			})
		},
		"text in a version that is none": func(e *netlink.AttributeEncoder) {
			e.Nested(attrVersionStored, func(n *netlink.AttributeEncoder) error { n.Bytes(attrVersionName, []byte("a")); return nil })
		},
		"versions without end": func(e *netlink.AttributeEncoder) {
			for i := range 65 {
				nested(e, attrVersionFixed, strings.Repeat("v", i+1), "1")
			}
		},
	} {
		if i, err := Parse(encode(t, fill)); err == nil {
			t.Errorf("%s: got %+v, want an error", name, i)
		}
	}
}

// TestKernel asks the kernel that runs about an adapter that is not there.
func TestKernel(t *testing.T) {
	t.Parallel()
	c, err := Dial()
	if errors.Is(err, ErrNone) {
		return // which is an answer of the kernel's, too
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if i, err := c.Info("pci", "ffff:ff:1f.7"); !errors.Is(err, unix.ENODEV) && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %+v, %v", i, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(connectX7(f))
	f.Add([]byte{5, 0, 99, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := Parse(b)
		if err != nil {
			return
		}
		for _, s := range []string{i.Bus, i.Device, i.Driver, i.Serial, i.PSID(), i.StoredFirmware()} {
			if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("%q is not printable", s)
			}
		}
	})
}
