package source

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"portcullis/api/inventory"
	"portcullis/api/inventory/signature"
	"portcullis/fabricsm/ib"
)

// columns of a manifest in CSV. kind and rack must be there.
var columns = []string{
	"kind", "rack", "id", "site", "room", "units", "unit", "height", "slot", "role", "class", "ek_sha256", "model", "serial", "psid",
	"ports", "guid", "system_image_guid", "aggregation_guid", "port", "port_guid", "pci_slot", "rail", "to", "from", "label",
}

// maxLines bounds a manifest of one rack.
const maxLines = 100_000

// row is one line of a manifest in CSV.
type row struct {
	in    *inventory.Input
	line  int
	cells map[string]string
}

// machine is a host that several lines declare, one for each port.
type machine struct {
	first    *row
	host     inventory.Host
	adapters map[ib.GUID]int
	lines    [][]int // by adapter and port
}

// csvReader makes a declaration of lines.
type csvReader struct {
	in    *inventory.Input
	hosts map[string]*machine
	order []string
	rack  string // of the manifest
}

// manifestCSV reads the manifest of one rack in CSV: a header of column names, then one line for each rack, switch, port of
// a host ("host") and cable between switches ("cable"). Lines of one host have the same id; what they leave empty is as in
// the first. "to" is the switch port that a host's port is cabled to, as NAME/PORT or GUID/PORT; a cable has "from", too.
func manifestCSV(in *inventory.Input, data []byte, key *signature.Key) {
	text := string(data)
	if text == "" || !strings.HasSuffix(text, "\n") {
		in.Problem(strings.Count(text, "\n")+1, "the last line has no end: the manifest is cut off")
		return
	}
	c := csv.NewReader(strings.NewReader(text))
	header, err := c.Read()
	if err != nil {
		in.Problem(1, "no header: begin with the names of the columns: %s", strings.Join(columns, ","))
		return
	}
	for i, name := range header {
		if !slices.Contains(columns, name) || slices.Contains(header[:i], name) {
			in.Problem(1, "column %.40q: want each of these at most once: %s", name, strings.Join(columns, ", "))
			return
		}
	}
	if !slices.Contains(header, "kind") || !slices.Contains(header, "rack") {
		in.Problem(1, "the columns kind and rack are not there")
		return
	}
	r := &csvReader{in: in, hosts: map[string]*machine{}}
	for n := 0; ; n++ {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		line := 0
		if len(record) > 0 {
			line, _ = c.FieldPos(0)
		}
		if err != nil || n == maxLines {
			in.Problem(line, "line %d cannot be read: want as many cells as the header has, and at most %d lines", n+2, maxLines)
			return
		}
		w := &row{in, line, map[string]string{}}
		for i, cell := range record {
			w.cells[header[i]] = strings.TrimSpace(cell)
		}
		r.take(w)
	}
	for _, id := range r.order {
		r.finish(r.hosts[id])
	}
	checkRack(in, 2, r.rack, key)
}

func (r *csvReader) take(w *row) {
	rack := w.cells["rack"]
	if r.rack == "" {
		r.rack = rack
	}
	if rack == "" || rack != r.rack {
		w.in.Problem(w.line, "rack %.64q: a manifest is of one rack, and the first line is of %.64q", rack, r.rack)
		return
	}
	at := inventory.Position{Rack: rack, Unit: w.unit("unit"), Height: w.unit("height"), Slot: w.cells["slot"]}
	switch w.cells["kind"] {
	case "rack":
		w.in.Rack(w.line, inventory.Rack{ID: rack, Site: w.cells["site"], Room: w.cells["room"], Units: w.unit("units")})
	case "switch":
		w.in.Switch(w.line, inventory.Switch{
			ID: w.cells["id"], GUID: w.guid("guid"), SystemImageGUID: w.guid("system_image_guid"), AggregationGUID: w.guid("aggregation_guid"),
			Model: w.cells["model"], Serial: w.cells["serial"], NumPorts: w.port("ports"), Position: at,
			Role: w.role(inventory.RoleLeaf, inventory.RoleSpine, inventory.RoleCore),
		})
	case "host":
		r.host(w, at)
	case "cable":
		w.in.Trunk(w.line, w.cells["from"], w.cells["to"], w.cells["label"])
	default:
		w.in.Problem(w.line, "kind %.32q: want rack, switch, host or cable", w.cells["kind"])
	}
}

// host takes a port of a host.
func (r *csvReader) host(w *row, at inventory.Position) {
	id := w.cells["id"]
	m := r.hosts[id]
	if m == nil {
		m = &machine{first: w, adapters: map[ib.GUID]int{}, host: inventory.Host{
			ID: id, EK: w.cells["ek_sha256"], Class: w.cells["class"], Position: at,
			Role: w.role(inventory.RoleCompute, inventory.RoleSM, inventory.RoleService),
		}}
		r.hosts[id], r.order = m, append(r.order, id)
	}
	for _, name := range []string{"ek_sha256", "class", "unit", "height", "slot", "role"} {
		if v := w.cells[name]; v != "" && v != m.first.cells[name] {
			w.in.Problem(w.line, "host %.64q: %s %.80q: line %d has %.80q", id, name, v, m.first.line, m.first.cells[name])
		}
	}
	node := w.guid("guid")
	i, known := m.adapters[node]
	if !known {
		i = len(m.host.HCAs)
		m.adapters[node] = i
		m.host.HCAs = append(m.host.HCAs, inventory.HCA{
			NodeGUID: node, SystemImageGUID: w.guid("system_image_guid"), Model: w.cells["model"], Serial: w.cells["serial"], PSID: w.cells["psid"],
			PCISlot: w.cells["pci_slot"], Rail: uint8(w.number("rail", 255)),
		})
		m.lines = append(m.lines, nil)
	}
	p := inventory.Port{Num: w.port("port"), GUID: w.guid("port_guid")}
	a := &m.host.HCAs[i]
	a.Ports, m.lines[i] = append(a.Ports, p), append(m.lines[i], w.line)
	if to := w.cells["to"]; to != "" {
		w.in.Cable(w.line, p.GUID, to, w.cells["label"], false)
	}
}

func (r *csvReader) finish(m *machine) {
	r.in.Host(m.first.line, m.host, func(hca, port int) int { return m.lines[hca][port] })
}

// guid reads a GUID, 0 where the cell is empty.
func (w *row) guid(column string) ib.GUID {
	s := w.cells[column]
	if s == "" {
		return 0
	}
	g, err := ib.ParseGUID(s)
	if err != nil {
		w.in.Problem(w.line, "%s: %v", column, err)
	}
	return g
}

func (w *row) unit(column string) inventory.Unit {
	return inventory.Unit(w.number(column, inventory.MaxUnit))
}

func (w *row) port(column string) ib.PortNum { return ib.PortNum(w.number(column, 254)) }

// number reads a number from 1 to most, 0 where the cell is empty.
func (w *row) number(column string, most uint64) uint64 {
	s := w.cells[column]
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil || n == 0 || n > most {
		w.in.Problem(w.line, "%s %.32q: want a number from 1 to %d", column, s, most)
		return 0
	}
	return n
}

func (w *row) role(known ...inventory.Role) inventory.Role {
	role := inventory.Role(w.cells["role"])
	if role != "" && !slices.Contains(known, role) {
		w.in.Problem(w.line, "role %.32q: want one of %v", role, known)
	}
	return role
}
