package keymgr

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// roster is the devices that are there, by port, GUID and LID.
type roster struct {
	devices []device
	free    []int32
	byPort  []int32 // by topo.PortID: 1 + index in devices, 0 for none
	byGUID  map[ib.GUID]int32
	byLID   map[ib.LID]int32
}

func newRoster() roster {
	return roster{byGUID: make(map[ib.GUID]int32), byLID: make(map[ib.LID]int32)}
}

// deviceOf returns the index of the device at a port, -1 for none.
func (r *roster) deviceOf(p topo.PortID) int32 {
	if p < 0 || int(p) >= len(r.byPort) {
		return -1
	}
	return r.byPort[p] - 1
}

// enter adds a device, whose GUID no other has.
func (r *roster) enter(p topo.PortID, kp *sm.KeyPort) int32 {
	if len(r.free) == 0 {
		r.devices = append(r.devices, device{})
		r.free = append(r.free, int32(len(r.devices)-1))
	}
	dev := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	d := &r.devices[dev]
	d.guid, d.port, d.sw, d.node = kp.GUID, int32(p), kp.Switch, nil
	d.doubts = kp.Doubts
	if int(p) >= len(r.byPort) {
		r.byPort = append(r.byPort, make([]int32, int(p)+1-len(r.byPort))...)
	}
	r.byPort[p] = dev + 1
	r.byGUID[kp.GUID] = dev
	return dev
}

// leave takes a device away, and leaves another in its place.
func (r *roster) leave(dev int32, place device) {
	d := &r.devices[dev]
	delete(r.byGUID, d.guid)
	if r.byLID[d.lid] == dev {
		delete(r.byLID, d.lid)
	}
	r.byPort[d.port] = 0
	*d = place
	r.free = append(r.free, dev)
}

// setLID has a device be found by another LID.
func (r *roster) setLID(dev int32, lid ib.LID) {
	d := &r.devices[dev]
	if r.byLID[d.lid] == dev {
		delete(r.byLID, d.lid)
	}
	d.lid = lid
	r.byLID[lid] = dev
}

// each calls f with all agents that have something to do with keys.
func (r *roster) each(f func(ref)) {
	for i := range r.devices {
		for k := range classes {
			if x := (ref{int32(i), uint8(k)}); r.devices[i].guid != 0 && r.devices[i].agents[k].stage != off {
				f(x)
			}
		}
	}
}

// isDual reports whether a device holds two keys of a class.
func (r *roster) isDual(class uint8, guid ib.GUID) bool {
	dev, ok := r.byGUID[guid]
	return ok && r.devices[dev].agents[class].dual
}

// fleet lists the devices that have keys of a kind.
func (r *roster) fleet(book *keys.Book, kind keys.Kind) []keys.Member {
	var out []keys.Member
	class := classOf(kind)
	for i := range r.devices {
		d := &r.devices[i]
		if !d.agents[class].runs() {
			continue
		}
		ring := book.Ring(kind, d.guid)
		if !held(ring) {
			continue
		}
		rec := ring.Record()
		out = append(out, keys.Member{
			GUID: d.guid, Epoch: rec.Current.Epoch, Keyed: !rec.Current.IsZero(), Prior: !rec.Previous.IsZero(), Dual: d.agents[class].dual,
		})
	}
	return out
}
