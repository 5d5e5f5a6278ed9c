package isolation

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// sightings says where declared ports were found, and why others were not.
type sightings struct {
	in       *Intent
	found    *reader.Found
	at       map[seat]proof.Place // of ports that are declared where they are; also by place alone, and the own port by GUID alone
	switches map[ib.GUID]int      // devices
	ends     []proof.Place        // of the ends of the Intent: where each was found; the zero Place: it was not
}

// has reports whether a fabric has a port, and it is one of a cable.
func has(f *proof.Fabric, at proof.Place) bool {
	return at.Port > 0 && at.Device >= 0 && at.Device < len(f.Devices) && int(at.Port) < len(f.Devices[at.Device].Ports)
}

func newSightings(in *Intent, found *reader.Found) *sightings {
	s := &sightings{in: in, found: found, at: map[seat]proof.Place{}, switches: map[ib.GUID]int{}}
	f := found.Fabric
	for i := range found.Ends {
		e := &found.Ends[i]
		if f.Devices[e.Port.Device].Ports[e.Port.Port].Owner != (proof.Owner{}) {
			s.at[seat{e.GUID, e.At}], s.at[seat{at: e.At}] = e.Port, e.Port
		}
		if e.At.IsZero() { // the own port is where its cable leads
			s.at[seat{port: e.GUID}] = e.Port
		}
	}
	for i := range f.Devices {
		if _, twice := s.switches[f.Devices[i].GUID]; f.Devices[i].Type == ib.NodeSwitch && !twice {
			s.switches[f.Devices[i].GUID] = i
		}
	}
	s.ends = make([]proof.Place, len(in.ends))
	for i := range in.ends {
		s.ends[i], _ = s.find(&in.ends[i])
	}
	return s
}

// on returns the same of a reading that found the same ports at the same places, where hosts may be of other tenants.
func (s *sightings) on(in *Intent, found *reader.Found) *sightings {
	out := *s
	out.in, out.found = in, found
	return &out
}

// find returns the port of a device that a declared port is.
func (s *sightings) find(e *end) (proof.Place, bool) {
	if at, ok := s.at[seat{e.port, e.place}]; ok && !e.place.IsZero() {
		return at, true
	}
	at, ok := s.at[seat{port: e.port}]
	return at, ok && e.port != 0 && e.owner == infrastructure
}

// why says why a declared port was not found.
func (s *sightings) why(e *end) string {
	if e.place.IsZero() {
		return "no cable of it is declared"
	}
	if s.in.byPlace[e.place] < 0 {
		return "several ports are declared at this switch port"
	}
	f := s.found.Fabric
	sw, ok := s.switches[e.place.Switch]
	if !ok {
		return "its switch was not found"
	}
	if int(e.place.Port) >= len(f.Devices[sw].Ports) {
		return "its switch has no such port"
	}
	switch p := &f.Devices[sw].Ports[e.place.Port]; {
	case p.State == proof.Known(ib.PortDown):
		return "the switch port is down"
	case p.Cable.Port != 0:
		return "another device is at the switch port"
	default:
		return "nothing answers at the switch port"
	}
}
