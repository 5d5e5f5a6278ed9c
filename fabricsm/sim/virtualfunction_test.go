package sim_test

import (
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/hcaconf"
)

// TestVirtualFunction: a guest has no subnet management unless its adapter is
// configured so, and never behind the firewall; general management it has.
func TestVirtualFunction(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config hcaconf.Config
		smps   bool
	}{
		{"as adapters are", hcaconf.Config{VFs: 2}, false},
		{"configured to let them", hcaconf.Config{VFs: 2, VFSMPs: true}, true},
		{"and behind the firewall", hcaconf.Config{VFs: 2, VFSMPs: true, SMPFirewall: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{})
			if err := f.ConfigureHCA("h1", tt.config); err != nil {
				t.Fatal(err)
			}
			if err := f.Reboot("h1"); err != nil {
				t.Fatal(err)
			}
			s := station(t, f, "sm", true)
			forward(t, s)
			activate(t, s)
			guest, err := f.VirtualFunction("h1", 2)
			if err != nil {
				t.Fatal(err)
			}
			before := f.Stats().Barred
			if got := ask(t, guest, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1)) != nil; got != tt.smps {
				t.Errorf("the leaf answers the guest: %v, want %v", got, tt.smps)
			}
			if kept := f.Stats().Barred > before; kept == tt.smps {
				t.Errorf("the adapter counts an SMP that it kept: %v", kept)
			}
			if ask(t, guest, perf(1, mad.MethodGet, 0x12, 1, 0)) == nil {
				t.Error("a GMP of the guest is not answered")
			}
			guest.SetIsSM(true)
			if f.PortInfo("h1", 1).CapabilityMask.Has(mad.IsSM) {
				t.Error("a guest says that it is a subnet manager")
			}
		})
	}
	f := tree(t, sim.Options{})
	for _, number := range []uint8{0, 1} {
		if _, err := f.VirtualFunction("h1", number); err == nil {
			t.Errorf("virtual function %d of an adapter that has none", number)
		}
	}
}
