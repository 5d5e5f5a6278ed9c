package main

import (
	"os"
	"strings"
	"testing"
)

// The service reaches the devices that fabric.port names, through the udev rule
// of its package, and no others.
func TestTheUnitSeesOnlyUserMADDevices(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	unit := read("packaging/systemd/portcullisd.service")
	for _, line := range []string{"\nDevicePolicy=closed\n", "\nDeviceAllow=char-infiniband_mad rw\n", "\nGroup=portcullis\n"} {
		if !strings.Contains(unit, line) {
			t.Errorf("portcullisd.service does not say %q", line)
		}
	}
	if n := strings.Count(unit, "DeviceAllow="); n != 1 {
		t.Errorf("portcullisd.service allows %d kinds of devices, want 1", n)
	}
	rules := read("packaging/udev/60-portcullisd.rules")
	for _, word := range []string{`SUBSYSTEM=="infiniband_mad"`, `GROUP="portcullis"`, `MODE="0660"`, "umad", "issm"} {
		if !strings.Contains(rules, word) {
			t.Errorf("the udev rule lacks %s", word)
		}
	}
	if !strings.Contains(read("nfpm.yaml"), "packaging/udev/60-portcullisd.rules") {
		t.Error("no package holds the udev rule")
	}
}
