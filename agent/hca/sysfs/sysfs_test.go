package sysfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"portcullis/agent/hca/sysfs"
	"portcullis/fabricsm/ib"
)

const (
	connectX7 = "devices/pci0000:16/0000:16:01.0/0000:17:00.0/"
	mlx5      = connectX7 + "infiniband/mlx5_0/"
)

// plant writes the recorded tree and returns its sysfs. Lines "link NAME -> TARGET" of the archive's comment become
// symbolic links.
func plant(t *testing.T) string {
	t.Helper()
	a, err := txtar.ParseFile("testdata/host.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range a.Files {
		write(t, filepath.Join(dir, f.Name), string(f.Data))
	}
	for line := range strings.Lines(string(a.Comment)) {
		if link, ok := strings.CutPrefix(strings.TrimSpace(line), "link "); ok {
			from, to, _ := strings.Cut(link, " -> ")
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, from)), 0o755))
			must(t, os.Symlink(to, filepath.Join(dir, from)))
		}
	}
	write(t, filepath.Join(dir, "sys", connectX7, "vpd"), string(goodVPD()))
	return filepath.Join(dir, "sys")
}

func write(t *testing.T, path, data string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(data), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *sysfs.Tree {
	t.Helper()
	tree, err := sysfs.Open(dir)
	must(t, err)
	t.Cleanup(tree.Close)
	return tree
}

var equalErrors = cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) || errors.Is(b, a) })

