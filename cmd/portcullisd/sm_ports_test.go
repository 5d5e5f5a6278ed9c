package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// fields gives the lines "Name:....value" that a third-party tool prints.
func fields(out string) map[string]string {
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+):\.*(.*)$`).FindAllStringSubmatch(out, -1) {
		got[m[1]] = strings.TrimSpace(m[2])
	}
	return got
}

// What the configuration says of ports is what unchanged infiniband-diags see on
// ibsim, and a second run has nothing to write.
func TestSMPortPolicies(t *testing.T) {
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
	if sets, said := bringUp(t, lab, "--config", config, "--state-dir", filepath.Join(dir, "state")); sets != 0 || strings.Contains(said, "level=WARN") {
		t.Errorf("a third run wrote %d times, said %s", sets, said)
	}
}
