package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// fields returns the lines "Name:....value" that a third-party tool prints.
func fields(out string) map[string]string {
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+):\.*(.*)$`).FindAllStringSubmatch(out, -1) {
		got[m[1]] = strings.TrimSpace(m[2])
	}
	return got
}

// Port settings of the configuration are what unchanged infiniband-diags see on ibsim, and a second run has nothing to
// write.
func TestSMPortPolicies(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "smpquery", "ibportstate", "iblinkinfo")
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	dir := t.TempDir()
	config := filepath.Join(dir, "sm.yaml")
	write(t, config, `fabric:
  ports:
    max_vls: 4
    hoq_life: 15
    leaf_hoq_life: 14
    link_speed: DDR
    link_width: supported
    rules:
    - {guid: 0x200001, max_vls: 2, link_width: 4x, link_speed: supported}
    - {guid: 0x100000, port: 2, disabled: true}
`)
	sets, said := bringUp(t, lab, "--config", config, "--state-dir", filepath.Join(dir, "state"))
	if sets == 0 || strings.Contains(said, "ERROR") {
		t.Errorf("%d Sets, said %s", sets, said)
	}
	for _, tt := range []struct {
		name, path, port string
		want             map[string]string
	}{
		{"a host with a rule", "0,1,1", "1", map[string]string{
			"LinkWidthEnabled": "1X or 4X or 2X", "LinkSpeedEnabled": "2.5 Gbps or 5.0 Gbps or 10.0 Gbps", "OperVLs": "VL0-1", "LinkState": "Active",
		}},
		{"the switch port in front of it", "0,1", "1", map[string]string{
			"LinkWidthEnabled": "1X or 4X or 8X or 12X or 2X", "LinkSpeedEnabled": "2.5 Gbps or 5.0 Gbps", "OperVLs": "VL0-1", "HoqLife": "14",
		}},
		{"our own port", "0", "1", map[string]string{"OperVLs": "VL0-3", "LinkSpeedEnabled": "2.5 Gbps or 5.0 Gbps", "LinkState": "Active"}},
		{"the disabled port", "0,1", "2", map[string]string{"PhysLinkState": "Disabled"}},
	} {
		got := fields(ibsimtest.Diag(t, lab, "sm", "smpquery", "-D", "portinfo", tt.path, tt.port))
		for field, want := range tt.want {
			if got[field] != want {
				t.Errorf("%s: %s is %q, want %q", tt.name, field, got[field], want)
			}
		}
	}
	if out := ibsimtest.Diag(t, lab, "sm", "ibportstate", "-D", "0,1", "1", "query"); !strings.Contains(out, "LinkSpeedEnabled:................2.5 Gbps or 5.0 Gbps") {
		t.Errorf("ibportstate:\n%s", out)
	}
	if out := ibsimtest.Diag(t, lab, "sm", "smpquery", "-D", "guidinfo", "0,1,1"); !strings.Contains(out, "0x0000000000200001") {
		t.Errorf("smpquery guidinfo of a host:\n%s", out)
	}
	links := ibsimtest.Diag(t, lab, "sm", "iblinkinfo", "-l")
	if active := strings.Count(links, "Active/  LinkUp"); active != 4 || !regexp.MustCompile(`Disabled`).MatchString(links) {
		t.Errorf("%d ends of links are active, want 4 and a disabled port:\n%s", active, links)
	}
	// The second run forgets the routes of the host that was cut off.
	bringUp(t, lab, "--config", config, "--state-dir", filepath.Join(dir, "state"))
	if sets, said := bringUp(t, lab, "--config", config, "--state-dir", filepath.Join(dir, "state")); sets != 0 || strings.Count(said, "level=WARN") != strings.Count(said, "send no trap 259") {
		t.Errorf("a third run wrote %d times, said %s", sets, said)
	}
}

// rare is a fabric of what is seldom: a router, an HCA with two ports, and a
// switch with 254 ports.
const rare = `caguid=0x20000000000000
Ca 1 "sm"
[1]	"big"[254]

caguid=0x20000000000100
Ca 2 "two"
[1]	"big"[65]
[2]	"small"[1]

rtguid=0x30000000000000
Rt 2 "router"
[1]	"big"[200]

switchguid=0x10000000000001
Switch 254 "big"
[65]	"two"[1]
[130]	"small"[2]
[200]	"router"[1]
[254]	"sm"[1]

switchguid=0x10000000000002
Switch 4 "small"
[1]	"two"[2]
[2]	"big"[130]
`

// Devices that are seldom are brought up like others, as third-party tools see.
func TestSMRareDevices(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "smpquery", "ibtracert")
	lab := ibsimtest.Start(t, []byte(rare))
	bringUp(t, lab)
	lids := map[string]bool{}
	for name, path := range map[string]string{"router": "0,1,200", "port 1 of two": "0,1,65", "port 2 of two": "0,1,130,1", "sm": "0", "small": "0,1,130"} {
		got := fields(ibsimtest.Diag(t, lab, "sm", "smpquery", "-D", "portinfo", path))
		if got["Lid"] == "" || got["Lid"] == "0" || lids[got["Lid"]] || got["LinkState"] != "Active" {
			t.Errorf("%s has LID %q, state %q; want one of its own, and Active", name, got["Lid"], got["LinkState"])
		}
		lids[got["Lid"]] = true
		if got["SMLid"] == "0" || got["CapMask"] == "" {
			t.Errorf("%s was not configured: %v", name, got)
		}
	}
	for _, num := range []string{"65", "130", "200", "254"} {
		if got := fields(ibsimtest.Diag(t, lab, "sm", "smpquery", "-D", "portinfo", "0,1", num)); got["LinkState"] != "Active" {
			t.Errorf("port %s of the switch is %q", num, got["LinkState"])
		}
	}
}
