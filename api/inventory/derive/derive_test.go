package derive

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/native"
)

const site = `racks: [{id: r1, site: fra1, units: 42}]
sites: [{id: fra1}]
switches:
- {id: leaf-1, guid: 0x0010000000000001, model: MQM8700, role: leaf, rack: r1, unit: 20, aggregation_guid: 0x0010000000000091}
- {id: spine-1, guid: 0x0010000000000002, ports: 4, role: spine}
- {id: cold, guid: 0x0010000000000003, model: MQM8700, spare: true}
hosts:
- {id: gpu-1, rack: r1, unit: 3, hcas: [{node_guid: 0x0020000000000001, model: ConnectX-6, rail: 1, ports: [{port: 1, guid: 0x0020000000000002, cable: leaf-1/7, label: C-1}]}]}
- {id: sm-1, role: sm, hcas: [{node_guid: 0x0020000000000011, ports: [{port: 2, guid: 0x0020000000000012, cable: spine-1/4}]}]}
- {id: cold-1, spare: true, hcas: [{node_guid: 0x0020000000000021, ports: [{port: 1, guid: 0x0020000000000022}]}]}
adapters: [{node_guid: 0x0020000000000031, model: ConnectX-6, location: drawer 2, ports: [{port: 1, guid: 0x0020000000000032}]}]
cables: [{a: leaf-1/33, b: spine-1/1, label: T-1}]
`

// derivedText is the topology of site without ports that are reserved.
const derivedText = `- {"guid": "0x0010000000000001", "kind": "switch", "model": "MQM8700", "site": "fra1", "rack": "r1", "u": 20, "name": "leaf-1", "role": "leaf", "ports": 41}
- {"guid": "0x0010000000000002", "kind": "switch", "name": "spine-1", "role": "spine", "ports": 4}
- {"guid": "0x0010000000000003", "kind": "switch", "model": "MQM8700", "name": "cold", "stock": "spare", "ports": 40}
- {"guid": "0x0010000000000091", "kind": "an", "site": "fra1", "rack": "r1", "u": 20, "name": "leaf-1 aggregation node", "ports": 1}
- {"guid": "0x0020000000000001", "kind": "hca", "model": "ConnectX-6", "site": "fra1", "rack": "r1", "u": 3, "name": "gpu-1 hca-1", "host": "gpu-1", "rail": 1, "role": "compute", "ports": 1, "port_guids": ["0x0020000000000002"]}
- {"guid": "0x0020000000000011", "kind": "hca", "name": "sm-1 hca-1", "host": "sm-1", "role": "sm", "ports": 2}
- {"guid": "0x0020000000000021", "kind": "hca", "name": "cold-1 hca-1", "host": "cold-1", "role": "compute", "stock": "spare", "ports": 1, "port_guids": ["0x0020000000000022"]}
- {"guid": "0x0020000000000031", "kind": "hca", "model": "ConnectX-6", "room": "drawer 2", "stock": "spare", "ports": 1, "port_guids": ["0x0020000000000032"]}
links:
- {"a": "0x0010000000000001/7", "b": "0x0020000000000001/1", "class": "host", "cable": {"sn": "C-1"}}
- {"a": "0x0010000000000001/33", "b": "0x0010000000000002/1", "class": "trunk", "cable": {"sn": "T-1"}}
- {"a": "0x0010000000000001/41", "b": "0x0010000000000091/1", "class": "internal"}
- {"a": "0x0010000000000002/4", "b": "0x0020000000000011/2", "class": "service"}
`

