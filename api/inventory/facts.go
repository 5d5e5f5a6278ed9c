package inventory

import "fmt"

// within returns the position inside a rack.
func (p Position) within() []attribute {
	return attributesOf("unit", number(p.Unit), "height", number(p.Height), "slot", p.Slot)
}

func (s *Site) facts(*Locator) []attribute { return attributesOf("name", s.Name) }

func (r *Rack) facts(*Locator) []attribute {
	return attributesOf("site", r.Site, "room", r.Room, "units", number(r.Units))
}

func (s *Switch) facts(*Locator) []attribute {
	out := attributesOf(
		"guid", guidText(s.GUID), "system_image_guid", guidText(s.SystemImageGUID), "aggregation_guid", guidText(s.AggregationGUID),
		"model", s.Model, "serial", s.Serial, "ports", number(s.NumPorts), "role", string(s.Role), "spare", yes(s.Spare), "rack", s.Rack,
	)
	return append(out, s.within()...)
}

func (t *Trunk) facts(l *Locator) []attribute {
	return attributesOf("leads to", l.place(t.B), "label", t.Label)
}

func (a *Adapter) facts(*Locator) []attribute {
	out := attributesOf("system_image_guid", guidText(a.SystemImageGUID), "location", a.Location)
	for _, p := range a.Ports {
		out = append(out, attribute{fmt.Sprintf("port %d guid", p.Num), p.GUID.String()})
	}
	return append(out, a.labels()...)
}

func (s *Site) key() string    { return s.ID }
func (r *Rack) key() string    { return r.ID }
func (s *Switch) key() string  { return s.ID }
func (t *Trunk) key() string   { return t.Key() }
func (a *Adapter) key() string { return a.NodeGUID.String() }

// Kind is a kind of object of an inventory beside hosts.
type Kind string

// Kinds.
const (
	KindSite    Kind = "site"
	KindRack    Kind = "rack"
	KindSwitch  Kind = "switch"
	KindAdapter Kind = "adapter"
	KindCable   Kind = "cable"
)

// words returns what an object is called in problems and reports.
func (s *Site) words(*Locator) string     { return s.ID }
func (r *Rack) words(*Locator) string     { return r.ID }
func (s *Switch) words(l *Locator) string { return l.Device(s.ID, s.Position) }
func (t *Trunk) words(l *Locator) string  { return l.Trunk(t) }
func (a *Adapter) words(*Locator) string  { return a.NodeGUID.String() }
