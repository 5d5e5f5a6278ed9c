package lint_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/generate"
	"portcullis/fabricsm/topospec/lint"
	"portcullis/fabricsm/topospec/topospectest"
)

func pod() generate.Design {
	return generate.Design{
		Template: generate.RailPod, Units: 2, Hosts: 4, Rails: 2, Aggregation: true, SwitchModel: "MQM8700",
		SM: []generate.SMHost{{Name: "sm-1", Unit: 1, Rail: 1}},
	}
}

func TestFindings(t *testing.T) {
	dev := topospectest.Device
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, r *topospec.Revision)
		want   []lint.Rule
	}{
		{"none", func(*testing.T, *topospec.Revision) {}, nil},
		{"no Subnet Manager", func(t *testing.T, r *topospec.Revision) { dev(t, r, "sm-1").Role = topospec.RoleCompute }, []lint.Rule{lint.NoSM}},
		{"rails crossed", func(t *testing.T, r *topospec.Revision) {
			dev(t, r, "host-0001 mlx5_1").Rail, dev(t, r, "host-0001 mlx5_2").Rail = 2, 1
		}, []lint.Rule{lint.RailPurity, lint.RailPurity, lint.RailPurity, lint.RailPurity, lint.RailPurity, lint.RailPurity}},
		{"rail missing", func(t *testing.T, r *topospec.Revision) { dev(t, r, "host-0004 mlx5_2").Rail = 0 }, []lint.Rule{lint.RailMissing}},
		{"T152 aggregation node left out", func(t *testing.T, r *topospec.Revision) {
			g := dev(t, r, "leaf-1-1").GUID
			r.Links = slices.DeleteFunc(r.Links, func(l topospec.Link) bool { return l.A == topospec.End{GUID: g, Port: 41} })
		}, []lint.Rule{lint.Inside, lint.NotLinked}},
		{"trunk moved", func(t *testing.T, r *topospec.Revision) {
			g := dev(t, r, "leaf-1-1").GUID
			for i := range r.Links {
				if r.Links[i].A == (topospec.End{GUID: g, Port: 40}) {
					r.Links = slices.Delete(r.Links, i, i+1)
					break
				}
			}
		}, []lint.Rule{lint.Degree, lint.Degree, lint.Parallel, lint.Parallel, lint.SpareUnsaid, lint.SpareUnsaid}},
		{"port too high", func(t *testing.T, r *topospec.Revision) {
			d := dev(t, r, "leaf-1-1")
			d.Ports = 60
			r.Links = append(r.Links, topospec.Link{A: topospec.End{GUID: d.GUID, Port: 50}, State: topospec.Reserved})
		}, []lint.Rule{lint.PortNumber}},
		{"kind not said", func(t *testing.T, r *topospec.Revision) { dev(t, r, "host-0001 mlx5_1").Kind = topospec.KindAny }, []lint.Rule{lint.UnknownKind}},
		{"weak policy", func(_ *testing.T, r *topospec.Revision) { r.Policy.Fields.GUID = topospec.FieldWarn }, []lint.Rule{lint.WeakPolicy}},
		{"cut in two", func(t *testing.T, r *topospec.Revision) {
			for i := range r.Links {
				if r.Links[i].Class == topospec.ClassTrunk {
					r.Links[i].State = topospec.NoDiscover
				}
			}
		}, slices.Repeat([]lint.Rule{lint.Unreachable}, 22)},
		{"no rack", func(t *testing.T, r *topospec.Revision) { dev(t, r, "host-0001 mlx5_1").Rack = "" }, []lint.Rule{lint.NoPlace}},
		{"read backwards", func(t *testing.T, r *topospec.Revision) {
			d := dev(t, r, "leaf-1-1")
			r.Devices = append(r.Devices, topospec.Device{GUID: topospec.Swapped(d.GUID), Kind: topospec.KindHCA, Rack: "1"})
		}, []lint.Rule{lint.NotLinked, lint.SwappedBytes}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := topospectest.Revision(t, pod())
			tt.change(t, r)
			var got []lint.Rule
			for _, f := range lint.Check(topospectest.Spec(t, r)) {
				got = append(got, f.Rule)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestCables(t *testing.T) {
	r := &topospec.Revision{}
	for i, rack := range []string{"2", "1", "1"} {
		r.Devices = append(r.Devices, topospec.Device{GUID: ib.GUID(0x10 + i), Kind: topospec.KindSwitch, Rack: rack})
	}
	for i := range ib.PortNum(3) {
		r.Links = append(r.Links, topospec.Link{A: topospec.End{GUID: 0x10, Port: i + 1}, B: topospec.End{GUID: 0x11, Port: i + 1}})
	}
	r.Links = append(r.Links, topospec.Link{A: topospec.End{GUID: 0x11, Port: 9}, B: topospec.End{GUID: 0x12, Port: 9}})
	want := []lint.RackPair{{A: "1", B: "1", Cables: 1}, {A: "1", B: "2", Cables: 3}}
	if diff := cmp.Diff(lint.Cables(topospectest.Spec(t, r)), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
