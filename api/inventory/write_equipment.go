package inventory

import (
	"bytes"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

func writeEquipment(b *bytes.Buffer, c *Contents) {
	head(b, "sites", len(c.Sites))
	for i := range c.Sites {
		s := &c.Sites[i]
		entry(b, "id", s.ID, "name", s.Name)
	}
	head(b, "racks", len(c.Racks))
	for i := range c.Racks {
		r := &c.Racks[i]
		entry(b, "id", r.ID, "site", r.Site, "room", r.Room)
		if r.Units != 0 {
			fmt.Fprintf(b, "  units: %d\n", r.Units)
		}
	}
	head(b, "switches", len(c.Switches))
	for i := range c.Switches {
		writeSwitch(b, &c.Switches[i])
	}
}

func writeSwitch(b *bytes.Buffer, s *Switch) {
	entry(b, "id", s.ID)
	for _, g := range []struct {
		key  string
		guid ib.GUID
	}{{"guid", s.GUID}, {"system_image_guid", s.SystemImageGUID}, {"aggregation_guid", s.AggregationGUID}} {
		if g.guid != 0 {
			fmt.Fprintf(b, "  %s: %v\n", g.key, g.guid)
		}
	}
	texts(b, "  ", "model", s.Model, "serial", s.Serial, "role", string(s.Role), "rack", s.Rack)
	writePosition(b, s.Position)
	if s.NumPorts != 0 {
		fmt.Fprintf(b, "  ports: %d\n", s.NumPorts)
	}
	if s.Spare {
		b.WriteString("  spare: true\n")
	}
}

// entry begins an entry of a list with its fields, the first of which has a value.
func entry(b *bytes.Buffer, pairs ...string) {
	var fields bytes.Buffer
	texts(&fields, "  ", pairs...)
	b.WriteString("-" + strings.TrimPrefix(fields.String(), " "))
}

// writeTrunks writes cables with their switches by name.
func writeTrunks(b *bytes.Buffer, c *Contents) {
	head(b, "cables", len(c.Trunks))
	l := c.Locator()
	for i := range c.Trunks {
		t := &c.Trunks[i]
		fmt.Fprintf(b, "- {a: %s, b: %s", endOf(l, t.A), endOf(l, t.B))
		if t.Label != "" {
			fmt.Fprintf(b, ", label: %s", quoted(t.Label))
		}
		b.WriteString("}\n")
	}
}

// endOf returns a switch port as NAME/PORT, or as GUID/PORT if inventory does not have the switch.
func endOf(l *Locator, p ib.Place) string {
	if s := l.Switch(p.Switch); s != nil {
		return quoted(fmt.Sprintf("%s/%d", s.ID, p.Port))
	}
	return p.String()
}
