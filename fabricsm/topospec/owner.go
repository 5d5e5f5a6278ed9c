package topospec

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
)

// Memberships, LIDs and keys go by port GUIDs, and most specifications name node GUIDs
// alone. So port GUIDs are attributed: to the device that names one, to the device
// whose node GUID it is, or to the adapter whose node GUID it follows, as vendors number
// them.

// maxFollowing is how far above its node GUID the port GUIDs of an adapter are looked
// for, where the specification does not say how many ports it has.
const maxFollowing = 4

// Other returns the device, other than own, that a port GUID belongs to. A device that shows it as own uses the GUID of
// another device. None: it may be own's. own may be None.
func (s *Spec) Other(own DeviceID, port ib.GUID) DeviceID {
	for _, of := range [2]DeviceID{s.DeviceByPortGUID(port), s.DeviceByGUID(port)} {
		switch of {
		case None:
		case own:
			return None
		default:
			return of
		}
	}
	if own != None && s.Device(own).follows(port) {
		return None
	}
	i, _ := slices.BinarySearchFunc(s.rev.Devices, port, func(d Device, g ib.GUID) int { return cmp.Compare(d.GUID, g) })
	if i--; i < 0 || DeviceID(i) == own || !s.rev.Devices[i].follows(port) {
		return None
	}
	return DeviceID(i)
}

// follows reports whether a device can have a port GUID by its node GUID. A device that lists its port GUIDs has no others.
func (d *Device) follows(port ib.GUID) bool {
	if len(d.PortGUIDs) > 0 {
		return slices.Contains(d.PortGUIDs, port)
	}
	if d.Kind == KindSwitch || d.Kind == KindAN {
		return port == d.GUID
	}
	last := ib.GUID(maxFollowing)
	if d.Ports != 0 {
		last = min(last, ib.GUID(d.Ports))
	}
	return port >= d.GUID && port-d.GUID <= last
}
