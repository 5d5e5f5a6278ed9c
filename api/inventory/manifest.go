package inventory

import (
	"bytes"
	"slices"
)

// manifestVersion is the version of the form of a rack manifest.
const manifestVersion = "1"

// Manifest reads the manifest of one rack in JSON: an inventory with the same keys as in YAML, and a head
//
//	{"manifest": {"version": 1, "rack": "r12"}, "racks": [...], "switches": [...], "hosts": [...], "cables": [...]}
//
// All that it declares stands in that rack. It returns the rack and the line of the head; the rack is "" where that cannot
// be read.
func (in *Input) Manifest(data []byte) (rack string, line int) {
	r := in.reader()
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		in.Problem(0, "want a manifest in JSON, which begins with {")
		return "", 0
	}
	root := r.document(data)
	if root == nil {
		return "", 0
	}
	f := r.fields(root, "file", append([]string{"manifest"}, keys...)...)
	if f == nil {
		return "", 0
	}
	if f["manifest"] == nil {
		r.report.add(r.at(root), "manifest is missing: want its version and its rack")
		return "", 0
	}
	head := r.fields(f["manifest"], "manifest", "version", "rack")
	if head == nil {
		return "", 0
	}
	if v, at := r.text(head["version"], "version"); v != manifestVersion {
		r.report.add(at, "manifest of version %s: want %s", quote(v), manifestVersion)
	}
	rack = r.id(head["rack"], "rack", f["manifest"])
	part := &Declaration{}
	r.take(part, f)
	in.Only(part, rack)
	in.b.d.join(part)
	return rack, head["rack"].Line
}

// Only reports what part declares outside of a rack.
func (in *Input) Only(part *Declaration, rack string) {
	outside := func(at spot, what, id, is string) {
		if is != rack {
			in.b.report.add(at, "%s %s: it is in rack %s, and the manifest is of rack %s", what, id, quote(is), quote(rack))
		}
	}
	for i := range part.racks {
		outside(part.racks[i].at, "rack", part.racks[i].value.ID, part.racks[i].value.ID)
	}
	for i := range part.switches {
		outside(part.switches[i].at, "switch", part.switches[i].value.ID, part.switches[i].value.Rack)
	}
	for i := range part.hosts {
		outside(part.hosts[i].at, "host", part.hosts[i].host.ID, part.hosts[i].host.Rack)
	}
}

// join adds what part declares.
func (d *Declaration) join(part *Declaration) {
	d.sites, d.racks, d.switches = slices.Concat(d.sites, part.sites), slices.Concat(d.racks, part.racks), slices.Concat(d.switches, part.switches)
	d.hosts, d.adapters = slices.Concat(d.hosts, part.hosts), slices.Concat(d.adapters, part.adapters)
	d.cables, d.trunks = slices.Concat(d.cables, part.cables), slices.Concat(d.trunks, part.trunks)
}