func contents(t *testing.T, text string) *inventory.Contents {
	t.Helper()
	d, err := inventory.Parse([]inventory.File{{Name: "site.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := inventory.NewPlan(&inventory.Contents{}, d)
	if err != nil {
		t.Fatal(err)
	}
	return p.Contents()
}

// revision derives a topology and compiles it.
func revision(t *testing.T, text string, active *topospec.Spec) *topospec.Spec {
	t.Helper()
	r, err := Revision(contents(t, text), active, "rail-a")
	if err != nil {
		t.Fatal(err)
	}
	s, err := topospec.Compile("inventory", r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRevision(t *testing.T) {
	t.Parallel()
	s := revision(t, site, nil)
	var listed strings.Builder
	reserved := 0
	_, body, _ := strings.Cut(string(native.AppendTo(nil, s.Revision(), native.YAML)), "devices:\n")
	for line := range strings.Lines(body) {
		switch {
		case strings.Contains(line, `"reserved"`):
			reserved++
		case !strings.HasPrefix(line, "end:"):
			listed.WriteString(line)
		}
	}
	if listed.String() != derivedText {
		t.Errorf("got\n%s\nwant\n%s", listed.String(), derivedText)
	}
	if reserved != 38+2 {
		t.Errorf("%d ports are reserved, want those of leaf-1 and spine-1 without a cable", reserved)
	}
	if s.Revision().Fabric != "rail-a" || s.NumActive() != 4 {
		t.Errorf("fabric %s, %d links up", s.Revision().Fabric, s.NumActive())
	}
}

// TestRevisionInForce: what the inventory has no room for comes from the revision in force.
func TestRevisionInForce(t *testing.T) {
	t.Parallel()
	r := revision(t, site, nil).Revision().Clone()
	r.Fabric, r.Policy.Mode = "rail-b", topospec.Enforce
	for i := range r.Devices {
		if r.Devices[i].GUID == 0x0020000000000001 {
			r.Devices[i].Name = "gpu-1 mlx5_0"
		}
	}
	r.Devices = append(r.Devices,
		topospec.Device{GUID: 0x0030000000000001, Kind: topospec.KindRouter, Name: "router-1"},
		topospec.Device{GUID: 0x0030000000000002, Kind: topospec.KindHCA, Name: "scrapped", Stock: topospec.Retired},
		topospec.Device{GUID: 0x0030000000000003, Kind: topospec.KindHCA, Name: "unknown mlx5_0", Host: "unknown"},
	)
	for i := range r.Links {
		switch l := &r.Links[i]; l.A {
		case topospec.End{GUID: 0x0010000000000001, Port: 7}:
			l.State, l.Reason = topospec.Maintenance, "RMA-1"
		case topospec.End{GUID: 0x0010000000000001, Port: 8}:
			l.State = topospec.NoDiscover
		case topospec.End{GUID: 0x0010000000000001, Port: 9}:
			l.State, l.B, l.Class = topospec.Active, topospec.End{GUID: 0x0030000000000001, Port: 1}, topospec.ClassUplink
		case topospec.End{GUID: 0x0010000000000001, Port: 10}:
			l.State, l.B, l.Class = topospec.Active, topospec.End{GUID: 0x0030000000000003, Port: 1}, topospec.ClassHost
		}
	}
	active, err := topospec.Compile("active", r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range diff.Compare(active, revision(t, site, active), diff.Everything).Items {
		got = append(got, i.String())
	}
	want := []string{
		"miss_wired: site fra1 rack r1 U20 leaf-1 port 10 ↔ nothing, expected unknown unknown mlx5_0 port 1",
		"device_removed: unknown unknown mlx5_0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the draft differs from what is in force by\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRevisionIncomplete(t *testing.T) {
	t.Parallel()
	_, err := Revision(contents(t, "hosts: [{id: a, hcas: [{node_guid: 0x20, ports: [{port: 1, guid: 0x21, cable: 0x99/3}]}]}]"), nil, "rail-a")
	for _, want := range []string{"it has no switches; import switches", "cable of host a port GUID 0x0000000000000021: it leads to 0x0000000000000099/3, a switch that inventory does not have"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// keeper is Revisions in a test.
type keeper struct {
	active  *topospec.Spec
	drafted *topospec.Revision
}

func (k *keeper) InForce(context.Context, store.Reader) (*topospec.Spec, error) { return k.active, nil }

func (k *keeper) DraftOf(_ context.Context, author, source, why string, write func(*topospec.Spec) (*topospec.Revision, error)) (*v1.TopospecRevision, error) {
	r, err := write(k.active)
	if err != nil {
		return nil, err
	}
	k.drafted = r
	return &v1.TopospecRevision{Revision: 1, Author: author, Source: source, Reason: why}, nil
}

func TestService(t *testing.T) {
	t.Parallel()
	c := contents(t, site)
	s := store.New(memory.New(time.Now), "")
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
		var errs []error
		for i := range c.Racks {
			errs = append(errs, inventory.Racks().Put(tx, c.Racks[i].ID, c.Racks[i]))
		}
		for i := range c.Switches {
			errs = append(errs, inventory.Switches().Put(tx, c.Switches[i].ID, c.Switches[i]))
		}
		for i := range c.Hosts {
			errs = append(errs, inventory.Hosts().Put(tx, c.Hosts[i].ID, c.Hosts[i]))
		}
		for i := range c.Trunks {
			errs = append(errs, inventory.Trunks().Put(tx, c.Trunks[i].Key(), c.Trunks[i]))
		}
		return errors.Join(errs...)
	}); err != nil {
		t.Fatal(err)
	}
	k := &keeper{}
	var fabric *topo.Fabric
	d := New(Options{Store: s, Revisions: k, Seen: func() (*topo.Fabric, error) {
		if fabric == nil {
			return nil, errors.New("the fabric is out of reach")
		}
		return fabric, nil
	}})
	got, err := d.Check(t.Context())
	if err != nil || got.Topology.Compared || got.Fabric.Compared || got.Fabric.Why != "the fabric is out of reach" {
		t.Fatalf("without a topology and a fabric: %+v, %v", got, err)
	}
	if _, err := d.Draft(t.Context(), "alice", v1.TopospecFromInventory{Reason: "first"}); err == nil || !strings.Contains(err.Error(), "names no fabric") {
		t.Errorf("a draft without a fabric: %v", err)
	}
	if r, err := d.Draft(t.Context(), "alice", v1.TopospecFromInventory{Fabric: "rail-a", Reason: "first"}); err != nil || r.Source != "inventory" || k.drafted == nil {
		t.Fatalf("draft %+v, %v", r, err)
	}
	if k.active, err = topospec.Compile("active", k.drafted); err != nil {
		t.Fatal(err)
	}
	moved := k.drafted.Clone()
	for i := range moved.Links {
		if l := &moved.Links[i]; l.A == (topospec.End{GUID: 0x0010000000000001, Port: 7}) {
			l.A.Port = 8
		} else if l.A == (topospec.End{GUID: 0x0010000000000001, Port: 8}) {
			l.A.Port = 7
		}
	}
	if fabric, err = discovered.Fabric(moved); err != nil {
		t.Fatal(err)
	}
	got, err = d.Check(t.Context())
	if err != nil || !got.Topology.Compared || len(got.Topology.Differences) != 0 {
		t.Errorf("against its own draft: %+v, %v", got, err)
	}
	text := ""
	for _, x := range got.Fabric.Differences {
		text += x.Text + "\n"
	}
	const want = "missing: site fra1 rack r1 U20 leaf-1 port 7 ↔ site fra1 rack r1 U3 gpu-1 gpu-1 hca-1 port 1\nunexpected: site fra1 rack r1 U20 leaf-1 port 8 ↔ site fra1 rack r1 U3 gpu-1 gpu-1 hca-1 port 1\n"
	if text != want {
		t.Errorf("a cable at another port: got\n%s\nwant\n%s", text, want)
	}
}
