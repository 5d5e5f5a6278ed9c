package layout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

const site = `sites: [{id: fra1, name: Frankfurt}]
racks:
- {id: r1, site: fra1, units: 42}
- {id: r2}
switches:
- {id: leaf-1, guid: 0x10, model: MQM9700, role: leaf, rack: r1, unit: 42}
- {id: spine-1, guid: 0x9, ports: 4, role: spine, rack: r2}
- {id: cold, guid: 0x11, serial: S1, spare: true, rack: r1, unit: 1}
hosts:
- {id: h1, rack: r1, unit: 10, slot: left, hcas: [{node_guid: 0x20, pci_slot: "3", ports: [{port: 1, guid: 0x21, cable: leaf-1/3, label: C-1}]}]}
- {id: h2, rack: r1, unit: 10, slot: right, spare: true, hcas: [{node_guid: 0x30, ports: [{port: 1, guid: 0x31}]}]}
- {id: h3, rack: r1, hcas: [{node_guid: 0x40, ports: [{port: 1, guid: 0x41, cable: 0x99/1}]}]}
adapters: [{node_guid: 0x50, model: ConnectX-7, location: drawer 2, ports: [{port: 1, guid: 0x51}]}]
cables: [{a: leaf-1/33, b: spine-1/1, label: T-1}]
`

// stocked returns a Service over an inventory.
func stocked(t *testing.T, text string) *Service {
	t.Helper()
	d, err := inventory.Parse([]inventory.File{{Name: "site.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := inventory.NewPlan(&inventory.Contents{}, d)
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(memory.New(time.Now), "")
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
		c := p.Contents()
		put(t, tx, inventory.Sites(), c.Sites, func(s *inventory.Site) string { return s.ID })
		put(t, tx, inventory.Racks(), c.Racks, func(r *inventory.Rack) string { return r.ID })
		put(t, tx, inventory.Switches(), c.Switches, func(w *inventory.Switch) string { return w.ID })
		put(t, tx, inventory.Hosts(), c.Hosts, func(h *inventory.Host) string { return h.ID })
		put(t, tx, inventory.Adapters(), c.Adapters, func(a *inventory.Adapter) string { return a.NodeGUID.String() })
		put(t, tx, inventory.Trunks(), c.Trunks, (*inventory.Trunk).Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return New(s)
}

func put[T any](t *testing.T, tx *store.Tx, c store.Collection[T], list []T, key func(*T) string) {
	t.Helper()
	for i := range list {
		if err := c.Put(tx, key(&list[i]), list[i]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRack(t *testing.T) {
	t.Parallel()
	s := stocked(t, site)
	got, err := s.Rack(t.Context(), "r1")
	want := &v1.RackView{
		Rack: v1.Rack{ID: "r1", Site: "fra1", SiteName: "Frankfurt", Units: 42, Switches: 2, Hosts: 3},
		Devices: []v1.RackDevice{
			{Unit: 42, Kind: "switch", ID: "leaf-1", Model: "MQM9700", Role: "leaf", Cables: 2},
			{Unit: 10, Slot: "left", Kind: "host", ID: "h1", Cables: 1},
			{Unit: 10, Slot: "right", Kind: "host", ID: "h2", Spare: true},
			{Unit: 1, Kind: "switch", ID: "cold", Spare: true},
			{Kind: "host", ID: "h3", Cables: 1},
		},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := s.Rack(t.Context(), "r9"); err == nil || !strings.Contains(err.Error(), `no rack "r9"`) {
		t.Errorf("a rack that is none: %v", err)
	}
	racks, err := s.Racks(t.Context(), v1.RackQuery{Site: "fra1"})
	if err != nil || len(racks.Items) != 1 || racks.Items[0] != want.Rack {
		t.Errorf("racks of a site: %+v, %v", racks, err)
	}
}

func TestSwitch(t *testing.T) {
	t.Parallel()
	s := stocked(t, site)
	for _, name := range []string{"leaf-1", "0x10"} {
		got, err := s.Switch(t.Context(), name)
		want := &v1.SwitchView{
			Switch: v1.Switch{ID: "leaf-1", GUID: 0x10, Model: "MQM9700", Role: "leaf", Rack: "r1", Where: "site fra1 rack r1 U42 leaf-1", Ports: 64, Cables: 2},
			Cabled: []v1.InventoryCable{
				{PlaceA: place(0x10, 3), A: "site fra1 rack r1 U42 leaf-1 port 3 (2/1)", B: "site fra1 rack r1 U10 slot left h1 slot 3 adapter 0x0000000000000020 port 1", Host: "h1", GUID: 0x21, Label: "C-1"},
				{PlaceA: place(0x10, 33), A: "site fra1 rack r1 U42 leaf-1 port 33 (17/1)", PlaceB: place(0x9, 1), B: "rack r2 spine-1 port 1", Label: "T-1"},
			},
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
	if _, err := s.Switch(t.Context(), "leaf-9"); err == nil || !strings.Contains(err.Error(), `no switch "leaf-9"`) {
		t.Errorf("a switch that is none: %v", err)
	}
	for _, tt := range []struct {
		q    v1.SwitchQuery
		want string
	}{
		{v1.SwitchQuery{}, "cold leaf-1 spine-1"},
		{v1.SwitchQuery{Rack: "r1"}, "cold leaf-1"},
		{v1.SwitchQuery{Role: "spine"}, "spine-1"},
	} {
		list, err := s.Switches(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range list.Items {
			ids = append(ids, list.Items[i].ID)
		}
		if got := strings.Join(ids, " "); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.q, got, tt.want)
		}
	}
}

func TestCables(t *testing.T) {
	t.Parallel()
	s := stocked(t, site)
	for _, tt := range []struct {
		q    v1.CableQuery
		want string
	}{
		{v1.CableQuery{}, "0x0000000000000009/1 0x0000000000000010/3 0x0000000000000099/1"},
		{v1.CableQuery{Rack: "r2"}, "0x0000000000000009/1"},
		{v1.CableQuery{Rack: "r1", Host: "h3"}, "0x0000000000000099/1"},
		{v1.CableQuery{Switch: "0x10"}, "0x0000000000000009/1 0x0000000000000010/3"},
		{v1.CableQuery{Switch: "spine-1", Host: "h1"}, ""},
	} {
		list, err := s.Cables(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var ends []string
		for i := range list.Items {
			ends = append(ends, list.Items[i].PlaceA.String())
		}
		if got := strings.Join(ends, " "); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.q, got, tt.want)
		}
	}
	if _, err := s.Cables(t.Context(), v1.CableQuery{Switch: "leaf-9"}); err == nil {
		t.Error("cables of a switch that is none are listed")
	}
}

func TestSpares(t *testing.T) {
	t.Parallel()
	got, err := stocked(t, site).Spares(t.Context(), v1.PageQuery{})
	want := &v1.List[v1.Spare]{Items: []v1.Spare{
		{Kind: "adapter", ID: "0x0000000000000050", Model: "ConnectX-7", Where: "drawer 2"},
		{Kind: "host", ID: "h2", Where: "site fra1 rack r1 U10 slot right h2"},
		{Kind: "switch", ID: "cold", Serial: "S1", Where: "site fra1 rack r1 U1 cold"},
	}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func place(g ib.GUID, port ib.PortNum) ib.Place { return ib.Place{Switch: g, Port: port} }
