package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portcullis/fabricsm/opensmconf/verdict"
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
			if _, ok := verdict.Find(m[1]); !ok && m[1] != "randomize_sa_key" {
				t.Errorf("OpenSM's %s has no verdict", m[1])
			}
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

// TestVerdictsNameKeys: every key that a verdict on OpenSM's options names is one, and takes the least and the most that the
// verdict allows.
func TestVerdictsNameKeys(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{"fabric.health": true, "fabric.sa.limits": true, "log_level": true, "state_dir": true}
	for _, k := range keysOf("fabric.", reflect.TypeFor[Fabric]()) {
		keys[k] = true
	}
	for _, o := range slices.Concat(verdict.Options(), verdict.UFM()) {
		if o.Key != "" && !keys[o.Key] {
			t.Errorf("%s: there is no key %s", o.Name, o.Key)
		}
		var values []string
		switch o.Form {
		case verdict.Number, verdict.Seconds, verdict.Millis, verdict.Minutes:
			values = []string{strconv.FormatInt(o.Least, 10), strconv.FormatInt(o.Most, 10)}
		case verdict.Lanes, verdict.MTU:
			values = []string{"1", "5"}
		case verdict.Enable:
			values = []string{"0"}
		case verdict.Flag, verdict.Inverse, verdict.Eighteen:
			values = []string{"TRUE", "FALSE"}
		case verdict.Address:
			values = []string{"0xfec0000000000001"}
		default:
		}
		for _, v := range values {
			j := o.Judge(v)
			if j.To == "" {
				continue // it is OpenSM's default
			}
			var text strings.Builder
			path := strings.Split(o.Key, ".")
			for depth, name := range path {
				text.WriteString(strings.Repeat("  ", depth) + name + ":")
				if depth < len(path)-1 {
					text.WriteString("\n")
				}
			}
			text.WriteString(" " + j.To + "\n")
			if _, err := Parse("f", []byte(text.String())); err != nil {
				t.Errorf("%s %s: %v in\n%s", o.Name, v, err, &text)
			}
		}
	}
}
