package inventory

import (
	"encoding/hex"
	"fmt"

	"portcullis/attest/reference"
	"portcullis/fabricsm/ib"
)

// Builder collects what files of several forms declare, with the line of each fact.
type Builder struct {
	d      Declaration
	report report
	files  int
}

// Input is one file of a Builder. Its methods take the line of what they declare, from 1.
type Input struct {
	b    *Builder
	file int
	name string
}

// Open begins a file. It is named so in messages.
func (b *Builder) Open(name string) *Input {
	b.files++
	return &Input{b, b.files - 1, name}
}

// Bound returns the problem of too few or too many files, nil if there is none.
func (b *Builder) Bound(files int) error {
	switch {
	case files == 0:
		b.report.add(spot{name: "import"}, "no file given")
	case files > MaxFiles:
		b.report.add(spot{name: "import"}, "%d files, at most %d are allowed", files, MaxFiles)
	}
	return b.report.err()
}

// Declaration returns what all files declare. The error is Problems and lists everything wrong within them.
func (b *Builder) Declaration() (*Declaration, error) {
	b.d.bound(&b.report)
	b.d.checkClaims(&b.report)
	if err := b.report.err(); err != nil {
		return nil, err
	}
	return &b.d, nil
}

func (in *Input) at(line int) spot { return spot{in.file, in.name, line} }

// Problem reports what is wrong in a line; 0: the file as a whole.
func (in *Input) Problem(line int, format string, args ...any) {
	in.b.report.add(in.at(line), format, args...)
}

// Site declares a site.
func (in *Input) Site(line int, s Site) {
	if in.named(line, "site", s.ID) && in.labels(line, "site "+s.ID, s.Name) {
		in.b.d.sites = append(in.b.d.sites, decl[Site]{in.at(line), s})
	}
}

// Rack declares a rack.
func (in *Input) Rack(line int, k Rack) {
	if in.named(line, "rack", k.ID) && in.labels(line, "rack "+k.ID, k.Room) && in.units(line, k.Units, 0) && (k.Site == "" || in.named(line, "site", k.Site)) {
		in.b.d.racks = append(in.b.d.racks, decl[Rack]{in.at(line), k})
	}
}

// Switch declares a switch.
func (in *Input) Switch(line int, s Switch) {
	ok := in.named(line, "switch", s.ID) && in.guid(line, "switch "+s.ID, s.GUID) && in.position(line, s.Position) &&
		in.labels(line, "switch "+s.ID, s.Model, s.Serial)
	if ok {
		in.b.d.switches = append(in.b.d.switches, decl[Switch]{in.at(line), s})
	}
}

// Host declares a host. lines returns the lines of a port, by the indices of adapter and port; nil: all are in line.
func (in *Input) Host(line int, h Host, lines func(hca, port int) int) {
	if !ValidHostID(h.ID) {
		in.Problem(line, "id %s: want at most %d lower-case letters, digits, dots and hyphens", quote(h.ID), maxHostID)
		return
	}
	if !in.position(line, h.Position) || len(h.HCAs) == 0 || len(h.HCAs) > maxHCAs {
		in.Problem(line, "host %s: want 1 to %d adapters, and a unit with its rack", h.ID, maxHCAs)
		return
	}
	ek, err := hex.DecodeString(h.EK)
	if err != nil || h.EK != "" && len(h.EK) != ekDigestDigits {
		in.Problem(line, "ek_sha256 %s: want %d hexadecimal digits, the SHA-256 of the EK's SubjectPublicKeyInfo", quote(h.EK), ekDigestDigits)
	}
	h.EK = hex.EncodeToString(ek)
	if err := reference.CheckClass(h.Class); h.Class != "" && err != nil {
		in.Problem(line, "%v", err)
	}
	d := hostDecl{at: in.at(line), host: h, ekAt: in.at(line)}
	for i := range h.HCAs {
		at := line
		if lines != nil {
			at = lines(i, 0)
		}
		d.hcas = append(d.hcas, in.hca(at, &h.HCAs[i], func(j int) int {
			if lines == nil {
				return line
			}
			return lines(i, j)
		}))
	}
	in.b.d.hosts = append(in.b.d.hosts, d)
}

