package source

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"portcullis/api/inventory"
	"portcullis/api/inventory/signature"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/format"
	"portcullis/fabricsm/topospec/topospectest"
)

// pair returns a key, and the set that has it pinned for rack r1.
func pair(t testing.TB) (ed25519.PrivateKey, *signature.Set) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	s, err := signature.Parse("keys.yaml", []byte("keys:\n- name: integrator\n  racks: [r1]\n  key: |\n    "+strings.ReplaceAll(text, "\n", "\n    ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return private, s
}

func file(form Form, name, text string) inventory.File {
	return inventory.File{Name: name, Data: []byte(text), Form: string(form)}
}

// imported returns the inventory of files on top of a stored one, as an export.
func imported(t *testing.T, stored *inventory.Contents, keys *signature.Set, files ...inventory.File) (string, *inventory.Plan) {
	t.Helper()
	d, err := Parse(files, keys)
	if err != nil {
		t.Fatal(err)
	}
	p, err := inventory.NewPlan(stored, d)
	if err != nil {
		t.Fatal(err)
	}
	return string(inventory.Write(p.Contents())), p
}

func refused(t *testing.T, what string, keys *signature.Set, want string, files ...inventory.File) {
	t.Helper()
	d, err := Parse(files, keys)
	if err == nil {
		_, err = inventory.NewPlan(&inventory.Contents{}, d)
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %q in it", what, err, want)
	}
}

const manifestJSON = `{
 "manifest": {"version": 1, "rack": "r1"},
 "racks": [{"id": "r1", "units": 42}],
 "switches": [{"id": "leaf-1", "guid": "0x0010000000000001", "model": "MQM8700", "rack": "r1", "unit": 20}],
 "hosts": [{"id": "h1", "rack": "r1", "unit": 3, "hcas": [{"node_guid": "0x0020000000000001", "ports": [{"port": 1, "guid": "0x0020000000000001", "cable": "leaf-1/7"}]}]}]
}
`

const manifestLines = `kind,rack,id,units,unit,model,guid,port,port_guid,to,from,label
rack,r1,,42,,,,,,,,
switch,r1,leaf-1,,20,MQM8700,0x0010000000000001,,,,,
host,r1,h1,,3,,0x0020000000000001,1,0x0020000000000001,leaf-1/7,,
`

func TestManifests(t *testing.T) {
	t.Parallel()
	key, keys := pair(t)
	sign := func(f inventory.File) inventory.File {
		f.Signature = ed25519.Sign(key, f.Data)
		return f
	}
	json, _ := imported(t, &inventory.Contents{}, keys, sign(file(ManifestJSON, "r1.json", manifestJSON)))
	lines, _ := imported(t, &inventory.Contents{}, keys, sign(file(ManifestCSV, "r1.csv", manifestLines)))
	if json != lines || !strings.Contains(json, "cable: 0x0010000000000001/7") {
		t.Errorf("the two forms of one manifest differ:\n%s\n%s", json, lines)
	}
	changed := sign(file(ManifestJSON, "r1.json", manifestJSON))
	changed.Data = []byte(strings.Replace(manifestJSON, "leaf-1/7", "leaf-1/8", 1))
	refused(t, "a manifest that was changed", keys, "r1.json: the signature is of no pinned key", changed)
	refused(t, "no signature", keys, "r1.csv: the manifest has no signature", file(ManifestCSV, "r1.csv", manifestLines))
	refused(t, "no pinned key", nil, "no key for manifests is pinned; pinned are none", sign(file(ManifestJSON, "r1.json", manifestJSON)))
	for what, x := range map[string]struct {
		form       Form
		text, want string
	}{
		"another rack's host":   {ManifestJSON, strings.Replace(manifestJSON, `"h1", "rack": "r1"`, `"h1", "rack": "r2"`, 1), `r1:5: host h1: it is in rack "r2", and the manifest is of rack "r1"`},
		"a rack of another key": {ManifestJSON, strings.ReplaceAll(manifestJSON, `"r1"`, `"r2"`), `r1:2: manifest of rack "r2": the key "integrator" signs only those of r1`},
		"another version":       {ManifestJSON, strings.Replace(manifestJSON, `"version": 1`, `"version": 2`, 1), `r1:2: manifest of version "2": want 1`},
		"no head":               {ManifestJSON, "{}", "r1:1: manifest is missing"},
		"not JSON":              {ManifestJSON, "hosts: []", "r1: want a manifest in JSON"},
		"two racks":             {ManifestCSV, manifestLines + "switch,r2,leaf-2,,20,MQM8700,0x0010000000000002,,,,,\n", `r1:5: rack "r2": a manifest is of one rack, and the first line is of "r1"`},
		"a rack of no key":      {ManifestCSV, strings.ReplaceAll(manifestLines, "r1", "r3"), `r1:2: manifest of rack "r3"`},
		"a wrong cell":          {ManifestCSV, manifestLines + "host,r1,h2,,300,,0x0020000000000002,1,x,,,\n", "r1:5: port_guid: GUID \"x\""},
		"a wrong unit":          {ManifestCSV, manifestLines + "host,r1,h2,,300,,0x0020000000000002,1,0x0020000000000002,,,\n", `r1:5: unit "300": want a number from 1 to 100`},
		"two places":            {ManifestCSV, manifestLines + "host,r1,h1,,4,,0x0020000000000002,1,0x0020000000000002,,,\n", `r1:5: host "h1": unit "4": line 4 has "3"`},
		"an unknown kind":       {ManifestCSV, manifestLines + "router,r1,x,,,,,,,,,\n", `r1:5: kind "router"`},
		"cut off":               {ManifestCSV, strings.TrimSuffix(manifestLines, "\n"), "r1:4: the last line has no end"},
		"an unknown column":     {ManifestCSV, "kind,rack,colour\n", `r1:1: column "colour"`},
		"no column kind":        {ManifestCSV, "rack\n", "r1:1: the columns kind and rack are not there"},
		"a short line":          {ManifestCSV, manifestLines + "rack,r1\n", "cannot be read"},
	} {
		refused(t, what, keys, x.want, sign(file(x.form, "r1", x.text)))
	}
}

// TestObserved: a fabric that was observed declares switches and the cables of ports that the inventory has, and no hosts.
func TestObserved(t *testing.T) {
	t.Parallel()
	rev := topospectest.Revision(t, topospectest.Small())
	spec, err := topospec.Compile("small", rev)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := inventory.Parse([]inventory.File{{Name: "hosts.yaml", Data: []byte("hosts: [{id: h1, hcas: [{node_guid: " + hostNode(rev) + ", ports: [{port: 1, guid: " + hostPort(rev) + "}]}]}]")}})
	if err != nil {
		t.Fatal(err)
	}
	before, err := inventory.NewPlan(&inventory.Contents{}, stored)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []Form{Ibnetdiscover, Topoconfig} {
		name := map[Form]string{Ibnetdiscover: "ibnetdiscover", Topoconfig: "topoconfig-types"}[form]
		text, err := format.Text(spec, name)
		if err != nil {
			t.Fatal(err)
		}
		_, p := imported(t, before.Contents(), nil, file(form, "now", text))
		switches, hosts := 0, 0
		for i := range rev.Devices {
			switch rev.Devices[i].Kind {
			case topospec.KindSwitch:
				switches++
			case topospec.KindHCA:
				hosts++
			}
		}
		if len(p.Switches.Added) != switches || len(p.Added) != 0 || len(p.Trunks.Added) == 0 {
			t.Errorf("%s: %d switches, %d hosts, %d trunks", form, len(p.Switches.Added), len(p.Added), len(p.Trunks.Added))
		}
		if len(p.Changed) != 1 || !strings.Contains(strings.Join(p.Changed[0].Fields, "\n"), "cable: was not set, now 0x") || p.LeftOut != hosts-1 {
			t.Errorf("%s: changed %+v, %d cables left out of %d", form, p.Changed, p.LeftOut, hosts)
		}
	}
	refused(t, "a broken file", nil, "now:1: ", file(Topoconfig, "now", "0x1,1,-,-,Any,Active\n"))
	refused(t, "an unknown form", nil, `now: form "pdf": want one of yaml, manifest, csv`, file("pdf", "now", ""))
	refused(t, "a plan without GUIDs", nil, "plans and the file of GUIDs are read together", file(NDT, "now", "StartDevice,StartPort,EndDevice,EndPort\n"))
}

func first(rev *topospec.Revision) *topospec.Device {
	for i := range rev.Devices {
		if rev.Devices[i].Kind == topospec.KindHCA {
			return &rev.Devices[i]
		}
	}
	return nil
}

func hostNode(rev *topospec.Revision) string { return first(rev).GUID.String() }

func hostPort(rev *topospec.Revision) string { return portGUID(first(rev), 1).String() }

func TestPlans(t *testing.T) {
	t.Parallel()
	out, _ := imported(t, &inventory.Contents{}, nil,
		file(GUIDs, "guids.csv", "name,guid,model,rack,u,role\nleaf-1,0x0010000000000001,MQM8700,r1,20,leaf\nspine-1,0x0010000000000002,MQM8700,r2,,spine\nh1 mlx5_0,0x0020000000000001,ConnectX-6,,,\n"),
		file(NDT, "plan.csv", "StartDevice,StartPort,EndDevice,EndPort\nleaf-1,Port 21,spine-1,Port 3\nh1,mlx5_0,leaf-1,Port 1\n"))
	for _, want := range []string{`{a: "leaf-1/21", b: "spine-1/3"}`, "unit: 20", `rack: "r2"`} {
		if !strings.Contains(out, want) {
			t.Errorf("want %s in\n%s", want, out)
		}
	}
	if strings.Contains(out, "hosts:") {
		t.Errorf("a plan declares hosts:\n%s", out)
	}
}

func TestUFM(t *testing.T) {
	t.Parallel()
	const systems = `[{"system_guid": "0010000000000001", "system_name": "leaf-1", "type": "switch", "model": "MQM8700", "role": "tor", "ip": null},
 {"system_guid": "0010000000000002", "system_name": "spine 1!", "type": "switch"},
 {"system_guid": "0020000000000001", "system_name": "h1", "type": "host"}]`
	const links = `{"data": [{"name": "x", "source_guid": "0010000000000001", "source_port": "21", "destination_guid": "0010000000000002", "destination_port": "3", "cable_info": {"serial_number": "C9"}},
 {"name": "y", "source_guid": "0020000000000001", "source_port": "1", "destination_guid": "0010000000000001", "destination_port": "1"}]}`
	stored := &inventory.Contents{Hosts: []inventory.Host{{ID: "h1", HCAs: []inventory.HCA{{NodeGUID: 0x0020000000000000, Ports: []inventory.Port{{Num: 1, GUID: 0x0020000000000001}}}}}}}
	out, _ := imported(t, stored, nil, file(UFM, "systems.json", systems), file(UFM, "links.json", links))
	for _, want := range []string{`{a: "leaf-1/21", b: "switch-0010000000000002/3", label: "C9"}`, "cable: 0x0010000000000001/1", `role: "leaf"`} {
		if !strings.Contains(out, want) {
			t.Errorf("want %s in\n%s", want, out)
		}
	}
	refused(t, "links alone", nil, "links.json:1: link \"x\": neither end is a switch", file(UFM, "links.json", links))
	refused(t, "a wrong GUID", nil, `systems.json:1: system "a": system_guid "1"`, file(UFM, "systems.json", `[{"system_guid": "1", "system_name": "a", "type": "switch"}]`))
	refused(t, "no list", nil, "want a list of objects", file(UFM, "systems.json", `{"a": 1}`))
	refused(t, "no JSON", nil, "not JSON", file(UFM, "systems.json", `[`))
}

const boxes = `{"results": [
 {"url": "https://x/api/dcim/sites/1/", "name": "Frankfurt", "slug": "fra1"},
 {"url": "https://x/api/dcim/racks/1/", "name": "r1", "site": {"slug": "fra1"}, "u_height": 42, "location": null},
 {"url": "https://x/api/dcim/devices/1/", "name": "leaf-1", "device_type": {"model": "MQM9700", "u_height": 1.0}, "role": {"slug": "ib-leaf"}, "serial": "S1", "rack": {"name": "r1"}, "position": 20.0, "custom_fields": {"guid": "0010:0000:0000:0001"}},
 {"url": "https://x/api/dcim/devices/2/", "name": "H1", "device_type": {"model": "R760", "u_height": 2.0}, "role": {"slug": "gpu"}, "rack": {"name": "r1"}, "position": 3.0, "custom_fields": {"ek_sha256": null}},
 {"url": "https://x/api/dcim/devices/3/", "name": "pdu", "device_type": {"model": "PDU"}, "role": {"slug": "pdu"}, "rack": {"name": "r1"}, "position": null, "custom_fields": {}}
]}`

const wires = `{"results": [
 {"url": "https://x/api/dcim/interfaces/1/", "device": {"name": "leaf-1"}, "name": "1/4/1", "type": {"value": "infiniband-ndr"}},
 {"url": "https://x/api/dcim/interfaces/2/", "device": {"name": "H1"}, "name": "ib0", "type": {"value": "infiniband-ndr"}, "wwn": "00:20:00:00:00:00:00:01", "custom_fields": {}},
 {"url": "https://x/api/dcim/interfaces/3/", "device": {"name": "H1"}, "name": "eth0", "type": {"value": "1000base-t"}},
 {"url": "https://x/api/dcim/cables/1/", "label": "C-7", "a_terminations": [{"object_type": "dcim.interface", "object": {"name": "1/4/1", "device": {"name": "leaf-1"}}}], "b_terminations": [{"object_type": "dcim.interface", "object": {"name": "ib0", "device": {"name": "H1"}}}]},
 {"url": "https://x/api/dcim/cables/2/", "label": "P-1", "a_terminations": [], "b_terminations": []}
]}`

func TestNetBox(t *testing.T) {
	t.Parallel()
	out, p := imported(t, &inventory.Contents{}, nil, file(NetBox, "wires.json", wires), file(NetBox, "boxes.json", boxes))
	want := `sites:
- id: "fra1"
  name: "Frankfurt"
racks:
- id: "r1"
  site: "fra1"
  units: 42
switches:
- id: "leaf-1"
  guid: 0x0010000000000001
  model: "MQM9700"
  serial: "S1"
  role: "leaf"
  rack: "r1"
  unit: 20
hosts:
- id: "h1"
  rack: "r1"
  unit: 3
  height: 2
  hcas:
  - node_guid: 0x0020000000000001
    ports:
    - {port: 1, guid: 0x0020000000000001, cable: 0x0010000000000001/7, label: "C-7"}
`
	if out != want || len(p.Added) != 1 {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	for what, x := range map[string]struct{ from, to, want string }{
		"a switch without GUID":   {"0010:0000:0000:0001", "", `boxes.json:4: switch "leaf-1": custom field guid ""`},
		"a port without GUID":     {"00:20:00:00:00:00:00:01", "", `wires.json:3: interface "ib0" of "H1"`},
		"a port of no number":     {`"1/4/1", "type"`, `"mgmt", "type"`, `wires.json:2: interface "mgmt" of switch "leaf-1"`},
		"an interface of nothing": {`"device": {"name": "H1"}, "name": "ib0"`, `"device": {"name": "H9"}, "name": "ib0"`, `wires.json:3: interface "ib0": no device "H9"`},
		"one name twice":          {`"name": "pdu"`, `"name": "H1"`, `boxes.json:6: device "H1": its name is empty or there already`},
		"a host of no name":       {`"name": "H1", "device_type"`, `"name": "H 1", "device_type"`, "H1"},
	} {
		r := strings.NewReplacer(x.from, x.to)
		refused(t, what, nil, x.want, file(NetBox, "wires.json", r.Replace(wires)), file(NetBox, "boxes.json", r.Replace(boxes)))
	}
}

// FuzzParse checks that no file of any form crashes its reader, and that what is read can be planned or is refused.
func FuzzParse(f *testing.F) {
	for i, text := range []string{manifestJSON, manifestLines, boxes, wires, "[]", "", "0x0010000000000001,1,-,-,Any,Disabled\n", "kind,rack\nrack,r1\n"} {
		f.Add(uint8(i), []byte(text))
	}
	key, keys := pair(f)
	f.Fuzz(func(t *testing.T, form uint8, data []byte) {
		file := inventory.File{Name: "fuzz", Data: data, Form: string(Forms()[int(form)%len(Forms())]), Signature: ed25519.Sign(key, data)}
		d, err := Parse([]inventory.File{file}, keys)
		if err != nil {
			return
		}
		p, err := inventory.NewPlan(&inventory.Contents{}, d)
		if err == nil && p.Total != len(p.Added) {
			t.Errorf("%d hosts, %d added", p.Total, len(p.Added))
		}
	})
}
