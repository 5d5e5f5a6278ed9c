package sim_test

import (
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/hcaconf"
)

// firmware is a model of an adapter's firmware that forgets nothing.
type firmware struct {
	next  hcaconf.Config
	boots int
}

func (a *firmware) Boot() hcaconf.Config {
	a.boots++
	return a.next
}

// The settings of an adapter with a model of its firmware are those of the
// model, from boot to boot.
func TestInstall(t *testing.T) {
	f := tree(t, sim.Options{})
	a := &firmware{}
	if err := f.Install("h1", a); err != nil || a.boots != 1 {
		t.Fatal(a.boots, err)
	}
	host := station(t, f, "h1", true)
	self := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo})
	reaches := func(want bool) {
		t.Helper()
		if got := ask(t, host, self) != nil; got != want {
			t.Errorf("the host reaches subnet management: %v, want %v", got, want)
		}
	}
	reaches(true)
	a.next.SMPFirewall = true
	reaches(true)
	if err := f.Reboot("h1"); err != nil || a.boots != 2 {
		t.Fatal(a.boots, err)
	}
	reaches(false)
	if got := f.PortInfo("h1", 1).CapabilityMask; got&mad.IsSMDisabled == 0 {
		t.Errorf("capability mask %v, without IsSMdisabled", got)
	}
	if err := f.ConfigureHCA("h1", hcaconf.Config{}); err == nil {
		t.Error("the settings are written past the firmware")
	}
	if err := f.ApplyConfig("h1", hcaconf.Signed{}); err == nil {
		t.Error("a signed configuration is applied past the firmware")
	}
	a.next.SMPFirewall = false
	if err := f.PowerOff("h1"); err != nil {
		t.Fatal(err)
	}
	if err := f.PowerOn("h1"); err != nil || a.boots != 3 {
		t.Fatal(a.boots, err)
	}
	reaches(true)
	if err := f.Install("leaf1", a); err == nil {
		t.Error("a switch has an adapter")
	}
}

// A firewall that was up before the model was installed is up at once.
func TestInstallFirewalled(t *testing.T) {
	f := tree(t, sim.Options{})
	if err := f.Install("h1", &firmware{next: hcaconf.Config{SMPFirewall: true}}); err != nil {
		t.Fatal(err)
	}
	if f.PortInfo("h1", 1).CapabilityMask&mad.IsSMDisabled == 0 {
		t.Error("the port does not show it")
	}
}
