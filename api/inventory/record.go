package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"portcullis/api/store"
	"portcullis/attest/reference"
	"portcullis/fabricsm/ib"
)

// File is one inventory or cabling file as it was handed in. Name is used in messages only; nothing is opened. Form and
// Signature count in package source; Parse reads YAML.
type File struct {
	Name string
	Data []byte

	Form      string // of package source; "": YAML
	Signature []byte // over Data; of manifests
}

// Host is one machine.
type Host struct {
	ID string `json:"id"`
	EK string `json:"ek,omitempty"` // SHA-256 of the EK's SubjectPublicKeyInfo, 64 lower-case hex digits
	Position
	// Class names the reference values that a measured boot is compared with; empty: the default one.
	Class string `json:"class,omitempty"`
	Role  Role   `json:"role,omitempty"`
	Spare bool   `json:"spare,omitempty"` // it is in stock
	HCAs  []HCA  `json:"hcas"`            // by node GUID
}

// HCA is one adapter.
type HCA struct {
	NodeGUID        ib.GUID `json:"node_guid"`
	SystemImageGUID ib.GUID `json:"system_image_guid,omitzero"`
	Model           string  `json:"model,omitempty"`
	Serial          string  `json:"serial,omitempty"`
	PSID            string  `json:"psid,omitempty"`     // firmware parameter set
	PCISlot         string  `json:"pci_slot,omitempty"` // in the host
	Rail            uint8   `json:"rail,omitempty"`     // from 1; 0: not declared
	Ports           []Port  `json:"ports"`              // by number
}

// Port is one InfiniBand port of an adapter.
type Port struct {
	Num   ib.PortNum `json:"port"`
	GUID  ib.GUID    `json:"guid"`
	Cable ib.Place   `json:"cable,omitzero"`  // switch port it is cabled to; zero: not declared
	Label string     `json:"label,omitempty"` // of that cable
	// Aliases are the alias GUIDs that the port may have beside its own, for its virtual functions, in the order in which
	// subnet administration assigns them.
	Aliases []ib.GUID `json:"aliases,omitempty"`
}

// Head changes with every import, so that an import that read the whole
// inventory conflicts with any other.
type Head struct {
	Imported time.Time `json:"imported"`
	Actor    string    `json:"actor"`
	Hosts    int       `json:"hosts"`
}

// HeadKey is the key of the one record in Heads.
const HeadKey = "head"

// Hosts is the inventory in the store, by host id.
func Hosts() store.Collection[Host] { return store.NewCollection[Host]("inventory/hosts", 1) }

// Heads holds the Head.
func Heads() store.Collection[Head] { return store.NewCollection[Head]("inventory/import", 1) }

// ReferenceClass is Class, or the default one.
func (h *Host) ReferenceClass() string { return cmp.Or(h.Class, reference.DefaultClass) }

// Ports lists the host's ports in order.
func (h *Host) Ports() []Port {
	var out []Port
	for _, a := range h.HCAs {
		out = append(out, a.Ports...)
	}
	return out
}

// MoveCables has the cables of h that end at one switch end at another, at ports of the
// same number. It reports whether there are any.
func (h *Host) MoveCables(from, to ib.GUID) (moved bool) {
	for i := range h.HCAs {
		for j := range h.HCAs[i].Ports {
			if c := &h.HCAs[i].Ports[j].Cable; c.Switch == from && !c.IsZero() {
				c.Switch, moved = to, true
			}
		}
	}
	return moved
}

// clone copies h deeply.
func (h *Host) clone() Host {
	c := *h
	c.HCAs = slices.Clone(h.HCAs)
	for i := range c.HCAs {
		c.HCAs[i].Ports = slices.Clone(c.HCAs[i].Ports)
		for j := range c.HCAs[i].Ports {
			p := &c.HCAs[i].Ports[j]
			p.Aliases = slices.Clone(p.Aliases)
		}
	}
	return c
}

