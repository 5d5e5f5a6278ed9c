package portpolicy

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// TestRules checks which rule counts for a port: one for the port, one for its GUID, one for its node, or none.
func TestRules(t *testing.T) {
	var b topo.Builder
	sw := b.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 3})
	host := b.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 2})
	end := b.PortOf(host, 1)
	b.SetPort(end, topo.Port{GUID: 0x21})
	c := &Config{MaxMTU: ib.MTU4096, MaxOperationalVLs: 5, Rules: []Rule{
		{GUID: 0x10, MaxMTU: ib.MTU2048},
		{GUID: 0x10, Port: 2, MaxVLs: 2, Disabled: true},
		{GUID: 0x21, Link: Link{MaxSpeed: ib.FDR10}, Disabled: true},
	}}
	r := New(&b, c)
	for _, tt := range []struct {
		name string
		port topo.PortID
		mtu  ib.MTU
		vls  ib.VLCap
		link Link
		off  bool
	}{
		{"by node", b.PortOf(sw, 1), ib.MTU2048, 5, Link{}, false},
		{"by port", b.PortOf(sw, 2), ib.MTU4096, 2, Link{}, true},
		{"by port GUID", end, ib.MTU4096, 5, Link{MaxSpeed: ib.FDR10}, false},
		{"none", b.PortOf(host, 2), ib.MTU4096, 5, Link{}, false},
	} {
		mtu, vls := r.Maxima(tt.port)
		if mtu != tt.mtu || vls != tt.vls || r.LinkOf(tt.port) != tt.link || r.SwitchesOff(tt.port) != tt.off {
			t.Errorf("%s: MTU %v, VLs %v, link %v, off %v", tt.name, mtu, vls, r.LinkOf(tt.port), r.SwitchesOff(tt.port))
		}
	}
	if enable, has := r.FDR10(end); !enable || !has || !r.Any() {
		t.Errorf("FDR10: enable %v, has %v", enable, has)
	}
	other := *c
	if other.Rules = other.Rules[:2]; c.Equal(&other) || !c.Equal(c) {
		t.Error("rules do not count when configurations are compared, or differ from themselves")
	}
}

// TestWantLink checks that masks hold what is supported up to a maximum, and that a Set names only what differs.
func TestWantLink(t *testing.T) {
	var b topo.Builder
	p := b.PortOf(b.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1}), 1)
	r := New(&b, &Config{Link: Link{MaxSpeed: ib.QDR, MaxWidth: ib.Width4x}})
	w := mad.PortInfo{LinkWidthSupported: 3, LinkWidthEnabled: 1, LinkSpeedSupported: 7, LinkSpeedExtSupported: 1, LinkSpeedExtEnabled: 1}
	width, speed := r.WantLink(p, &w)
	if !width || !speed || w.LinkWidthEnabled != 3 || w.LinkSpeedEnabled != 7 || w.LinkSpeedExtEnabled != 0 {
		t.Errorf("width %v %v, speed %v %v, extended %v", width, w.LinkWidthEnabled, speed, w.LinkSpeedEnabled, w.LinkSpeedExtEnabled)
	}
	if SetLink(&w, false, true); w.LinkWidthEnabled != 0 || w.LinkSpeedEnabled != 7 || w.LinkSpeedExtEnabled != extNone {
		t.Errorf("a Set has width %v, speed %v, extended %v", w.LinkWidthEnabled, w.LinkSpeedEnabled, w.LinkSpeedExtEnabled)
	}
	if SetLink(&w, false, false); w.LinkSpeedEnabled != speedNop || w.LinkSpeedExtEnabled != speedNop {
		t.Errorf("a Set that changes nothing has speed %v, extended %v", w.LinkSpeedEnabled, w.LinkSpeedExtEnabled)
	}
}
