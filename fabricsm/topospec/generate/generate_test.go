package generate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/generate"
	"portcullis/fabricsm/topospec/lint"
	"portcullis/fabricsm/topospec/topospectest"
)

// TestShapes holds the sizes to the table of the public reference architecture
// (leaf, spine and core switches, cables per tier).
func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		design generate.Design
		want   string
	}{
		{"2 units", generate.Design{Template: generate.RailPod, Units: 2}, "64 hosts, 512 adapters, 16/8/0, cables 512 512 0"},
		{"4 units", generate.Design{Template: generate.RailPod, Units: 4}, "128 hosts, 1024 adapters, 32/16/0, cables 1024 1024 0"},
		{"16 units", generate.Design{Template: generate.RailPod, Units: 16}, "512 hosts, 4096 adapters, 128/128/64, cables 4096 4096 4096"},
		{"64 units", generate.Design{Template: generate.RailPod, Units: 64}, "2048 hosts, 16384 adapters, 512/512/256, cables 16384 16384 16384"},
		{"31 in the first", generate.Design{Template: generate.RailPod, Units: 4, FirstUnit: 31}, "127 hosts, 1016 adapters, 32/16/0, cables 1016 1024 0"},
		{"eight racks of trays", generate.Design{Template: generate.Racks}, "144 hosts, 576 adapters, 20/16/0, cables 576 640 0"},
		{"fat tree", generate.Design{Template: generate.FatTree, Units: 64}, "2048 hosts, 2048 adapters, 64/32/0, cables 2048 2048 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := tt.design.Shape()
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%d hosts, %d adapters, %d/%d/%d, cables %d %d %d", s.Hosts, s.Adapters, s.Leaves, s.Spines, s.Cores, s.HostCables, s.SpineCables, s.CoreCables)
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestGenerated: a generated revision has no suspicious parts except the intended ones.
func TestGenerated(t *testing.T) {
	sm := []generate.SMHost{{Name: "sm-1", Unit: 1, Rail: 1}, {Name: "sm-2", Unit: 1, Rail: 2}}
	for _, tt := range []struct {
		name   string
		design generate.Design
	}{
		{"small", topospectest.Small()},
		{"rail pod", generate.Design{Template: generate.RailPod, Units: 2, FirstUnit: 31, Aggregation: true, SM: sm}},
		{"three tiers", generate.Design{Template: generate.RailPod, Units: 16, FirstUnit: 31, Rails: 8, Aggregation: true, SM: sm[:1], PodUnits: 8}},
		{"racks", generate.Design{Template: generate.Racks, Aggregation: true, SM: sm, Racks: 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := topospectest.Spec(t, topospectest.Revision(t, tt.design))
			shape, err := tt.design.Shape()
			if err != nil {
				t.Fatal(err)
			}
			counts := map[topospec.Class]int{}
			for _, l := range s.Revision().Links {
				if l.State == topospec.Active {
					counts[l.Class]++
				}
			}
			want := map[topospec.Class]int{
				topospec.ClassHost: shape.HostCables, topospec.ClassTrunk: shape.SpineCables + shape.CoreCables, topospec.ClassService: len(tt.design.SM),
			}
			if tt.design.Aggregation {
				want[topospec.ClassInternal] = shape.Leaves + shape.Spines + shape.Cores
			}
			if diff := cmp.Diff(counts, want); diff != "" {
				t.Errorf("links (-got +want):\n%s", diff)
			}
			for _, f := range lint.Check(s) {
				t.Errorf("%s: %s: %s", f.Rule, f.Object, f.Text)
			}
		})
	}
}

func TestPlacesAndNames(t *testing.T) {
	d := generate.Design{Template: generate.Racks, Racks: 2, Trays: 3, Units: 2, Tiers: 2, Spines: 32, Names: generate.Naming{Host: "r{rack:3}t{tray}", Leaf: "leaf-{unit}{rail}"}}
	r := topospectest.Revision(t, d)
	s := topospectest.Spec(t, r)
	hca := topospectest.Device(t, r, "r004t3 mlx5_2")
	home := s.Home(s.DeviceByGUID(hca.GUID))
	if got, want := s.Where(home), "leaf-22 port 6"; !strings.HasSuffix(got, want) {
		t.Errorf("it is at %q, want %q", got, want)
	}
	if hca.Host != "r004t3" || hca.Rail != 2 || hca.Slot != "tray 3" {
		t.Errorf("%+v", hca)
	}
}

func TestDesignsRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		design generate.Design
		want   string
	}{
		{"no template", generate.Design{}, "template"},
		{"model", generate.Design{Template: generate.RailPod, SwitchModel: "X1"}, `switch model "X1" is not known`},
		{"host model", generate.Design{Template: generate.RailPod, HostModel: "MQM9700"}, "host model"},
		{"too wide", generate.Design{Template: generate.RailPod, Units: 9, Tiers: 2}, "do not fit below"},
		{"half a pod", generate.Design{Template: generate.RailPod, Units: 24}, "want a whole number of pods"},
		{"negative", generate.Design{Template: generate.RailPod, Units: -1}, "units -1"},
		{"huge", generate.Design{Template: generate.RailPod, Units: 4096, Hosts: 4096}, "the most is"},
		{"spines", generate.Design{Template: generate.RailPod, Units: 2, Spines: 7}, "do not fit below 7 spines"},
		{"first unit", generate.Design{Template: generate.RailPod, FirstUnit: 33}, "first_unit_hosts 33"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.design.Shape(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestManifestsRefused(t *testing.T) {
	const head, line = "name,guid\n", "a,0x0010000000000001\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "m:1: no header"},
		{"no guid", "name\na\n", "the columns name and guid are not there"},
		{"column", "name,guid,colour\n", `column "colour"`},
		{"cut off", head + "a,0x0010000000000001", "m:2: the last line has no end"},
		{"short GUID", head + "a,0x10\n", "m:2: guid: GUID \"0x10\""},
		{"GUID twice", head + line + "b,0x0010000000000001\n", `m:3: GUID 0x0010000000000001: it is that of "a", too`},
		{"name twice", head + line + "a,0x0010000000000002\n", `m:3: name "a"`},
		{"fields", head + "a\n", "m:2: record on line 2: wrong number of fields"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := generate.ParseManifest("m", tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestManifestMustFit(t *testing.T) {
	d := generate.Design{Template: generate.FatTree, SwitchModel: "MSX6036", HostModel: "ConnectX-6", Units: 1, Hosts: 2}
	m := topospectest.Manifest(t, d, "stranger,0x0020000000009001,,,in_use", "spare,0x0020000000009002,ConnectX-6,,spare")
	if _, err := d.Revision(m); err == nil || !strings.Contains(err.Error(), `"stranger": the design has no place for it`) {
		t.Errorf("a device too many: %v", err)
	}
	d.Hosts = 4
	if _, err := d.Revision(m); err == nil || !strings.Contains(err.Error(), `hca "host-0003 mlx5_1": it is not in the manifest`) {
		t.Errorf("a device too few: %v", err)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add("name,guid,u,stock\na,0x0010000000000001,3,spare\n")
	f.Add("name,guid\n\"a\n\",0x0010000000000001\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := generate.ParseManifest("m", text)
		if err != nil {
			return
		}
		d := generate.Design{Template: generate.FatTree, Units: 1, Hosts: 1}
		if r, err := d.Revision(m); err == nil && r.Validate("m") != nil {
			t.Error("an invalid revision was made")
		}
	})
}
