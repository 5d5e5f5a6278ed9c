package generate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

// Item is one line of a manifest: a device that was delivered.
type Item struct {
	Name                     string
	GUID                     ib.GUID
	Model, Serial            string
	Site, Room, Rack         string
	U                        uint8
	Slot, PSID               string
	Stock                    topospec.Stock
	Role                     topospec.Role
	SystemImage, PortOneGUID ib.GUID
	Line                     int
}

// Manifest holds the GUIDs that racks were delivered with, by the names of the
// design.
type Manifest struct {
	items map[string]Item
	order []string
}

// columns of a manifest. name and guid must be there.
var columns = []string{"name", "guid", "model", "serial", "site", "room", "rack", "u", "slot", "psid", "stock", "role", "system_image", "port_guid"}

// maxManifest bounds a file.
const maxManifest = 256 << 20

// ParseManifest reads CSV with a header of column names, of which name and guid
// must be there.
func ParseManifest(source, text string) (Manifest, error) {
	m := Manifest{items: map[string]Item{}}
	p := topospec.Problems{Source: source}
	if len(text) > maxManifest {
		p.Add(0, "", fmt.Sprintf("%d bytes, the most is %d", len(text), maxManifest), "")
		return m, p.Err()
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		p.Add(strings.Count(text, "\n")+1, "", "the last line has no end: the file is cut off", "copy it again, whole")
		return m, p.Err()
	}
	r := csv.NewReader(strings.NewReader(text))
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		p.Add(1, "", "no header", "begin with the names of the columns: "+strings.Join(columns, ","))
		return m, p.Err()
	}
	header = slices.Clone(header)
	for i, c := range header {
		if !slices.Contains(columns, c) || slices.Contains(header[:i], c) {
			p.Add(1, "", fmt.Sprintf("column %.40q", c), "want each of these at most once: "+strings.Join(columns, ", "))
		}
	}
	if !slices.Contains(header, "name") || !slices.Contains(header, "guid") {
		p.Add(1, "", "the columns name and guid are not there", "")
	}
	if err := p.Err(); err != nil {
		return m, err
	}
	m.read(r, header, &p)
	return m, p.Err()
}

func (m *Manifest) read(r *csv.Reader, header []string, p *topospec.Problems) {
	guids := map[ib.GUID]string{}
	for !p.Full() && len(m.order) <= topospec.MaxDevices {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		line := 0
		if len(record) > 0 { // of what cannot be read there is no place
			line, _ = r.FieldPos(0)
		}
		if err != nil {
			p.Add(line, "", err.Error(), "")
			return
		}
		item := Item{Line: line}
		for i, value := range record {
			if err := item.set(header[i], value); err != nil {
				p.Add(line, header[i], err.Error(), "")
			}
		}
		if _, twice := m.items[item.Name]; twice || item.Name == "" {
			p.Add(line, fmt.Sprintf("name %q", item.Name), "it is empty or there already", "write a name of its own for each device")
			continue
		}
		if other, twice := guids[item.GUID]; twice && item.GUID != 0 {
			p.Add(line, fmt.Sprintf("GUID %v", item.GUID), fmt.Sprintf("it is that of %q, too", other), "read both labels again")
		}
		guids[item.GUID] = item.Name
		m.items[item.Name] = item
		m.order = append(m.order, item.Name)
	}
}

func (t *Item) set(column, v string) (err error) {
	switch column {
	case "name":
		t.Name = strings.Clone(v)
	case "guid":
		t.GUID, err = topospec.ParseGUID(v)
	case "stock":
		if v != "" {
			err = t.Stock.UnmarshalText([]byte(v))
		}
	case "role":
		if v != "" {
			err = t.Role.UnmarshalText([]byte(v))
		}
	case "u":
		if v != "" {
			var n uint64
			n, err = strconv.ParseUint(v, 10, 8)
			t.U = uint8(n)
		}
	case "system_image":
		if v != "" {
			t.SystemImage, err = topospec.ParseGUID(v)
		}
	case "port_guid":
		if v != "" {
			t.PortOneGUID, err = topospec.ParseGUID(v)
		}
	default:
		*map[string]*string{"model": &t.Model, "serial": &t.Serial, "site": &t.Site, "room": &t.Room, "rack": &t.Rack, "slot": &t.Slot, "psid": &t.PSID}[column] = strings.Clone(v)
	}
	return err
}

// Find returns the line of a name.
func (m *Manifest) Find(name string) (Item, bool) {
	item, ok := m.items[name]
	return item, ok
}

// All returns the lines of a manifest, in its order.
func (m *Manifest) All() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		for _, name := range m.order {
			if !yield(m.items[name]) {
				return
			}
		}
	}
}

// Device returns a line as a device without a place in a design: a spare, or a retired one. Data of its model is filled in.
func (t *Item) Device() topospec.Device {
	d := topospec.Device{Name: t.Name, Kind: topospec.KindHCA}
	if m, ok := devicemodel.Find(t.Model); ok {
		d.Kind, d.Ports = m.Kind, m.Ports
	}
	t.Merge(&d)
	return d
}

// Merge adds the data of the delivered device to a device of a design.
func (t *Item) Merge(d *topospec.Device) {
	d.GUID, d.Serial, d.PSID, d.Stock, d.SystemImage, d.Line = t.GUID, t.Serial, t.PSID, t.Stock, t.SystemImage, t.Line
	text := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	text(&d.Model, t.Model)
	text(&d.Site, t.Site)
	text(&d.Room, t.Room)
	text(&d.Rack, t.Rack)
	text(&d.Slot, t.Slot)
	if t.U != 0 {
		d.U = t.U
	}
	if t.Role != topospec.RoleAny {
		d.Role = t.Role
	}
	if t.PortOneGUID != 0 {
		d.PortGUIDs = []ib.GUID{t.PortOneGUID}
	}
}
