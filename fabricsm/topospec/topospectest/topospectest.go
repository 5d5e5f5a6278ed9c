// Package topospectest makes specifications and observed fabrics for tests.
package topospectest

import (
	"fmt"
	"strings"
	"testing"

	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/generate"
)

// Small is a fat tree of three levels: four leaves in two pods, four spines, two
// cores, three hosts to a leaf and a Subnet Manager "sm-1" on the first one.
func Small() generate.Design {
	return generate.Design{
		Fabric: "small", Template: generate.FatTree, SwitchModel: "MSX6036", HostModel: "ConnectX-6",
		Units: 4, Hosts: 3, Tiers: 3, PodUnits: 2, SM: []generate.SMHost{{Name: "sm-1", Unit: 1, Rail: 1}},
	}
}

// Large is the largest public reference: 64 units of 32 hosts with eight rails,
// 16384 adapters below three levels of 512, 512 and 256 switches.
func Large() generate.Design {
	return generate.Design{Fabric: "large", Template: generate.RailPod, Units: 64, FirstUnit: 31, SM: []generate.SMHost{{Name: "sm-1", Unit: 1, Rail: 1}}}
}

// Manifest returns a manifest with a GUID for every device of a design, in the order of the design, and further lines.
func Manifest(tb testing.TB, d generate.Design, more ...string) generate.Manifest {
	tb.Helper()
	slots, err := d.Slots()
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("name,guid,model,rack,stock\n")
	for i, s := range slots {
		base := 0x0020_0000_0000_0000
		if s.Kind == topospec.KindSwitch {
			base = 0x0010_0000_0000_0000
		}
		fmt.Fprintf(&b, "%s,0x%016x,%s,%d,in_use\n", s.Name, base+16*(i+1), s.Model, i/40+1)
	}
	for _, line := range more {
		b.WriteString(line + "\n")
	}
	m, err := generate.ParseManifest("manifest", b.String())
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// Revision makes the revision of a design.
func Revision(tb testing.TB, d generate.Design, more ...string) *topospec.Revision {
	tb.Helper()
	r, err := d.Revision(Manifest(tb, d, more...))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// Spec compiles a revision.
func Spec(tb testing.TB, r *topospec.Revision) *topospec.Spec {
	tb.Helper()
	s, err := topospec.Compile("test", r)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Fabric creates the fabric with the cables of a revision, and returns the port of its Subnet Manager.
func Fabric(tb testing.TB, r *topospec.Revision) (*topo.Fabric, topo.PortID) {
	tb.Helper()
	f, err := discovered.Fabric(r)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range r.Devices {
		if d := &r.Devices[i]; d.Role == topospec.RoleSM {
			return f, f.PortOf(f.NodeByGUID(d.GUID), 1)
		}
	}
	tb.Fatal("the revision has no Subnet Manager")
	return nil, topo.None
}

// Device finds a device by its name.
func Device(tb testing.TB, r *topospec.Revision, name string) *topospec.Device {
	tb.Helper()
	for i := range r.Devices {
		if r.Devices[i].Name == name {
			return &r.Devices[i]
		}
	}
	tb.Fatalf("the revision has no device %q", name)
	return nil
}
