package topospec

import (
	"iter"

	"portcullis/fabricsm/ib"
)

// Spec is a revision made ready for lookups: one hash lookup finds a device, and
// its ports lie beside each other. It is immutable and may be shared.
type Spec struct {
	rev    *Revision
	digest Digest
	byGUID map[ib.GUID]DeviceID
	byPort map[ib.GUID]DeviceID // port GUIDs of adapters
	first  []SlotID             // slot of port 1 of each device, and one past the last
	slots  []slot
	active int // links that are to be up
}

// DeviceID numbers the devices of a Spec, in the order of their GUIDs.
type DeviceID int32

// SlotID numbers the ports of all devices of a Spec.
type SlotID int32

// None is the id of no device and no slot.
const None = -1

// slot is one port: the link that uses it, and which end it is.
type slot struct {
	link int32 // None: none
	isB  bool
}

// Compile checks a revision and makes a Spec of it. The revision is copied.
func Compile(source string, r *Revision) (*Spec, error) {
	if err := r.Validate(source); err != nil {
		return nil, err
	}
	rev := r.Clone()
	rev.Normalize()
	s := &Spec{rev: rev, digest: rev.Digest(), byGUID: make(map[ib.GUID]DeviceID, len(rev.Devices)), byPort: map[ib.GUID]DeviceID{}}
	ports := make([]uint8, len(rev.Devices))
	for i := range rev.Devices {
		d := &rev.Devices[i]
		s.byGUID[d.GUID] = DeviceID(i)
		for _, g := range d.PortGUIDs {
			s.byPort[g] = DeviceID(i)
		}
		ports[i] = d.Ports
	}
	for i := range rev.Links {
		for _, e := range [2]End{rev.Links[i].A, rev.Links[i].B} {
			if id, ok := s.byGUID[e.GUID]; ok {
				ports[id] = max(ports[id], uint8(e.Port))
			}
		}
	}
	s.first = make([]SlotID, len(ports)+1)
	for i, n := range ports {
		s.first[i+1] = s.first[i] + SlotID(n)
	}
	s.slots = make([]slot, s.first[len(ports)])
	for i := range s.slots {
		s.slots[i].link = None
	}
	for i := range rev.Links {
		l := &rev.Links[i]
		s.slots[s.SlotOf(l.A)] = slot{int32(i), false}
		if !l.B.IsZero() {
			s.slots[s.SlotOf(l.B)] = slot{int32(i), true}
		}
		if l.State == Active || l.State == Maintenance {
			s.active++
		}
	}
	return s, nil
}

// Revision returns the revision, in normal order. It must not be written to.
func (s *Spec) Revision() *Revision { return s.rev }

// Digest returns the digest of the revision.
func (s *Spec) Digest() Digest { return s.digest }

// NumSlots returns the number of ports of all devices.
func (s *Spec) NumSlots() int { return len(s.slots) }

// NumActive returns the number of links that must be up.
func (s *Spec) NumActive() int { return s.active }

// DeviceByGUID finds a device by its node GUID, None if there is none.
func (s *Spec) DeviceByGUID(g ib.GUID) DeviceID {
	if id, ok := s.byGUID[g]; ok {
		return id
	}
	return None
}

// DeviceByPortGUID finds an adapter by the GUID of one of its ports, None if none
// says that it has it.
func (s *Spec) DeviceByPortGUID(g ib.GUID) DeviceID {
	if id, ok := s.byPort[g]; ok {
		return id
	}
	return None
}

// Device returns a device. It must not be written to.
func (s *Spec) Device(id DeviceID) *Device { return &s.rev.Devices[id] }

// SlotOf returns the slot of a port, None if the specification has no such port.
func (s *Spec) SlotOf(e End) SlotID {
	id, ok := s.byGUID[e.GUID]
	if !ok || e.Port == 0 {
		return None
	}
	if at := s.first[id] + SlotID(e.Port) - 1; at < s.first[id+1] {
		return at
	}
	return None
}

// LinkAt returns the link that uses a port, nil if there is none, and the other end in the specification.
func (s *Spec) LinkAt(id SlotID) (*Link, End) {
	if id == None || s.slots[id].link == None {
		return nil, End{}
	}
	l := &s.rev.Links[s.slots[id].link]
	if s.slots[id].isB {
		return l, l.A
	}
	return l, l.B
}

// LinkIndex returns the index of the link that uses a port, None if there is none.
func (s *Spec) LinkIndex(id SlotID) int {
	if id == None {
		return None
	}
	return int(s.slots[id].link)
}

// IsBackbone reports whether a link has no end at a tenant: links between switches, routers and aggregation nodes, and
// those of Subnet Managers and services. An attacker who is root on a host can drop or change the links of that host, but
// not these.
func (s *Spec) IsBackbone(link int) bool {
	l := &s.rev.Links[link]
	if l.B.IsZero() {
		return false
	}
	for _, e := range [2]End{l.A, l.B} {
		id := s.DeviceByGUID(e.GUID)
		if id == None {
			return false
		}
		d := s.Device(id)
		infra := d.Kind == KindSwitch || d.Kind == KindRouter || d.Kind == KindAN
		if !infra && d.Role != RoleSM && d.Role != RoleService && l.Class != ClassService {
			return false
		}
	}
	return true
}

// PortsOf returns the slots of a device's ports, from port 1 on.
func (s *Spec) PortsOf(id DeviceID) iter.Seq2[ib.PortNum, SlotID] {
	return func(yield func(ib.PortNum, SlotID) bool) {
		for at := s.first[id]; at < s.first[id+1]; at++ {
			if !yield(ib.PortNum(at-s.first[id]+1), at) {
				return
			}
		}
	}
}

// Belongs returns the switch port at which a device, entered by a port, must be seen: the zero End if the specification has
// no link there.
func (s *Spec) Belongs(e End) End {
	_, peer := s.LinkAt(s.SlotOf(e))
	return peer
}

// Home returns a switch port at which a device must be, the zero End if it has no link.
func (s *Spec) Home(id DeviceID) End {
	for at := s.first[id]; at < s.first[id+1]; at++ {
		if _, peer := s.LinkAt(at); !peer.IsZero() {
			return peer
		}
	}
	return End{}
}
