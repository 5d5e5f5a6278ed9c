package diff_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/topospectest"
)

func base() *topospec.Revision {
	r := &topospec.Revision{Fabric: "f"}
	for i, name := range []string{"leaf-1", "leaf-2", "host-1", "host-2", "host-3"} {
		d := topospec.Device{GUID: ib.GUID(0x10 + i), Name: name, Rack: "12", U: uint8(20 + i), Kind: topospec.KindHCA}
		if i < 2 {
			d.Kind, d.Model = topospec.KindSwitch, "MQM9700"
		}
		r.Devices = append(r.Devices, d)
	}
	end := func(g ib.GUID, p ib.PortNum) topospec.End { return topospec.End{GUID: g, Port: p} }
	r.Links = []topospec.Link{
		{A: end(0x10, 1), B: end(0x11, 1), Class: topospec.ClassTrunk},
		{A: end(0x10, 2), B: end(0x11, 2), Class: topospec.ClassTrunk},
		{A: end(0x10, 14), B: end(0x12, 1), Class: topospec.ClassHost},
		{A: end(0x11, 14), B: end(0x13, 1), Class: topospec.ClassHost},
		{A: end(0x11, 15), State: topospec.Reserved},
	}
	return r
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name   string
		what   diff.What
		change func(r *topospec.Revision)
		want   []string
	}{
		{"the same", diff.Everything, func(*topospec.Revision) {}, nil},
		{"trunks swapped", diff.Everything, func(r *topospec.Revision) { r.Links[0].B, r.Links[1].B = r.Links[1].B, r.Links[0].B }, []string{
			"miss_wired: rack 12 U20 leaf-1 port 1 (1/1) ↔ rack 12 U21 leaf-2 port 2 (1/2), expected rack 12 U21 leaf-2 port 1 (1/1)",
			"miss_wired: rack 12 U20 leaf-1 port 2 (1/2) ↔ rack 12 U21 leaf-2 port 1 (1/1), expected rack 12 U21 leaf-2 port 2 (1/2)",
		}},
		{"a host is gone", diff.CablesOnly, func(r *topospec.Revision) {
			r.Links = append(r.Links[:2], r.Links[3:]...)
			r.Devices = append(r.Devices[:2], r.Devices[3:]...)
		}, []string{
			"missing: rack 12 U20 leaf-1 port 14 (7/2) ↔ rack 12 U22 host-1 port 1",
			"device_removed: rack 12 U22 host-1",
		}},
		{"a host at a spare port", diff.CablesOnly, func(r *topospec.Revision) {
			r.Links[4] = topospec.Link{A: topospec.End{GUID: 0x11, Port: 15}, B: topospec.End{GUID: 0x14, Port: 1}}
		}, []string{"unexpected: rack 12 U21 leaf-2 port 15 (8/1) ↔ rack 12 U24 host-3 port 1"}},
		{"hosts swapped", diff.CablesOnly, func(r *topospec.Revision) { r.Links[2].B, r.Links[3].B = r.Links[3].B, r.Links[2].B }, []string{
			"miss_wired: rack 12 U20 leaf-1 port 14 (7/2) ↔ rack 12 U23 host-2 port 1, expected rack 12 U22 host-1 port 1",
			"miss_wired: rack 12 U21 leaf-2 port 14 (7/2) ↔ rack 12 U22 host-1 port 1, expected rack 12 U23 host-2 port 1",
		}},
		{"a trunk leads elsewhere", diff.CablesOnly, func(r *topospec.Revision) { r.Links[0].A.Port = 9 }, []string{
			"miss_wired: rack 12 U21 leaf-2 port 1 (1/1) ↔ rack 12 U20 leaf-1 port 9 (5/1), expected rack 12 U20 leaf-1 port 1 (1/1)",
		}},
		{"state, place and policy", diff.Everything, func(r *topospec.Revision) {
			r.Links[2].State, r.Devices[2].Rack, r.Policy.MaxFlips = topospec.Maintenance, "13", 3
		}, []string{
			"policy: policy: {Mode:observe Fields:{GUID:default Port:default Type:default PortGUID:default SystemImage:default NumPorts:default} Unknown:disable MinScore:0.0% MaxFlips:3 Two:[] Freeze:[] Stocked:false}, was {Mode:observe Fields:{GUID:default Port:default Type:default PortGUID:default SystemImage:default NumPorts:default} Unknown:disable MinScore:0.0% MaxFlips:0 Two:[] Freeze:[] Stocked:false}",
			"state: rack 12 U20 leaf-1 port 14 (7/2): maintenance, was active",
			"device_moved: 0x0000000000000012: rack 13 U22 host-1, was rack 12 U22 host-1",
		}},
		{"a host claims to be a switch", diff.CablesOnly, func(r *topospec.Revision) { r.Devices[2].Kind = topospec.KindSwitch }, []string{"device_changed: rack 12 U22 host-1: switch, was hca"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := base()
			tt.change(b)
			var got []string
			for _, i := range diff.Compare(topospectest.Spec(t, base()), topospectest.Spec(t, b), tt.what).Items {
				got = append(got, i.String())
			}
			if d := cmp.Diff(got, tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
}

func TestTopologyShape(t *testing.T) {
	b := base()
	b.Links[2].B = topospec.End{GUID: 0x20, Port: 1}
	b.Devices[2].GUID = 0x20
	report := diff.Compare(topospectest.Spec(t, base()), topospectest.Spec(t, b), diff.CablesOnly)
	got, err := json.Marshal(report.Topology())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"added":{"nodes":["0x0000000000000020"],"links":[{"source_guid":"0x0000000000000010","destination_guid":"0x0000000000000020","name":"0x0000000000000010_14:0x0000000000000020_1"}]},` +
		`"removed":{"nodes":["0x0000000000000012"],"links":[{"source_guid":"0x0000000000000010","destination_guid":"0x0000000000000012","name":"0x0000000000000010_14:0x0000000000000012_1"}]}}`
	if d := cmp.Diff(string(got), want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	if report.Links() != 1 || report.Same != 3 {
		t.Errorf("%d links differ, %d are the same; want 1 and 3", report.Links(), report.Same)
	}
}

// BenchmarkCompare compares two revisions of 16384 hosts.
func BenchmarkCompare(b *testing.B) {
	r := topospectest.Revision(b, topospectest.Large())
	c := r.Clone()
	c.Links[100].State = topospec.Maintenance
	x, y := topospectest.Spec(b, r), topospectest.Spec(b, c)
	for b.Loop() {
		if diff.Compare(x, y, diff.Everything).Links() != 1 {
			b.Fatal("not one difference")
		}
	}
}