// Adapter declares an adapter in stock.
func (in *Input) Adapter(line int, a Adapter) {
	places := in.hca(line, &a.HCA, func(int) int { return line })
	if in.labels(line, fmt.Sprintf("adapter %v", a.NodeGUID), a.Location) {
		in.b.d.adapters = append(in.b.d.adapters, adapterDecl{a, places})
	}
}

func (in *Input) hca(line int, a *HCA, lines func(port int) int) hcaDecl {
	what := fmt.Sprintf("hca %v", a.NodeGUID)
	d := hcaDecl{at: in.at(line)}
	in.guid(line, what, a.NodeGUID)
	in.labels(line, what, a.Model, a.Serial, a.PSID, a.PCISlot)
	if len(a.Ports) == 0 || len(a.Ports) > maxPorts {
		in.Problem(line, "%s: want 1 to %d ports", what, maxPorts)
	}
	seen := map[ib.PortNum]bool{}
	for j, p := range a.Ports {
		at := lines(j)
		if p.Num == 0 || p.Num > maxExternalPort || seen[p.Num] {
			in.Problem(at, "%s: port %d: want each port from 1 to %d once", what, p.Num, maxExternalPort)
		}
		seen[p.Num] = true
		in.guid(at, what, p.GUID)
		in.labels(at, what, p.Label)
		if !p.Cable.IsZero() {
			in.place(at, p.Cable)
		}
		d.ports = append(d.ports, portDecl{at: in.at(at), cableAt: in.at(at)})
	}
	return d
}

// Cable declares the cable of a host's port, which is named by its GUID. It leads to a switch port, as GUID/PORT or
// NAME/PORT. An optional cable is left out where no host has that port.
func (in *Input) Cable(line int, port ib.GUID, to, label string, optional bool) {
	if !in.guid(line, "cable", port) || !in.labels(line, "cable", label) {
		return
	}
	e := in.reader().endText(in.at(line), "cable", to)
	in.b.d.cables = append(in.b.d.cables, cableDecl{at: in.at(line), guid: port, to: e.name, place: e.place, label: label, optional: optional})
}

// Trunk declares a cable between two switch ports, as GUID/PORT or NAME/PORT.
func (in *Input) Trunk(line int, a, b, label string) {
	if in.labels(line, "cable", label) {
		r, at := in.reader(), in.at(line)
		in.b.d.trunks = append(in.b.d.trunks, trunkDecl{at: at, a: r.endText(at, "cable", a), b: r.endText(at, "cable", b), label: label})
	}
}

func (in *Input) reader() *reader { return &reader{in.file, in.name, &in.b.report} }

// YAML reads an inventory in YAML.
func (in *Input) YAML(data []byte) { in.reader().declare(&in.b.d, data) }

func (in *Input) named(line int, what, s string) bool {
	if !ValidName(s) {
		in.Problem(line, "%s %s: want at most %d letters, digits, spaces and ._-:;/#+, a letter or digit first and last, and no 0x first", what, quote(s), maxLabel)
		return false
	}
	return true
}

func (in *Input) guid(line int, what string, g ib.GUID) bool {
	if !g.Valid() {
		in.Problem(line, "%s: GUID %v identifies no device", what, g)
	}
	return g.Valid()
}

func (in *Input) place(line int, p ib.Place) bool {
	ok := p.Switch.Valid() && p.Port != 0 && p.Port <= maxExternalPort
	if !ok {
		in.Problem(line, "cable %v: want the GUID of a switch and one of its ports from 1 to %d", p, maxExternalPort)
	}
	return ok
}

func (in *Input) labels(line int, what string, texts ...string) bool {
	for _, s := range texts {
		if !validLabel(s) {
			in.Problem(line, "%s: %s: want at most %d bytes of printable text", what, quote(s), maxLabel)
			return false
		}
	}
	return true
}

func (in *Input) units(line int, units ...Unit) bool {
	for _, u := range units {
		if u > MaxUnit {
			in.Problem(line, "unit %d: want a number from 1 to %d", u, MaxUnit)
			return false
		}
	}
	return true
}

func (in *Input) position(line int, p Position) bool {
	if (p.Unit != 0 && p.Rack == "") || (p.Unit == 0 && (p.Height != 0 || p.Slot != "")) {
		in.Problem(line, "unit, height and slot say nothing without rack and unit: declare both")
		return false
	}
	return in.units(line, p.Unit, p.Height) && in.labels(line, "rack", p.Rack, p.Slot)
}
