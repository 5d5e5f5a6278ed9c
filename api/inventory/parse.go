package inventory

import (
	"encoding"
	"encoding/hex"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"

	"portcullis/attest/reference"
	"portcullis/fabricsm/ib"
)

// Limits of an import. They bound the work an input can cause and are far
// above any real site: 20,000 hosts is twice the largest this service is
// built for.
const (
	MaxFiles        = 64
	MaxFileSize     = 32 << 20 // bytes
	maxHosts        = 20_000
	maxCables       = 20_000 * 8
	maxHCAs         = 32
	maxPorts        = 8
	maxAliases      = 255 // what GUIDInfo has room for beside the port's own GUID
	maxLabel        = 64  // characters of a rack name
	maxHostID       = 63
	ekDigestDigits  = 64
	maxExternalPort = 254
)

var hostID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// Declaration is what files declare, with the place of each fact.
type Declaration struct {
	sites    []decl[Site]
	racks    []decl[Rack]
	switches []decl[Switch]
	hosts    []hostDecl
	adapters []adapterDecl
	cables   []cableDecl
	trunks   []trunkDecl
}

type hostDecl struct {
	at   spot
	host Host
	hcas []hcaDecl // parallel to host.HCAs
	ekAt spot
}

type adapterDecl struct {
	adapter Adapter
	places  hcaDecl
}

type hcaDecl struct {
	at    spot
	ports []portDecl
}

type portDecl struct {
	at, cableAt spot
	to          string // name of the switch that the cable leads to, "": its GUID is known
}

type cableDecl struct {
	at    spot
	guid  ib.GUID // 0: named by host, hca and port
	host  string
	hca   ib.GUID
	port  ib.PortNum
	to    string // name of the switch, "": its GUID is known
	place ib.Place
	label string
	// optional: left out where no host has the port
	optional bool
}

// ValidHostID reports whether s can name a host: 1 to 63 lower-case letters,
// digits, dots and hyphens, the first and last a letter or digit.
func ValidHostID(s string) bool { return len(s) <= maxHostID && hostID.MatchString(s) }

// Parse reads inventory and cabling files in YAML. The error is Problems and lists everything wrong within the files. NewPlan
// finds contradictions with the stored inventory.
func Parse(files []File) (*Declaration, error) {
	b := &Builder{}
	if err := b.Bound(len(files)); err != nil {
		return nil, err
	}
	for _, f := range files {
		in := b.Open(f.Name)
		if len(f.Data) > MaxFileSize {
			in.Problem(0, "file has %d bytes, at most %d are allowed", len(f.Data), MaxFileSize)
			continue
		}
		in.YAML(f.Data)
	}
	return b.Declaration()
}

// keys of a file.
var keys = []string{"hosts", "cables", "sites", "racks", "switches", "adapters"}

func (r *reader) declare(d *Declaration, data []byte) {
	root := r.document(data)
	if root == nil {
		return
	}
	f := r.fields(root, "file", keys...)
	r.take(d, f)
	if f != nil && !slices.ContainsFunc(keys, func(key string) bool { return f[key] != nil }) {
		r.report.add(r.at(root), "neither hosts nor cables are declared")
	}
}

// take reads the lists of a file.
func (r *reader) take(d *Declaration, f map[string]*yaml.Node) {
	r.equipment(d, f)
	if n := f["hosts"]; n != nil {
		for _, h := range r.items(n, "hosts", maxHosts) {
			d.hosts = append(d.hosts, r.host(h))
		}
	}
	if n := f["cables"]; n != nil {
		for _, c := range r.items(n, "cables", maxCables+maxTrunks) {
			r.cable(d, c)
		}
	}
}

// bound reports files that together declare too much.
func (d *Declaration) bound(r *report) {
	for _, n := range []struct {
		what      string
		has, most int
	}{
		{"sites", len(d.sites), maxSites},
		{"racks", len(d.racks), maxRacks},
		{"switches", len(d.switches), maxSwitches},
		{"adapters", len(d.adapters), maxAdapters},
		{"cables between switches", len(d.trunks), maxTrunks},
	} {
		if n.has > n.most {
			r.add(spot{name: "import"}, "%d %s, at most %d are allowed", n.has, n.what, n.most)
		}
	}
	if len(d.hosts) > maxHosts || len(d.cables) > maxCables {
		r.add(spot{name: "import"}, "%d hosts and %d cables, at most %d and %d are allowed", len(d.hosts), len(d.cables), maxHosts, maxCables)
	}
}

