// Package keyimport holds the M_Keys that another subnet manager left on devices.
package keyimport

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// Keys holds the known M_Keys that another subnet manager assigned. While there is one, devices without a record are
// asked under the key that it has for them, and get one of their own once that is confirmed. A single key is shown
// to any device that answers: remove the import when all is done.
type Keys struct {
	Keys   map[ib.GUID]keys.Key // by port GUID, of a switch that of port 0; zero: it is known to have none
	Single keys.Key             // of all devices that Keys does not name; zero: there is none
	// Behind names the end port behind a port, so that it can be asked before its GUID is known. Place.Switch is the port
	// GUID of an end port, for a switch that of port 0, and the value is a port GUID of the same kind.
	Behind map[ib.Place]ib.GUID
	// Keep has devices stay on the keys of Keys until the next rotation, but for weak ones:
	// they are those of an export of ours, and each device has one of its own.
	Keep bool
}

// IsKept reports whether a device stays on the key that is imported for it. All methods take nil as nothing imported.
func (k *Keys) IsKept(guid ib.GUID, key keys.Key) bool {
	return k != nil && k.Keep && k.Keys[guid] == key && keys.Check(key) == nil
}

// Key returns the imported key of a device.
func (k *Keys) Key(guid ib.GUID) (keys.Key, bool) {
	if k == nil {
		return keys.Key{}, false
	}
	if key, named := k.Keys[guid]; named {
		return key, !key.IsZero()
	}
	return k.Single, !k.Single.IsZero()
}

// At returns the end port that is said to be behind a port, and false if none is.
func (k *Keys) At(end ib.GUID, num ib.PortNum) (ib.GUID, bool) {
	if k == nil {
		return 0, false
	}
	guid, ok := k.Behind[ib.Place{Switch: end, Port: num}]
	return guid, ok
}

// Neighbour returns the end port of the switch that a port of an adapter is said to be
// cabled to, from either end of that cable, 0 for none.
func (k *Keys) Neighbour(guid ib.GUID, num ib.PortNum) (out ib.GUID) {
	if k == nil || guid == 0 {
		return 0
	}
	if out = k.Behind[ib.Place{Switch: guid, Port: num}]; out != 0 {
		return out
	}
	for at, behind := range k.Behind {
		if behind == guid && (out == 0 || at.Switch < out) {
			out = at.Switch
		}
	}
	return out
}
