//go:build vm

package cards_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"portcullis/agent/hca/fwctl"
	"portcullis/agent/hca/mst"
	"portcullis/agent/hca/register"
	"portcullis/agent/hca/sysfs"
	"portcullis/packaging/vm/inside/guest"
)

// The kernel's own code reads configuration space and vital product data.
func TestFunction(t *testing.T) {
	b := plug(t, true)
	dir := "/sys/bus/pci/devices/" + b.address() + "/"
	for name, want := range map[string]string{
		"vendor": "0x15b3", "device": "0x1021", "class": "0x020700", "current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16",
	} {
		if got := guest.Read(t, dir+name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	tree, err := sysfs.Open("/sys")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	all, _ := tree.Functions()
	if len(all) != 1 || all[0].Address != b.function.Address || all[0].VPDError != nil || all[0].VPD.Serial != serial || all[0].FWCTL == "" {
		t.Fatalf("functions %+v, problems %v", all, tree.Problems())
	}
	if link, err := os.Readlink("/sys/class/fwctl/" + all[0].FWCTL); err != nil || !strings.HasSuffix(link, "/"+b.address()+"/fwctl/"+all[0].FWCTL) {
		t.Errorf("fwctl node at %s, %v", link, err)
	}
}

func TestQuery(t *testing.T) {
	b := plug(t, false)
	for _, e := range []guest.Ended{b.older("mstflint", "q", "full"), b.newest("mstflint", "q", "full")} {
		b.says(e, 0, "FW Version: 28.43.1014", "Base GUID: b83fd20300123400 16", "PSID: "+psid, "Security Attributes: secure-fw",
			"Life cycle: GA SECURED", "Secure Boot Capable: Enabled", "Default Update Method: fw_ctrl")
	}
	b.says(b.newest("mstreg", "--reg_name", "MFRL", "--get"), 0, "reset_trigger | 0x00000048")
	b.says(b.newest("mstreg", "--reg_name", "MCC", "--get", "-i", "component_index=0"), 0, "control_state | 0x00000000")
}

// A setting is for the next boot first, and in force after it.
func TestSettings(t *testing.T) {
	b := plug(t, false)
	b.says(b.older("mstconfig", "-y", "set", "SAFE_MODE_ENABLE=1"), 0, "Applying... Done!")
	b.says(b.newest("mstconfig", "-y", "set", "SM_DISABLE=1"), 0, "Applying... Done!")
	if b.card.SMPFirewall() {
		t.Error("SM_DISABLE is in force before the next boot")
	}
	b.says(b.newest("mstconfig", "-e", "q", "SM_DISABLE"), 0, "SM_DISABLE False(0) False(0) True(1)")
	b.card.Reset()
	b.says(b.newest("mstconfig", "-e", "q", "SM_DISABLE", "SAFE_MODE_ENABLE"), 0, "SM_DISABLE False(0) True(1) True(1)",
		"SAFE_MODE_ENABLE False(0) True(1) True(1)")
	if !b.card.SMPFirewall() {
		t.Error("SM_DISABLE is not in force after the boot")
	}
	b.says(b.newest("mstconfig", "-y", "reset"), 0, "Applying... Done!")
	b.card.Reset()
	if b.card.SMPFirewall() {
		t.Error("SM_DISABLE is in force after all settings were reset")
	}
}

// TestApply checks that root of the host can neither change nor take back the settings of a signed file.
func TestApply(t *testing.T) {
	b := plug(t, false)
	copyFile(t, "tenant-lock.digest.bin")
	copyFile(t, "tenant-lock.rsa2048.bin")
	b.says(b.newest("mstconfig", "-y", "apply", "/tmp/tenant-lock.digest.bin"), 3, "The component is not signed")
	b.says(b.newest("mstconfig", "-y", "apply", "/tmp/tenant-lock.rsa2048.bin"), 0, "Done!")
	b.card.Reset()
	b.says(b.newest("mstconfig", "-y", "set", "SM_DISABLE=0"), 3, "Applying... Failed!", "bad parameter")
	b.says(b.newest("mstconfig", "-y", "reset"), 0)
	b.card.Reset()
	if !b.card.SMPFirewall() {
		t.Error("the SMP firewall is off")
	}
}

func copyFile(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile("/suite/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/tmp/"+name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// MLOCK by the vendor's tool: shut, shut once more, a wrong key, the right one.
func TestSecureHost(t *testing.T) {
	b := plug(t, false)
	b.says(b.newest("mstflint", "set_key", "1122334455667788"), 0, "Secure Host was enabled successfully")
	if b.card.LockState() != register.Locked {
		t.Errorf("the card is %v", b.card.LockState())
	}
	b.says(b.newest("mstflint", "hw_access", "disable", "8877665544332211"), 0, "already disabled")
	b.says(b.newest("mstflint", "q"), 1, "HW access is disabled on the device")
	b.says(b.newest("mstflint", "hw_access", "enable", "1122334455667789"), 1, "The given key is incorrect")
	b.says(b.newest("mstflint", "hw_access", "enable", "1122334455667788"), 0, "The Secure Host was disabled successfully")
	if b.card.LockState() == register.Locked {
		t.Error("the card is locked")
	}
}

// A register is the same by the gateway, as mstreg reads it, and by fwctl.
func TestRegisters(t *testing.T) {
	b := plug(t, true)
	suite, err := mst.Find(t.Context(), mst.Folders())
	if err != nil {
		t.Fatal(err)
	}
	tool, err := suite.Registers(b.address())
	if err != nil {
		t.Fatal(err)
	}
	device, err := fwctl.Open("/dev/fwctl/" + nodeOf(b))
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	for _, r := range []register.Layout{register.MGIR{}, register.MFSV{}, register.MLOCK{}, register.MNVGC{}} {
		data, err := register.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		one, err := tool.Access(t.Context(), r.ID(), register.Read, bytes.Clone(data))
		if err != nil {
			t.Errorf("%v by mstreg: %v", r.ID(), err)
		}
		other, err := device.Access(t.Context(), r.ID(), register.Read, data)
		if err != nil {
			t.Errorf("%v by fwctl: %v", r.ID(), err)
		}
		if !bytes.Equal(one, other) {
			t.Errorf("%v: mstreg %x\nfwctl  %x", r.ID(), one, other)
		}
	}
	if e := guest.Try(t, "chroot", "/newest", "/usr/bin/mstflint", "-d", nodeOf(b), "q"); !strings.Contains(e.Out, psid) {
		t.Errorf("mstflint by fwctl: %s", e.All)
	}
}

// nodeOf returns the name of the card's node of fwctl.
func nodeOf(b bench) string {
	b.Helper()
	entries, err := os.ReadDir("/sys/bus/pci/devices/" + b.address() + "/fwctl")
	if err != nil || len(entries) != 1 {
		b.Fatalf("nodes of fwctl: %v, %v", entries, err)
	}
	return entries[0].Name()
}