func (r *reader) host(n *yaml.Node) hostDecl {
	h := hostDecl{at: r.at(n)}
	f := r.fields(n, "host", "id", "ek_sha256", "rack", "class", "hcas", "unit", "height", "slot", "role", "spare")
	if f == nil {
		return h
	}
	id, at := r.text(f["id"], "id")
	switch {
	case id == "":
		r.report.add(r.at(n), "host has no id")
	case !ValidHostID(id):
		r.report.add(at, "id %s: want at most %d lower-case letters, digits, dots and hyphens", quote(id), maxHostID)
	}
	h.host.ID = id
	h.host.EK, h.ekAt = r.ekDigest(f["ek_sha256"])
	h.host.Position = r.position(f)
	h.host.Class = r.class(f["class"])
	h.host.Role = r.role(f["role"], RoleCompute, RoleSM, RoleService)
	h.host.Spare = r.truth(f["spare"], "spare")
	r.hcas(f["hcas"], &h)
	return h
}

// class reads the name of the class of hosts whose boots are alike.
func (r *reader) class(n *yaml.Node) string {
	s, at := r.text(n, "class")
	if s == "" {
		return ""
	}
	if err := reference.CheckClass(s); err != nil {
		r.report.add(at, "%v", err)
		return ""
	}
	return s
}

func (r *reader) ekDigest(n *yaml.Node) (string, spot) {
	s, at := r.text(n, "ek_sha256")
	if s == "" {
		return "", at
	}
	b, err := hex.DecodeString(s)
	if err != nil || len(s) != ekDigestDigits {
		r.report.add(at, "ek_sha256 %s: want %d hexadecimal digits, the SHA-256 of the EK's SubjectPublicKeyInfo", quote(s), ekDigestDigits)
		return "", at
	}
	return hex.EncodeToString(b), at
}

func (r *reader) hcas(n *yaml.Node, h *hostDecl) {
	if n == nil {
		r.report.add(h.at, "host %s has no hcas", quote(h.host.ID))
		return
	}
	list := r.items(n, "hcas", maxHCAs)
	if len(list) == 0 {
		r.report.add(r.at(n), "host %s has no hcas", quote(h.host.ID))
	}
	for _, item := range list {
		a, d := r.hca(item, r.fields(item, "hca", hcaKeys...), "hca")
		h.host.HCAs, h.hcas = append(h.host.HCAs, a), append(h.hcas, d)
	}
}

var hcaKeys = []string{"node_guid", "system_image_guid", "ports", "model", "serial", "psid", "pci_slot", "rail"}

// hca reads an adapter, which has more keys than hcaKeys where it is in no host.
func (r *reader) hca(n *yaml.Node, f map[string]*yaml.Node, what string) (HCA, hcaDecl) {
	d := hcaDecl{at: r.at(n)}
	if f == nil {
		return HCA{}, d
	}
	a := HCA{
		NodeGUID: r.guid(f["node_guid"], "node_guid", n), Model: r.label(f["model"], "model"), Serial: r.label(f["serial"], "serial"),
		PSID: r.label(f["psid"], "psid"), PCISlot: r.label(f["pci_slot"], "pci_slot"), Rail: uint8(r.count(f["rail"], "rail", maxRail)),
	}
	if f["system_image_guid"] != nil {
		a.SystemImageGUID = r.guid(f["system_image_guid"], "system_image_guid", n)
	}
	var ports []*yaml.Node
	if f["ports"] != nil {
		ports = r.items(f["ports"], "ports", maxPorts)
	}
	if len(ports) == 0 {
		r.report.add(d.at, "%s %v has no ports", what, a.NodeGUID)
	}
	nums := map[ib.PortNum]bool{}
	for _, item := range ports {
		p, pd := r.port(item)
		if p.Num != 0 && nums[p.Num] {
			r.report.add(pd.at, "%s %v: port %d is declared twice", what, a.NodeGUID, p.Num)
		}
		nums[p.Num] = true
		a.Ports, d.ports = append(a.Ports, p), append(d.ports, pd)
	}
	return a, d
}

func (r *reader) port(n *yaml.Node) (Port, portDecl) {
	d := portDecl{at: r.at(n)}
	f := r.fields(n, "port", "port", "guid", "cable", "aliases", "label")
	if f == nil {
		return Port{}, d
	}
	p := Port{Num: r.portNum(f["port"], "port", n), GUID: r.guid(f["guid"], "guid", n)}
	text, at := r.text(f["cable"], "cable")
	d.cableAt = at
	if text != "" {
		e := r.endText(at, "cable", text)
		d.to, p.Cable = e.name, e.place
	}
	p.Label = r.label(f["label"], "label")
	if f["aliases"] != nil {
		p.Aliases = r.aliases(f["aliases"])
	}
	return p, d
}

