package inventory

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"portcullis/fabricsm/ib"
)

// Limits of an import beside those of hosts.
const (
	maxSites    = 1_000
	maxRacks    = 20_000
	maxSwitches = 20_000
	maxAdapters = 20_000
	maxTrunks   = 500_000
	maxRail     = 255
)

// nameForm is the form of the names of sites, racks and switches. It has room for the names of the chips of directors.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9 ._:;/#+]*[A-Za-z0-9])?$`)

// ValidName reports whether s can name a site, a rack or a switch: 1 to 64 letters, digits, spaces and ._-:;/#+, the first
// and last a letter or digit. It does not begin with 0x as a GUID does.
func ValidName(s string) bool {
	return len(s) <= maxLabel && nameForm.MatchString(s) && !isGUID(s)
}

func isGUID(s string) bool { return strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") }

// end is a switch port as a file names it.
type end struct {
	name  string   // of the switch, "": named by GUID
	place ib.Place // with a name: only the port
}

// trunkDecl is a declared cable between switches.
type trunkDecl struct {
	at    spot
	a, b  end
	label string
}

func (r *reader) equipment(d *Declaration, f map[string]*yaml.Node) {
	for _, list := range []struct {
		key  string
		most int
		take func(n *yaml.Node)
	}{
		{"sites", maxSites, func(n *yaml.Node) { d.sites = append(d.sites, decl[Site]{r.at(n), r.site(n)}) }},
		{"racks", maxRacks, func(n *yaml.Node) { d.racks = append(d.racks, decl[Rack]{r.at(n), r.rack(n)}) }},
		{"switches", maxSwitches, func(n *yaml.Node) { d.switches = append(d.switches, decl[Switch]{r.at(n), r.aSwitch(n)}) }},
		{"adapters", maxAdapters, func(n *yaml.Node) { d.adapters = append(d.adapters, r.adapter(n)) }},
	} {
		if n := f[list.key]; n != nil {
			for _, item := range r.items(n, list.key, list.most) {
				list.take(item)
			}
		}
	}
}

func (r *reader) site(n *yaml.Node) (s Site) {
	f := r.fields(n, "site", "id", "name")
	if f == nil {
		return s
	}
	return Site{ID: r.id(f["id"], "id", n), Name: r.label(f["name"], "name")}
}

func (r *reader) rack(n *yaml.Node) (k Rack) {
	f := r.fields(n, "rack", "id", "site", "room", "units")
	if f == nil {
		return k
	}
	k = Rack{ID: r.id(f["id"], "id", n), Room: r.label(f["room"], "room"), Units: r.unit(f["units"], "units")}
	if f["site"] != nil {
		k.Site = r.id(f["site"], "site", n)
	}
	return k
}

func (r *reader) aSwitch(n *yaml.Node) (s Switch) {
	f := r.fields(n, "switch", "id", "guid", "system_image_guid", "aggregation_guid", "model", "serial", "ports", "role", "spare", "rack", "unit", "height", "slot")
	if f == nil {
		return s
	}
	s = Switch{
		ID: r.id(f["id"], "id", n), GUID: r.guid(f["guid"], "guid", n), Model: r.label(f["model"], "model"), Serial: r.label(f["serial"], "serial"),
		Role: r.role(f["role"], RoleLeaf, RoleSpine, RoleCore), Spare: r.truth(f["spare"], "spare"), Position: r.position(f),
	}
	if f["system_image_guid"] != nil {
		s.SystemImageGUID = r.guid(f["system_image_guid"], "system_image_guid", n)
	}
	if f["aggregation_guid"] != nil {
		s.AggregationGUID = r.guid(f["aggregation_guid"], "aggregation_guid", n)
	}
	if f["ports"] != nil {
		s.NumPorts = r.portNum(f["ports"], "ports", n)
	}
	return s
}

func (r *reader) adapter(n *yaml.Node) adapterDecl {
	f := r.fields(n, "adapter", append([]string{"location"}, hcaKeys...)...)
	a, places := r.hca(n, f, "adapter")
	for i, p := range a.Ports {
		if !p.Cable.IsZero() {
			r.report.add(places.ports[i].cableAt, "adapter %v: it is in stock, and its port %d has a cable: declare it in its host", a.NodeGUID, p.Num)
		}
	}
	return adapterDecl{Adapter{a, r.label(f["location"], "location")}, places}
}

// position reads where a device stands.
func (r *reader) position(f map[string]*yaml.Node) Position {
	p := Position{Unit: r.unit(f["unit"], "unit"), Height: r.unit(f["height"], "height"), Slot: r.label(f["slot"], "slot")}
	rack, at := r.text(f["rack"], "rack")
	if len(rack) > maxLabel {
		r.report.add(at, "rack has %d characters, at most %d are allowed", len(rack), maxLabel)
	}
	p.Rack = rack
	for _, key := range []string{"unit", "height", "slot"} {
		if _, at := r.text(f[key], key); f[key] != nil && (p.Rack == "" || key != "unit" && p.Unit == 0) {
			r.report.add(at, "%s says nothing without rack and unit: declare both", key)
			break
		}
	}
	return p
}

// trunk reads a cable between switches.
func (r *reader) trunk(f map[string]*yaml.Node, n *yaml.Node) trunkDecl {
	t := trunkDecl{at: r.at(n), label: r.label(f["label"], "label")}
	for _, key := range []string{"guid", "host", "hca", "hca_port", "switch", "port"} {
		if f[key] != nil {
			r.report.add(t.at, "cable: a and b are the ends of a cable between switches, and %s is of a cable to a host: declare two cables", key)
		}
	}
	t.a, t.b = r.end(f["a"], "a", n), r.end(f["b"], "b", n)
	return t
}

// end reads a switch port, as GUID/PORT or NAME/PORT.
func (r *reader) end(n *yaml.Node, what string, parent *yaml.Node) (e end) {
	s, at := r.text(n, what)
	if s == "" {
		r.report.add(r.at(parent), "%s is missing", what)
		return e
	}
	return r.endText(at, what, s)
}

func (r *reader) endText(at spot, what, s string) (e end) {
	if isGUID(s) {
		if read(r, at, what, s, &e.place) {
			r.checkPlace(at, what, e.place)
		}
		return e
	}
	cut := max(strings.LastIndexByte(s, '/'), 0)
	port, err := ib.ParsePortNum(strings.TrimPrefix(s[cut:], "/"))
	if err != nil || port == 0 || !ValidName(s[:cut]) {
		r.report.add(at, "%s %s: want SWITCH/PORT, the switch by name or GUID and one of its ports from 1 to %d", what, quote(s), maxExternalPort)
		return e
	}
	return end{s[:cut], ib.Place{Port: port}}
}

// id reads a name that must be there.
func (r *reader) id(n *yaml.Node, what string, parent *yaml.Node) string {
	s, at := r.text(n, what)
	switch {
	case s == "":
		r.report.add(r.at(parent), "%s is missing", what)
	case !ValidName(s):
		r.report.add(at, "%s %s: want at most %d letters, digits, spaces and ._-:;/#+, a letter or digit first and last, and no 0x first", what, quote(s), maxLabel)
	}
	return s
}

// label reads text for people, which may be absent.
func (r *reader) label(n *yaml.Node, what string) string {
	s, at := r.text(n, what)
	if !validLabel(s) {
		r.report.add(at, "%s %s: want at most %d bytes of printable text", what, quote(s), maxLabel)
		return ""
	}
	return s
}

// validLabel reports whether s is text that can be shown in a line.
func validLabel(s string) bool {
	return len(s) <= maxLabel && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

func (r *reader) unit(n *yaml.Node, what string) Unit { return Unit(r.count(n, what, MaxUnit)) }

// count reads a number from 1 to most, which may be absent.
func (r *reader) count(n *yaml.Node, what string, most uint64) uint64 {
	s, at := r.text(n, what)
	if s == "" {
		return 0
	}
	v, err := strconv.ParseUint(s, 10, 8)
	if err != nil || v == 0 || v > most {
		r.report.add(at, "%s %s: want a number from 1 to %d", what, quote(s), most)
		return 0
	}
	return v
}

func (r *reader) truth(n *yaml.Node, what string) bool {
	s, at := r.text(n, what)
	if s != "" && s != "true" && s != "false" {
		r.report.add(at, "%s %s: want true or false", what, quote(s))
	}
	return s == "true"
}

// role reads one of some roles, which may be absent.
func (r *reader) role(n *yaml.Node, known ...Role) Role {
	s, at := r.text(n, "role")
	if s == "" || slices.Contains(known, Role(s)) {
		return Role(s)
	}
	r.report.add(at, "role %s: want one of %v", quote(s), known)
	return ""
}
