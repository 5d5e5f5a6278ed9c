package ndt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
	"portcullis/fabricsm/topospec/generate"
)

// Revision creates a draft from plans that belong together, for example one of cables between switches and one of cables to
// hosts. The manifest names every device of the plans; further devices in it must be spares, retired devices, or the
// aggregation nodes of its switches.
//
// It returns the number of lines that were left out, by kind: those of other link types, and those where neither end is in
// the manifest or named as a switch.
func Revision(fabric string, m *generate.Manifest, files ...*File) (*topospec.Revision, map[string]int, error) {
	b := builder{m: m, r: &topospec.Revision{Fabric: fabric}, device: map[string]int{}, used: map[topospec.End]use{}, ours: map[string]bool{}, out: map[string]int{}}
	for item := range m.All() {
		host, _, _ := strings.Cut(item.Name, " ")
		director, _, _ := strings.Cut(item.Name, "/L")
		b.ours[item.Name], b.ours[host], b.ours[director] = true, true, true
	}
	for _, f := range files {
		b.Source = f.Source
		for what, n := range f.Other {
			b.out["link type "+what] += n
		}
		for i := range f.Rows {
			b.row(&f.Rows[i])
		}
	}
	b.Source = ""
	b.inside()
	b.leftover()
	if err := b.Err(); err != nil {
		return nil, b.out, err
	}
	b.r.Normalize()
	return b.r, b.out, b.r.Validate("plan")
}

type builder struct {
	topospec.Problems
	m      *generate.Manifest
	r      *topospec.Revision
	device map[string]int // index in r.Devices
	used   map[topospec.End]use
	ours   map[string]bool // devices of the manifest, as plans may write them
	out    map[string]int
}

// use is the line that uses a port.
type use struct {
	file  string
	line  int
	peer  topospec.End
	state topospec.LinkState
	first bool // the port was the start of the line
}

// row takes one line.
func (b *builder) row(row *Row) {
	if b.foreign(row) {
		b.out["neither end is a device of the manifest or a switch"]++
		return
	}
	at, ok := b.end(row, row.A)
	if !ok {
		return
	}
	var peer topospec.End
	if !row.B.IsZero() {
		if peer, ok = b.end(row, row.B); !ok {
			return
		}
	}
	if b.taken(row, at, peer) {
		return
	}
	b.used[at] = use{b.Source, row.Line, peer, row.State, true}
	l := topospec.Link{A: at, B: peer, State: row.State}
	if !peer.IsZero() {
		b.used[peer] = use{b.Source, row.Line, at, row.State, false}
		l.Class = b.class(row.A, row.B)
	}
	if row.Domain != "" && row.Domain != inScope {
		l.Reason = "plan: " + row.Domain
	}
	b.r.Links = append(b.r.Links, l)
}

// foreign reports whether a line is no part of this fabric: plans hold the cables of other networks, too. A line with the
// name of a switch is never left out.
func (b *builder) foreign(row *Row) bool {
	for _, p := range [2]Port{row.A, row.B} {
		if b.ours[p.Device] || inIB(p.Device) || strings.HasPrefix(p.Label, "Blade ") {
			return false
		}
	}
	return true
}

// end returns the port that one end of a line names.
func (b *builder) end(row *Row, p Port) (topospec.End, bool) {
	at, err := locate(p)
	if err != nil {
		b.Add(row.Line, fmt.Sprintf("device %q", p.Device), err.Error(), "")
		return topospec.End{}, false
	}
	i, ok := b.find(row, p, at)
	if !ok {
		return topospec.End{}, false
	}
	d := &b.r.Devices[i]
	n, err := number(d.Model, at.port)
	if err != nil {
		b.Add(row.Line, fmt.Sprintf("device %q", at.name), err.Error(), "")
		return topospec.End{}, false
	}
	if d.Ports != 0 && uint8(n) > d.Ports {
		b.Add(row.Line, fmt.Sprintf("device %q", at.name), fmt.Sprintf("port %d: %s has ports 1 to %d", n, d.Model, d.Ports), "correct the port, or the model in the manifest")
		return topospec.End{}, false
	}
	return topospec.End{GUID: d.GUID, Port: n}, true
}

