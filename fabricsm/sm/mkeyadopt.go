package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
)

// KeyImport holds the known M_Keys that another subnet manager assigned. While there is one, devices without a record are
// asked under the key that the import has for them, and get one of their own once that is confirmed. A single key is shown
// to any device that answers: remove the import when all is done.
type KeyImport struct {
	Keys   map[ib.GUID]keys.Key // by port GUID, of a switch that of port 0; zero: it is known to have none
	Single keys.Key             // of all devices that Keys does not name; zero: there is none
	// Behind names the end port behind a port, so that it can be asked before its GUID is known. Place.Switch is the port
	// GUID of an end port, for a switch that of port 0, and the value is a port GUID of the same kind.
	Behind map[ib.Place]ib.GUID
	// Keep has devices stay on the keys of Keys until the next rotation, but for weak ones:
	// they are those of an export of ours, and each device has one of its own.
	Keep bool
}

// kept reports whether a device stays on the key that is imported for it.
func (k *KeyImport) kept(guid ib.GUID, key keys.Key) bool {
	return k != nil && k.Keep && k.Keys[guid] == key && keys.Check(key) == nil
}

// key returns the key that the import has for a device.
func (k *KeyImport) key(guid ib.GUID) (keys.Key, bool) {
	if k == nil {
		return keys.Key{}, false
	}
	if key, named := k.Keys[guid]; named {
		return key, !key.IsZero()
	}
	return k.Single, !k.Single.IsZero()
}

// neighbour returns the end port of the switch that a port of an adapter is said to be
// cabled to, from either end of that cable, 0 for none.
func (k *KeyImport) neighbour(guid ib.GUID, num ib.PortNum) (out ib.GUID) {
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

// imported returns the keys to try on a device behind a port for which nothing is recorded.
func (c *Core) imported(p topo.PortID) (out []candidate) {
	in := c.cfg.MKey.Import
	if in == nil {
		return nil
	}
	num := c.ports[p].num
	if guid, ok := in.Behind[ib.Place{Switch: c.topo.GUIDOf(c.topo.EntryPort(p)), Port: num}]; ok {
		if key, ok := in.key(guid); ok {
			out = append(out, candidate{guid, key.M()})
		}
	}
	if !in.Single.IsZero() {
		out = append(out, candidate{0, in.Single.M()})
	}
	return out
}

// importedAt reports whether the import has an end port at a place with a key of its own, under which it was asked there.
func (c *Core) importedAt(guid ib.GUID, place ib.Place) bool {
	in, p := c.cfg.MKey.Import, c.topo.SwitchPortAt(place)
	if in == nil || p == topo.None || c.keyPlaces() != PlacesSeen && !c.law.Expects(p) {
		return false
	}
	_, keyed := in.key(guid)
	return keyed && in.Behind[ib.Place{Switch: c.topo.GUIDOf(c.topo.EntryPort(p)), Port: place.Port}] == guid
}

// takeOverKey records the key that the import has for a device, once the device is where it belongs; a Get has to confirm
// it. It returns the ring, nil for none.
func (c *Core) takeOverKey(p topo.PortID) *keys.Ring {
	guid, at := c.topo.GUIDOf(p), c.keyedAt(p)
	key, ok := c.cfg.MKey.Import.key(guid)
	if !ok || guid == 0 || !c.verified(p) || at.IsZero() && c.ports[p].num != 0 && p != c.own() {
		return nil
	}
	r := c.mkeys.book.Open(keys.MKey, guid, at)
	if err := r.Adopt(keys.Held{Key: key, Origin: keys.OriginImported, Since: c.now}); err != nil {
		c.problem(fault.Key{Kind: fault.NoKey, GUID: guid}, &KeyProblem{GUID: guid, Place: c.topo.PlaceOf(p), Reason: err.Error()})
		return r
	}
	c.saveKey(r)
	return r
}

// wronglyImported destroys a key that was taken over for a device which turns out to hold none. The device gets one of its
// own, and never the one of another manager.
func (c *Core) wronglyImported(p topo.PortID, r *keys.Ring, seen keys.Seen) {
	rec := r.Record()
	if rec.Current.Origin != keys.OriginImported || !rec.Pending.IsZero() || !seen.Key.IsZero() || seen.Hidden {
		return
	}
	c.mkeys.book.Retire(keys.MKey, c.topo.GUIDOf(p))
	c.saveKey(r)
}

// replaceImported assigns a new key to a device that is known to be on a key that was taken over, unless it is to stay on
// that key.
func (c *Core) replaceImported(p topo.PortID, r *keys.Ring) {
	rec := r.Record()
	switch {
	case rec.Current.Origin != keys.OriginImported || !r.Settled() || !c.verified(p):
	case c.cfg.MKey.Import.kept(rec.GUID, rec.Current.Key):
		if r.Keep() {
			c.saveKey(r)
		}
	case c.writing():
		c.planKey(r, rec.GUID)
	}
}