func TestFunctions(t *testing.T) {
	t.Parallel()
	tree := open(t, plant(t))
	got, stray := tree.Functions()
	if p := tree.Problems(); len(p) > 0 || len(stray) > 0 {
		t.Fatalf("got problems %v, stray %v", p, stray)
	}
	want := []sysfs.Function{
		{
			Address: "0000:17:00.0", Vendor: 0x15B3, DeviceID: 0x1021, Class: sysfs.ClassInfiniBand, Driver: "mlx5_core",
			VPD:   sysfs.VPD{Name: "ConnectX-7", Part: "MCX75310AAS-NEAT", Serial: "MT2244XZ0123", Revision: "A6", UUID: "0123abcd"},
			FWCTL: "fwctl1",
			RDMA: []sysfs.RDMA{{
				Name: "mlx5_0", PCI: "0000:17:00.0", NodeGUID: 0xb83fd2030000a100, SystemImageGUID: 0xb83fd2030000a100,
				Firmware: "28.43.1014", BoardID: "MT_0000000838", Type: "MT4129", Revision: "0",
				Ports: []sysfs.Port{{
					Num: 1, LinkLayer: sysfs.LinkInfiniBand, GUID: 0xb83fd2030000a100, State: 4, PhysState: 5, LID: 27, SMLID: 1,
					Rate: "400 Gb/sec (4X NDR)", CapMask: 0xa751e848, PKeys: []ib.PKey{0xffff, 0x8012, 0}, UMAD: "umad0", ISSM: "issm0",
				}},
			}},
		},
		{Address: "0000:17:00.1", Vendor: 0x15B3, DeviceID: 0x1021, Class: sysfs.ClassEthernet, VPDError: os.ErrNotExist, Unrelated: true},
		{Address: "0000:65:00.0", Vendor: 0x15B3, DeviceID: 0x0218, Class: 0x0580, VPDError: os.ErrNotExist, Recovery: true},
		{
			Address: "10000:01:00.0", Vendor: 0x8086, DeviceID: 0x24f0, Class: 0x0208, VPDError: os.ErrNotExist,
			RDMA: []sysfs.RDMA{{
				Name: "hfi1_0", PCI: "10000:01:00.0", NodeGUID: 0x0011750101017dc6, SystemImageGUID: 0x0011750101017dc6,
				Ports: []sysfs.Port{{Num: 1, LinkLayer: sysfs.LinkInfiniBand, GUID: 0x0011750101017dc6}},
			}},
		},
	}
	if diff := cmp.Diff(got, want, equalErrors); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestStray: an RDMA device that is behind no PCI function of the tree, as a
// software device is, or one that hides where it is.
func TestStray(t *testing.T) {
	t.Parallel()
	dir := plant(t)
	must(t, os.Remove(filepath.Join(dir, "bus/pci/devices/10000:01:00.0")))
	must(t, os.Remove(filepath.Join(dir, mlx5, "device")))
	tree := open(t, dir)
	functions, stray := tree.Functions()
	var names []string
	for _, d := range stray {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff(names, []string{"hfi1_0", "mlx5_0"}); diff != "" {
		t.Errorf("stray (-got +want):\n%s", diff)
	}
	if n := len(functions[0].RDMA); n != 0 {
		t.Errorf("%s has %d RDMA devices, want none", functions[0].Address, n)
	}
}

// TestProblems breaks a good tree in one way each.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		alter func(t *testing.T, dir string)
		want  string
	}{
		{"address", func(t *testing.T, dir string) { must(t, os.Mkdir(dir+"/bus/pci/devices/17:00.0", 0o755)) }, `PCI address "17:00.0"`},
		{"vendor", func(t *testing.T, dir string) { write(t, dir+"/"+connectX7+"vendor", "Mellanox\n") }, `0000:17:00.0/vendor: "Mellanox" is not a number`},
		{"no device id", func(t *testing.T, dir string) { must(t, os.Remove(dir+"/"+connectX7+"device")) }, `0000:17:00.0/device: no such file`},
		{"state", func(t *testing.T, dir string) { write(t, dir+"/"+mlx5+"ports/1/state", "ACTIVE\n") }, `ports/1/state: "ACTIVE" is not a number of 8 bits`},
		{"LID too long", func(t *testing.T, dir string) { write(t, dir+"/"+mlx5+"ports/1/lid", "0x1ffff\n") }, `lid: "0x1ffff" is not a number of 16 bits`},
		{"P_Key", func(t *testing.T, dir string) { write(t, dir+"/"+mlx5+"ports/1/pkeys/1", "none\n") }, `pkeys/1: "none" is not a P_Key`},
		{"gap among P_Keys", func(t *testing.T, dir string) { must(t, os.Remove(dir+"/"+mlx5+"ports/1/pkeys/1")) }, `pkeys/1: no such file`},
		{"two nodes of fwctl", func(t *testing.T, dir string) {
			must(t, os.Symlink("../../"+connectX7+"fwctl/fwctl2", dir+"/class/fwctl/fwctl2"))
		}, `fwctl2: 0000:17:00.0 has fwctl1 already`},
		{"node of fwctl that is no link", func(t *testing.T, dir string) { write(t, dir+"/class/fwctl/fwctl3", "") }, `fwctl3: invalid argument`},
		{"MAD node without device", func(t *testing.T, dir string) { must(t, os.Remove(dir+"/class/infiniband_mad/umad0/ibdev")) }, `umad0/ibdev: no such file`},
		{"driver that is no link", func(t *testing.T, dir string) {
			must(t, os.Remove(dir+"/"+connectX7+"driver"))
			write(t, dir+"/"+connectX7+"driver", "")
		}, `driver: invalid argument`},
		{"driver of another tree", func(t *testing.T, dir string) {
			must(t, os.Remove(dir+"/"+connectX7+"driver"))
			must(t, os.Symlink("../drivers/mlx5\x1b[2J", dir+"/"+connectX7+"driver"))
		}, `driver: is not one line of printable ASCII`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := plant(t)
			tt.alter(t, dir)
			tree := open(t, dir)
			tree.Functions()
			if got := errors.Join(tree.Problems()...); got == nil || !strings.Contains(got.Error(), tt.want) {
				t.Errorf("got problems %v, want one with %q", got, tt.want)
			}
		})
	}
}

func TestEmptyMachine(t *testing.T) {
	t.Parallel()
	tree := open(t, t.TempDir())
	functions, stray := tree.Functions()
	if len(functions)+len(stray) != 0 || len(tree.Problems()) != 0 {
		t.Errorf("got %v, %v, problems %v", functions, stray, tree.Problems())
	}
	if _, err := tree.RDMADevices(); !errors.Is(err, sysfs.ErrNone) {
		t.Errorf("got %v, want %v", err, sysfs.ErrNone)
	}
}

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"0000:17:00.0", "10000:01:1f.7", "ffffffff:ff:00.0"} {
		if a, err := sysfs.ParseAddress(s); err != nil || string(a) != s {
			t.Errorf("%q: got %q, %v", s, a, err)
		}
	}
	for _, s := range []string{"", "17:00.0", "000:17:00.0", "0000:17:20.0", "0000:17:00.8", "0000:17:00.00", "0000:17:00", "000000000:17:00.0", "00G0:17:00.0", "0000:17:00.0:1", "0000:1:00.0", "../0:17:00.0", "0000:17:00.A", "0000:AB:00.0"} {
		if a, err := sysfs.ParseAddress(s); err == nil {
			t.Errorf("%q: got %q, want an error", s, a)
		}
	}
}