// find returns the device of a name. It creates the device from the manifest at the first use.
func (b *builder) find(row *Row, p Port, at place) (int, bool) {
	object := fmt.Sprintf("device %q", at.name)
	if i, ok := b.device[at.name]; ok {
		return i, true
	}
	item, ok := b.m.Find(at.name)
	switch {
	case !ok:
		b.Add(row.Line, object, "it is not in the manifest, so its GUID is not known", b.likely(at.name))
		return 0, false
	case item.Stock != topospec.InUse:
		b.Add(row.Line, object, fmt.Sprintf("the manifest says that it is %v", item.Stock), "only devices in use have cables")
		return 0, false
	}
	d := item.Device()
	if _, known := devicemodel.Find(item.Model); !known {
		if d.Kind = at.kind; d.Kind == topospec.KindAny {
			b.Add(row.Line, object, "it is not known whether it is a switch or an adapter", "write its model in the manifest: one of "+strings.Join(devicemodel.Names(), ", "))
			return 0, false
		}
	}
	if d.Kind == topospec.KindHCA {
		d.Host = at.host
		if d.Role == topospec.RoleAny {
			d.Role = topospec.RoleCompute
		}
	}
	d.Rack, d.U = cmp.Or(d.Rack, p.Rack), cmp.Or(d.U, p.U)
	b.device[at.name] = len(b.r.Devices)
	b.r.Devices = append(b.r.Devices, d)
	return b.device[at.name], true
}

// likely says what to do about a name that the manifest does not have.
func (b *builder) likely(name string) string {
	for item := range b.m.All() {
		if strings.EqualFold(item.Name, name) {
			return fmt.Sprintf("the manifest has %q: names are compared letter by letter", item.Name)
		}
	}
	return "add its line to the manifest, or correct the name"
}

// taken reports whether another line uses a port of a line. The same cable, listed from its other side, is left out. Any
// other use is a problem.
func (b *builder) taken(row *Row, at, peer topospec.End) bool {
	if u, ok := b.used[at]; ok && !peer.IsZero() && u.peer == peer && !u.first && b.used[peer].peer == at {
		if u.state != row.State {
			b.Add(row.Line, row.A.String(), fmt.Sprintf("%v here and %v in %s:%d", row.State, u.state, u.file, u.line), "write one state at both sides of a cable")
		}
		return true
	}
	for i, e := range [2]topospec.End{at, peer} {
		if u, ok := b.used[e]; ok && !e.IsZero() {
			b.Add(row.Line, [2]Port{row.A, row.B}[i].String(), fmt.Sprintf("it has a cable in %s:%d, too", u.file, u.line), "a port has one cable")
			return true
		}
	}
	if at == peer {
		b.Add(row.Line, row.A.String(), "cabled to itself", "a loopback plug is no link")
		return true
	}
	return false
}

// class returns the class of a cable by its ends.
func (b *builder) class(x, y Port) topospec.Class {
	switches := 0
	for _, p := range [2]Port{x, y} {
		at, _ := locate(p)
		switch d := &b.r.Devices[b.device[at.name]]; {
		case d.Role == topospec.RoleSM || d.Role == topospec.RoleService:
			return topospec.ClassService
		case d.Kind == topospec.KindRouter:
			return topospec.ClassUplink
		case d.Kind == topospec.KindSwitch:
			switches++
		}
	}
	if switches == 2 {
		return topospec.ClassTrunk
	}
	return topospec.ClassHost
}

// inside adds the aggregation nodes of switches: plans do not show the inside of a device, and a specification without them
// disables them (threat T152).
func (b *builder) inside() {
	for _, name := range slices.Sorted(maps.Keys(b.device)) {
		d := &b.r.Devices[b.device[name]]
		model, _ := devicemodel.Find(d.Model)
		item, ok := b.m.Find(name + " aggregation node")
		if _, listed := b.device[item.Name]; !ok || listed || model.Aggregation == 0 {
			continue
		}
		an := item.Device()
		an.Kind, an.Ports = topospec.KindAN, 1
		d.Ports = model.All()
		b.device[item.Name] = len(b.r.Devices)
		b.r.Links = append(b.r.Links, topospec.Link{
			A: topospec.End{GUID: d.GUID, Port: model.Aggregation}, B: topospec.End{GUID: an.GUID, Port: ib.PortNum(1)}, Class: topospec.ClassInternal,
		})
		b.r.Devices = append(b.r.Devices, an)
	}
}

// leftover takes spares and retired devices, and reports other lines of the
// manifest that no plan has a cable for.
func (b *builder) leftover() {
	for item := range b.m.All() {
		if _, ok := b.device[item.Name]; ok {
			continue
		}
		if item.Stock == topospec.InUse {
			b.Add(0, fmt.Sprintf("manifest line %d, %q", item.Line, item.Name), "no plan has a cable for it", "name all plans of the fabric, correct the name, or mark it as a spare")
			continue
		}
		b.r.Devices = append(b.r.Devices, item.Device())
	}
}
