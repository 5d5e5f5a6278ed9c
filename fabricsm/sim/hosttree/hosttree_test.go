package hosttree_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portcullis/fabricsm/sim/hosttree"
	"portcullis/fabricsm/sim/netlist"
)

func TestWrite(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 2, HCAs: 2})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	host := hosttree.Host{Name: "h1", HCAs: []*netlist.Node{l.Find("h1"), l.Find("h1-2")}}
	if err := hosttree.Write(dir, host); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"sys/class/infiniband/mlx5_0/node_guid":          `0020:0000:0000:0100`,
		"sys/class/infiniband/mlx5_0/node_type":          `1: CA`,
		"sys/class/infiniband/mlx5_0/node_desc":          `h1 mlx5_0`,
		"sys/class/infiniband/mlx5_0/fw_ver":             `28\.43\.1014`,
		"sys/class/infiniband/mlx5_0/board_id":           `MT_0000000838`,
		"sys/class/infiniband/mlx5_0/hca_type":           `MT4129`,
		"sys/class/infiniband/mlx5_1/sys_image_guid":     `0020:0001:0000:0100`,
		"sys/class/infiniband/mlx5_1/ports/1/gids/0":     `fe80:0000:0000:0000:0020:0001:0000:0101`,
		"sys/class/infiniband/mlx5_1/ports/1/state":      `2: INIT`,
		"sys/class/infiniband/mlx5_1/ports/1/phys_state": `5: LinkUp`,
		"sys/class/infiniband/mlx5_1/ports/1/rate":       `100 Gb/sec \(4X EDR\)`,
		"sys/class/infiniband/mlx5_1/ports/1/link_layer": `InfiniBand`,
		"sys/class/infiniband/mlx5_1/ports/1/lid":        `0x0`,
		"sys/class/infiniband/mlx5_1/ports/1/pkeys/0":    `0xffff`,
		"sys/class/infiniband/mlx5_1/ports/1/pkeys/63":   `0x0000`,
		"sys/class/dmi/id/board_serial":                  `SIM[0-9A-F]{12}`,
		"sys/class/dmi/id/product_uuid":                  `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`,
		"proc/sys/kernel/random/boot_id":                 `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`,
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !regexp.MustCompile(`\A`+want+`\n\z`).Match(got) {
			t.Errorf("%s: %q, %v; want %s", name, got, err, want)
		}
	}
	if err := hosttree.Write(dir, host); err == nil || !strings.Contains(err.Error(), "exists: remove it") {
		t.Errorf("second Write to the same directory: %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		host hosttree.Host
		want string
	}{
		{"no HCA", hosttree.Host{Name: "h"}, "no HCA given"},
		{"a switch", hosttree.Host{HCAs: []*netlist.Node{l.Find("leaf1")}}, `node "leaf1" is a switch, want an HCA`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := hosttree.Write(t.TempDir(), tt.host); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
