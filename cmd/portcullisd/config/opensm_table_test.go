package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// openSMPortOptions are the options of OpenSM about ports, by its manual.
var openSMPortOptions = []string{
	"lmc", "lmc_esp0", "max_op_vls", "max_op_vls_ca", "max_op_vls_sw", "max_op_vls_rtr", "max_neighbor_mtu",
	"force_link_speed", "force_link_speed_ext", "force_link_speed_ext2", "force_link_width", "fdr10",
	"subnet_timeout", "packet_life_time", "vl_stall_count", "leaf_vl_stall_count",
	"head_of_queue_lifetime", "leaf_head_of_queue_lifetime", "local_phy_errors_threshold", "overrun_errors_threshold",
	"use_mfttop", "use_optimized_slvl", "enable_quirks", "no_clients_rereg", "client_rereg_mode",
	"babbling_port_policy", "sm_sl", "subnet_prefix", "guid", "reassign_lids", "honor_guid2lid_file",
}

// The table for operators who come from OpenSM names every option of ports, and only keys and options that there are.
func TestOpenSMOptionsAreMapped(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/start/subnet-manager.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| opensm.conf | here | |\n")
	if !ok {
		t.Fatal("docs/start/subnet-manager.md has no table of OpenSM's options")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	keys := map[string]bool{"fabric.health": true}
	for _, k := range keysOf("fabric.", reflect.TypeFor[Fabric]()) {
		keys[k] = true
	}
	flags := (&SMOptions{Config: Default()}).flags()
	code, mapped := regexp.MustCompile("`([^`]+)`"), map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			t.Errorf("%q has %d cells, want 3", line, len(cells)-2)
			continue
		}
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			if mapped[m[1]] {
				t.Errorf("%s is mapped twice", m[1])
			}
			mapped[m[1]] = true
		}
		for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
			if name, isFlag := strings.CutPrefix(m[1], "--"); isFlag {
				if flags.Lookup(name) == nil {
					t.Errorf("there is no option %s", m[1])
				}
			} else if !keys[m[1]] {
				t.Errorf("there is no key %s", m[1])
			}
		}
		if strings.TrimSpace(cells[2]) == "" && strings.TrimSpace(cells[3]) == "" {
			t.Errorf("%q says neither what it is here nor why not", line)
		}
	}
	for _, o := range openSMPortOptions {
		if !mapped[o] {
			t.Errorf("OpenSM's %s is not in the table", o)
		}
	}
}
