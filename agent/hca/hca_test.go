package hca_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"portcullis/agent/hca"
	"portcullis/attest"
)

// plant writes a recorded tree. Lines "link NAME -> TARGET" of the archive's
// comment become symbolic links, as sysfs has them.
func plant(t *testing.T, name string) (sysfs, procfs string) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range a.Files {
		write(t, filepath.Join(dir, f.Name), string(f.Data))
	}
	for line := range strings.Lines(string(a.Comment)) {
		link, ok := strings.CutPrefix(strings.TrimSpace(line), "link ")
		if !ok {
			continue
		}
		from, to, _ := strings.Cut(link, " -> ")
		path := filepath.Join(dir, from)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.Symlink(to, path))
	}
	return filepath.Join(dir, "sys"), filepath.Join(dir, "proc")
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

func TestCollect(t *testing.T) {
	t.Parallel()
	sysfs, procfs := plant(t, "two-adapters.txtar")
	got, err := hca.Collect(t.Context(), hca.Ways{Sysfs: sysfs}, procfs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.HCAs { // which TestStatementOfNothing looks at
		got.HCAs[i].Sources, got.HCAs[i].Unread = nil, nil
	}
	want := &hca.Facts{
		Tools:  []attest.Tool{},
		BootID: "3a6e2f4b-7c1d-4f6e-9a3b-0d5c8e7f1a2b",
		Board:  attest.Board{Vendor: "Example Computer", Name: "X13 Board", Serial: "OM23AS000123", ProductUUID: "4c4c4544-0042-3010-8051-b4c04f4d3132"},
		HCAs: []attest.HCA{
			{
				Name: "mlx5_0", NodeGUID: 0xb83fd2030000a100, SystemImageGUID: 0xb83fd2030000a100,
				PSID: "MT_0000000838", Type: "MT4129", Firmware: attest.Firmware{Running: "28.43.1014"},
				Ports: []attest.Port{{Num: 1, GUID: 0xb83fd2030000a100, LinkLayer: attest.LinkInfiniBand}},
			},
			{
				Name: "qib0", NodeGUID: 0x001175000000b200, SystemImageGUID: 0x001175000000b200,
				Ports: []attest.Port{
					{Num: 1, GUID: 0x001175000000b201, LinkLayer: attest.LinkInfiniBand},
					{Num: 2, LinkLayer: attest.LinkEthernet},
					{Num: 10, GUID: 0x001175000000b20a, LinkLayer: attest.LinkInfiniBand},
				},
			},
		},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestCollectRefuses breaks a good tree in one way each.
func TestCollectRefuses(t *testing.T) {
	t.Parallel()
	const dev = "class/infiniband/qib0/"
	for _, tc := range []struct {
		name  string
		alter func(t *testing.T, sysfs, procfs string)
		want  []string
	}{
		{"no sysfs", func(t *testing.T, sysfs, _ string) { must(t, os.RemoveAll(sysfs)) }, []string{"sysfs"}},
		{"no procfs", func(t *testing.T, _, procfs string) { must(t, os.RemoveAll(procfs)) }, []string{"procfs"}},
		{"no driver", func(t *testing.T, sysfs, _ string) { must(t, os.RemoveAll(sysfs+"/class/infiniband")) }, []string{"class/infiniband", "load its driver"}},
		{"Ethernet only", func(t *testing.T, sysfs, _ string) {
			must(t, os.Remove(sysfs+"/class/infiniband/mlx5_0"))
			must(t, os.RemoveAll(sysfs+"/class/infiniband/qib0"))
		}, []string{"no InfiniBand adapter"}},
		{"no boot id", func(t *testing.T, _, procfs string) { must(t, os.Remove(procfs+"/sys/kernel/random/boot_id")) }, []string{"boot_id: no such file"}},
		{"two problems at once", func(t *testing.T, sysfs, _ string) {
			must(t, os.Remove(sysfs+"/"+dev+"node_guid"))
			write(t, sysfs+"/"+dev+"ports/1/gids/0", "fe80::")
		}, []string{"qib0/node_guid: no such file", "qib0/ports/1/gids/0: fe80::"}},
		{"GUID of zeros", func(t *testing.T, sysfs, _ string) { write(t, sysfs+"/"+dev+"node_guid", "0000:0000:0000:0000\n") }, []string{"no device may have this GUID"}},
		{"GUID that is none", func(t *testing.T, sysfs, _ string) { write(t, sysfs+"/"+dev+"sys_image_guid", "unknown\n") }, []string{`sys_image_guid: GUID "unknown"`}},
		{"empty GUID", func(t *testing.T, sysfs, _ string) { write(t, sysfs+"/"+dev+"node_guid", "") }, []string{"node_guid: is empty"}},
		{"GID that is none", func(t *testing.T, sysfs, _ string) { write(t, sysfs+"/"+dev+"ports/1/gids/0", "10.0.0.1\n") }, []string{"gids/0: GID"}},
		{"link layer unknown", func(t *testing.T, sysfs, _ string) { write(t, sysfs+"/"+dev+"ports/2/link_layer", "Unknown\n") }, []string{`ports/2/link_layer: "Unknown"`}},
		{"port 0", func(t *testing.T, sysfs, _ string) { write(t, sysfs+"/"+dev+"ports/0/link_layer", "InfiniBand\n") }, []string{"ports/0: is not a port number"}},
		{"port 01", func(t *testing.T, sysfs, _ string) { write(t, sysfs+"/"+dev+"ports/01/link_layer", "InfiniBand\n") }, []string{"ports/01: is not a port number"}},
		{"no ports", func(t *testing.T, sysfs, _ string) { must(t, os.RemoveAll(sysfs+"/"+dev+"ports")) }, []string{"qib0/ports: no such file"}},
		{"huge file", func(t *testing.T, sysfs, _ string) { write(t, sysfs+"/"+dev+"fw_ver", strings.Repeat("1", 1<<20)) }, []string{"fw_ver: holds more than 4096 bytes"}},
		{"adapter in recovery mode", func(t *testing.T, sysfs, _ string) {
			for name, text := range map[string]string{"vendor": "0x15b3", "device": "0x0218", "class": "0x058000"} {
				write(t, sysfs+"/bus/pci/devices/0000:65:00.0/"+name, text)
			}
		}, []string{"adapter 0000:65:00.0: no RDMA device belongs to it", "recovery mode"}},
		{"terminal codes", func(t *testing.T, sysfs, _ string) { write(t, sysfs+"/"+dev+"board_id", "MT\x1b[2J") }, []string{"board_id: is not one line of printable ASCII"}},
		{"a pipe", func(t *testing.T, sysfs, _ string) {
			must(t, os.Remove(sysfs+"/"+dev+"hca_type"))
			must(t, os.MkdirAll(sysfs+"/"+dev, 0o755))
			must(t, syscall.Mkfifo(sysfs+"/"+dev+"hca_type", 0o644))
		}, []string{"hca_type: is not a regular file"}},
		{"a link out of the tree", func(t *testing.T, sysfs, _ string) {
			must(t, os.Remove(sysfs+"/"+dev+"board_id"))
			must(t, os.Symlink("/etc/hostname", sysfs+"/"+dev+"board_id"))
		}, []string{"board_id: path escapes"}},
		{"a directory of thousands", func(t *testing.T, sysfs, _ string) {
			for i := range 1100 {
				must(t, os.Mkdir(sysfs+"/class/infiniband/x"+strings.Repeat("y", i%200)+string(rune('a'+i/200)), 0o755))
			}
		}, []string{"class/infiniband: holds more than 1024 entries"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sysfs, procfs := plant(t, "two-adapters.txtar")
			tc.alter(t, sysfs, procfs)
			f, err := hca.Collect(t.Context(), hca.Ways{Sysfs: sysfs}, procfs, nil)
			if err == nil {
				t.Fatalf("got %+v, want an error", f)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want one with %q", err, want)
				}
			}
		})
	}
}

// TestBoardMayBeHidden: serial number and UUID are readable by root only.
func TestBoardMayBeHidden(t *testing.T) {
	t.Parallel()
	sysfs, procfs := plant(t, "two-adapters.txtar")
	must(t, os.RemoveAll(filepath.Join(sysfs, "devices/virtual/dmi")))
	f, err := hca.Collect(t.Context(), hca.Ways{Sysfs: sysfs}, procfs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Board != (attest.Board{}) {
		t.Errorf("got %+v, want none", f.Board)
	}
}
