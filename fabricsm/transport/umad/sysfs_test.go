package umad

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

// files writes a sysfs.
func files(t testing.TB, content map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range content {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// hca is one port in a sysfs.
type hca struct {
	number int
	device string
	port   int
	state  string
	link   string // InfiniBand if empty
	gid    string // one of its own if empty
}

// sysfs is the tree of a machine with these ports.
func sysfs(ports ...hca) map[string]string {
	m := map[string]string{"class/infiniband_mad/abi_version": "5"}
	for _, h := range ports {
		if h.link == "" {
			h.link = "InfiniBand"
		}
		if h.gid == "" {
			h.gid = fmt.Sprintf("fe80:0000:0000:0000:0002:c903:00a1:%02x%02x", h.number, h.port)
		}
		umad := fmt.Sprintf("class/infiniband_mad/umad%d/", h.number)
		dir := fmt.Sprintf("class/infiniband/%s/ports/%d/", h.device, h.port)
		m[umad+"ibdev"] = h.device
		m[umad+"port"] = fmt.Sprint(h.port)
		m[fmt.Sprintf("class/infiniband_mad/issm%d/ibdev", h.number)] = h.device
		m[dir+"state"] = h.state
		m[dir+"link_layer"] = h.link
		m[dir+"gids/0"] = h.gid
	}
	return m
}

func with(m map[string]string, name, text string) map[string]string {
	m[name] = text
	return m
}

func without(m map[string]string, names ...string) map[string]string {
	for _, name := range names {
		delete(m, name)
	}
	return m
}

const (
	down   = "1: DOWN"
	initok = "2: INIT"
	active = "4: ACTIVE"
)

func TestFind(t *testing.T) {
	two := []hca{
		{number: 1, device: "mlx5_1", port: 1, state: active},
		{number: 0, device: "mlx5_0", port: 1, state: initok},
		{number: 10, device: "mlx5_0", port: 2, state: down},
	}
	for _, tt := range []struct {
		name string
		tree map[string]string
		ask  Options
		want int    // number of the umad device
		err  string // all of it
	}{
		{name: "the Active port", tree: sysfs(two...), want: 1},
		{name: "of a device, the port with a link", tree: sysfs(two...), ask: Options{Device: "mlx5_0"}, want: 0},
		{name: "a port that is down, if named", tree: sysfs(two...), ask: Options{Device: "mlx5_0", Port: 2}, want: 10},
		{name: "any device's port 2", tree: sysfs(two...), ask: Options{Port: 2}, want: 10},
		{name: "the only one, although it is down", tree: sysfs(hca{number: 3, device: "mlx5_0", port: 1, state: down}), want: 3},
		{
			name: "the first of several Active ports by name",
			tree: sysfs(
				hca{number: 0, device: "mlx5_2", port: 1, state: active},
				hca{number: 1, device: "mlx5_0", port: 1, state: "0: NOP"},
				hca{number: 2, device: "mlx5_1", port: 1, state: active},
			),
			want: 2,
		},
		{
			name: "Ethernet is passed over",
			tree: sysfs(
				hca{number: 0, device: "mlx5_0", port: 1, state: active, link: "Ethernet"},
				hca{number: 1, device: "mlx5_1", port: 1, state: initok},
			),
			want: 1,
		},
		{
			name: "without a link layer, as old kernels",
			tree: without(sysfs(two...), "class/infiniband/mlx5_1/ports/1/link_layer"), want: 1,
		},
		{
			name: "a device that is going away is left out",
			tree: without(sysfs(two...), "class/infiniband/mlx5_1/ports/1/state"), want: 0,
		},
		{
			name: "nonsense is left out",
			tree: with(with(sysfs(two...), "class/infiniband_mad/umad1/ibdev", "../../etc"), "class/infiniband_mad/umadx/ibdev", "mlx5_0"),
			want: 0,
		},
		{
			name: "Ethernet, named", ask: Options{Device: "mlx5_0", Port: 1},
			tree: sysfs(hca{number: 0, device: "mlx5_0", port: 1, state: active, link: "Ethernet"}),
			err:  "mlx5_0 port 1 is an Ethernet port: a subnet manager needs a port whose link layer is InfiniBand; there is mlx5_0 port 1 (Ethernet)",
		},
		{
			name: "only Ethernet", tree: sysfs(hca{number: 0, device: "mlx5_0", port: 1, state: active, link: "Ethernet"}),
			err: "this machine has only Ethernet ports: a subnet manager needs a port whose link layer is InfiniBand; there is mlx5_0 port 1 (Ethernet)",
		},
		{
			name: "unknown device", tree: sysfs(two...), ask: Options{Device: "mlx5_7"},
			err: "mlx5_7 has no user MAD device; there is mlx5_0 port 1 (Init), mlx5_0 port 2 (Down), mlx5_1 port 1 (Active)",
		},
		{
			name: "all down",
			tree: sysfs(hca{number: 0, device: "mlx5_0", port: 1, state: down}, hca{number: 1, device: "mlx5_0", port: 2, state: down}),
			ask:  Options{Device: "mlx5_0"},
			err:  "mlx5_0 has several ports and no link on any: name one as umad:DEVICE:PORT; there is mlx5_0 port 1 (Down), mlx5_0 port 2 (Down)",
		},
		{
			name: "no module", tree: map[string]string{"class/infiniband/mlx5_0/node_type": "1: CA"},
			err: `1 InfiniBand devices but no user MAD interface: load the kernel module with "modprobe ib_umad"`,
		},
		{
			name: "no hardware", tree: map[string]string{"class/net/lo": ""},
			err: "this machine has no InfiniBand port: check that the adapter is seen by lspci and that its driver, for example mlx5_ib, is loaded",
		},
		{
			name: "module but no hardware", tree: sysfs(),
			err: "this machine has no InfiniBand port: check that the adapter is seen by lspci and that its driver, for example mlx5_ib, is loaded",
		},
		{
			name: "a device before its port", tree: without(sysfs(two[0]), "class/infiniband/mlx5_1/ports/1/state", "class/infiniband/mlx5_1/ports/1/link_layer", "class/infiniband/mlx5_1/ports/1/gids/0"),
			err: "mlx5_1 is not registered whole: ROOT/class/infiniband/mlx5_1/ports/1/state is missing: if it stays so, look into the kernel's log for the driver",
		},
		{
			name: "a device before any port", tree: with(sysfs(), "class/infiniband/mlx5_1/node_type", "1: CA"),
			err: "mlx5_1 is not registered whole: ROOT/class/infiniband/mlx5_1/ports is missing: if it stays so, look into the kernel's log for the driver",
		},
		{
			name: "a port before its umad device", tree: with(sysfs(), "class/infiniband/mlx5_1/ports/1/link_layer", "InfiniBand"),
			err: "mlx5_1 is not registered whole: the user MAD device of port 1 is missing: if it stays so, look into the kernel's log for the driver",
		},
		{
			name: "the one that is named", tree: without(sysfs(two...), "class/infiniband/mlx5_1/ports/1/state"), ask: Options{Device: "mlx5_1"},
			err: "mlx5_1 is not registered whole: ROOT/class/infiniband/mlx5_1/ports/1/state is missing: if it stays so, look into the kernel's log for the driver",
		},
		{
			name: "iWARP has no user MAD device", tree: with(sysfs(), "class/infiniband/siw0/ports/1/link_layer", "Ethernet"),
			err: "this machine has no InfiniBand port: check that the adapter is seen by lspci and that its driver, for example mlx5_ib, is loaded",
		},
		{
			name: "another version", tree: with(sysfs(two...), "class/infiniband_mad/abi_version", "6"),
			err: `user MAD interface has version "6": this program knows version 5`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := files(t, tt.tree)
			got, err := tree(root).find(&tt.ask)
			if tt.err != "" {
				if err == nil || strings.ReplaceAll(err.Error(), root, "ROOT") != tt.err {
					t.Fatalf("error %v\nwant  %s", err, tt.err)
				}
				return
			}
			if err != nil || got.number != tt.want {
				t.Errorf("umad%d (%v), %v; want umad%d", got.number, got, err, tt.want)
			}
		})
	}
}

func TestFindDescribes(t *testing.T) {
	got, err := tree(files(t, sysfs(hca{number: 7, device: "mlx5_0", port: 1, state: "3: ARMED", gid: "fe80:0000:0000:0000:0002:c903:00a1:b2c3"}))).find(&Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := candidate{number: 7, device: "mlx5_0", port: 1, state: ib.PortArmed, link: "InfiniBand", guid: 0x0002c90300a1b2c3}
	if diff := cmp.Diff(got, want, cmp.AllowUnexported(candidate{})); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}
}

func TestFindWantsGUID(t *testing.T) {
	for _, gid := range []string{"0000:0000:0000:0000:0000:0000:0000:0000", "garbage", strings.Repeat("f", 5000)} {
		_, err := tree(files(t, sysfs(hca{number: 0, device: "mlx5_0", port: 1, state: active, gid: gid}))).find(&Options{})
		if err == nil || !strings.Contains(err.Error(), "mlx5_0 is not registered whole: the GUID of port 1 is missing") {
			t.Errorf("GID %.20q: %v", gid, err)
		}
	}
}

func TestErrorTypes(t *testing.T) {
	_, err := tree(files(t, map[string]string{"class/infiniband/mlx5_0/x": ""})).find(&Options{})
	if e, ok := errors.AsType[*ModuleError](err); !ok || e.Devices != 1 {
		t.Errorf("%#v", err)
	}
	_, err = tree(t.TempDir()).find(&Options{})
	if _, ok := errors.AsType[*NoPortError](err); !ok {
		t.Errorf("%#v", err)
	}
}