// Diff names the fields that differ from h to n, one sentence each, in a fixed order; none means equal. identity reports
// whether any of them identifies the host or its place, as opposed to a label.
func (h *Host) Diff(n *Host) (fields []string, identity bool) { return h.diff(n, nil) }

// diff is Diff with the locations of switch ports by l, which may be nil.
func (h *Host) diff(n *Host, l *Locator) (fields []string, identity bool) {
	if h.EK != n.EK {
		fields = append(fields, changed("ek_sha256", h.EK, n.EK))
	}
	fields = append(fields, diffAttributes(h.attributes(l), n.attributes(l))...)
	identity = len(fields) > 0
	return append(fields, diffAttributes(h.labels(), n.labels())...), identity
}

// labels returns what is no identity: no grant depends on it.
func (h *Host) labels() []attribute {
	out := attributesOf("rack", h.Rack, "class", h.Class)
	for _, p := range h.Ports() {
		if len(p.Aliases) > 0 {
			out = append(out, attribute{fmt.Sprintf("port %v aliases", p.GUID), fmt.Sprint(p.Aliases)})
		}
	}
	out = append(out, h.Position.within()...)
	out = append(out, attributesOf("role", string(h.Role), "spare", yes(h.Spare))...)
	for _, a := range h.HCAs {
		out = append(out, a.labels()...)
	}
	return out
}

// labels returns what is known of an adapter beside its GUIDs and cables.
func (a *HCA) labels() []attribute {
	hca := fmt.Sprintf("hca %v", a.NodeGUID)
	out := attributesOf(hca+" model", a.Model, hca+" serial", a.Serial, hca+" psid", a.PSID, hca+" pci_slot", a.PCISlot, hca+" rail", number(a.Rail))
	for _, p := range a.Ports {
		out = append(out, attributesOf(fmt.Sprintf("%s port %d label", hca, p.Num), p.Label)...)
	}
	return out
}

// attribute is one leaf of a record under a path for people.
type attribute struct{ path, value string }

// attributesOf returns the attributes with a value of pairs of path and value.
func attributesOf(pairs ...string) (out []attribute) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, attribute{pairs[i], pairs[i+1]})
		}
	}
	return out
}

// number returns a number in decimal, "" for 0.
func number[T ~uint8](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

func guidText(g ib.GUID) string {
	if g == 0 {
		return ""
	}
	return g.String()
}

func (h *Host) attributes(l *Locator) []attribute {
	var out []attribute
	for _, a := range h.HCAs {
		hca := fmt.Sprintf("hca %v", a.NodeGUID)
		out = append(out, attribute{hca, "present"})
		if a.SystemImageGUID != 0 {
			out = append(out, attribute{hca + " system_image_guid", a.SystemImageGUID.String()})
		}
		for _, p := range a.Ports {
			port := fmt.Sprintf("%s port %d", hca, p.Num)
			out = append(out, attribute{port + " guid", p.GUID.String()})
			if !p.Cable.IsZero() {
				out = append(out, attribute{port + " cable", l.place(p.Cable)})
			}
		}
	}
	return out
}

func diffAttributes(was, now []attribute) []string {
	old, fresh := attributeMap(was), attributeMap(now)
	var fields []string
	for _, a := range was {
		if fresh[a.path] != a.value {
			fields = append(fields, changed(a.path, a.value, fresh[a.path]))
		}
	}
	for _, a := range now {
		if _, known := old[a.path]; !known {
			fields = append(fields, changed(a.path, "", a.value))
		}
	}
	return fields
}

func attributeMap(list []attribute) map[string]string {
	m := make(map[string]string, len(list))
	for _, a := range list {
		m[a.path] = a.value
	}
	return m
}

func changed(path, was, now string) string {
	if was == "" {
		was = "not set"
	}
	if now == "" {
		now = "not set"
	}
	return fmt.Sprintf("%s: was %s, now %s", path, was, now)
}