// aliases reads the alias GUIDs of a port, each of which is there once.
func (r *reader) aliases(n *yaml.Node) (guids []ib.GUID) {
	for _, item := range r.items(n, "aliases", maxAliases) {
		g := r.guid(item, "alias", n)
		if g != 0 && slices.Contains(guids, g) {
			r.report.add(r.at(item), "alias %v is listed twice", g)
		}
		guids = append(guids, g)
	}
	return guids
}

// cable reads a cable of a host, or one between switches.
func (r *reader) cable(d *Declaration, n *yaml.Node) {
	f := r.fields(n, "cable", "guid", "host", "hca", "hca_port", "switch", "port", "label", "a", "b")
	if f != nil && (f["a"] != nil || f["b"] != nil) {
		d.trunks = append(d.trunks, r.trunk(f, n))
		return
	}
	c := cableDecl{at: r.at(n)}
	if f == nil {
		d.cables = append(d.cables, c)
		return
	}
	named := f["host"] != nil || f["hca"] != nil || f["hca_port"] != nil
	switch {
	case f["guid"] != nil && named:
		r.report.add(c.at, "cable: name the port by guid, or by host, hca and hca_port, not by both")
	case f["guid"] != nil:
		c.guid = r.guid(f["guid"], "guid", n)
	case f["host"] == nil || f["hca"] == nil || f["hca_port"] == nil:
		r.report.add(c.at, "cable: name the port by guid, or by host, hca and hca_port")
	default:
		c.host, _ = r.text(f["host"], "host")
		c.hca = r.guid(f["hca"], "hca", n)
		c.port = r.portNum(f["hca_port"], "hca_port", n)
	}
	if s, _ := r.text(f["switch"], "switch"); s == "" || isGUID(s) || !ValidName(s) {
		c.place.Switch = r.guid(f["switch"], "switch", n)
	} else {
		c.to = s
	}
	c.place.Port = r.portNum(f["port"], "port", n)
	c.label = r.label(f["label"], "label")
	d.cables = append(d.cables, c)
}

// guid reads a GUID that must be there and able to identify a device.
func (r *reader) guid(n *yaml.Node, what string, parent *yaml.Node) (g ib.GUID) {
	s, at := r.text(n, what)
	if s == "" {
		r.report.add(r.at(parent), "%s is missing", what)
		return 0
	}
	if read(r, at, what, s, &g) && !g.Valid() {
		r.report.add(at, "%s %v identifies no device", what, g)
	}
	return g
}

// portNum reads the number of an external port, 1 to 254.
func (r *reader) portNum(n *yaml.Node, what string, parent *yaml.Node) ib.PortNum {
	s, at := r.text(n, what)
	if s == "" {
		r.report.add(r.at(parent), "%s is missing", what)
		return 0
	}
	p, err := ib.ParsePortNum(s)
	if err != nil || p == 0 || len(s) > 3 {
		r.report.add(at, "%s %s: want a port number from 1 to %d", what, quote(s), maxExternalPort)
		return 0
	}
	return p
}

func (r *reader) checkPlace(at spot, what string, p ib.Place) {
	if !p.IsZero() && (!p.Switch.Valid() || p.Port == 0) {
		r.report.add(at, "%s %v: want the GUID of a switch and one of its ports from 1 to %d", what, p, maxExternalPort)
	}
}

// read parses text into v and reports what is wrong with it.
func read(r *reader, at spot, what, text string, v encoding.TextUnmarshaler) bool {
	if len(text) > maxLabel {
		r.report.add(at, "%s %s: too long", what, quote(text))
		return false
	}
	if err := v.UnmarshalText([]byte(text)); err != nil {
		r.report.add(at, "%s: %v", what, err)
		return false
	}
	return true
}

// normal sorts what has no order of its own.
func (h *Host) normal() {
	slices.SortFunc(h.HCAs, func(a, b HCA) int { return compareGUID(a.NodeGUID, b.NodeGUID) })
	for _, a := range h.HCAs {
		slices.SortFunc(a.Ports, func(x, y Port) int { return int(x.Num) - int(y.Num) })
	}
}

func compareGUID(a, b ib.GUID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}
