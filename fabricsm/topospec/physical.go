package topospec

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// Where returns the location of a port as text, for an operator on site: "rack 12 U20 leaf-3 port 14". label returns the
// label of a port of a model, or ""; it may be nil.
func (d *Device) Where(port ib.PortNum, label func(model string, port ib.PortNum) string) string {
	var words []string
	add := func(prefix, s string) {
		if s != "" {
			words = append(words, prefix+s)
		}
	}
	add("site ", d.Site)
	add("room ", d.Room)
	add("rack ", d.Rack)
	if d.U != 0 {
		words = append(words, fmt.Sprintf("U%d", d.U))
	}
	name := d.Name
	if name == "" {
		name = fmt.Sprintf("%v %v", d.Kind, d.GUID)
	}
	if d.Host != "" && d.Host != d.Name {
		words = append(words, d.Host)
		add("slot ", d.Slot)
	} else {
		add("slot ", d.Slot)
	}
	words = append(words, name)
	if port != 0 {
		words = append(words, fmt.Sprintf("port %d", port))
		if label != nil {
			if l := label(d.Model, port); l != "" && l != fmt.Sprint(port) {
				words = append(words, "("+l+")")
			}
		}
	}
	return strings.Join(words, " ")
}

// Where says in words where a link end is; a device that the specification does
// not have is named by its GUID.
func (s *Spec) Where(e End) string {
	if e.IsZero() {
		return "nothing"
	}
	if id := s.DeviceByGUID(e.GUID); id != None {
		return s.Device(id).Where(e.Port, nil)
	}
	return fmt.Sprintf("device %v port %d", e.GUID, e.Port)
}
