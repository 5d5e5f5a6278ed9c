package verify

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// trusts reports whether a verified way leads to a switch.
func (j *Judge) trusts(id topospec.DeviceID) bool { return id == j.rooted || j.entered[id] > 0 }

// Trusts reports whether a verified way leads to a switch.
func (j *Judge) Trusts(sw ib.GUID) bool {
	id := j.spec.DeviceByGUID(sw)
	return id != topospec.None && j.trusts(id)
}

// IsVerified reports whether the device behind a switch port is verified: a membership, a key or a LID may be bound to it,
// in every mode.
func (j *Judge) IsVerified(at ib.Place) bool {
	rec := j.find(at)
	return rec != nil && rec.state == StateVerified
}

// enter notes a verified way to a device; the first one has the ports of a
// switch judged again.
func (j *Judge) enter(g ib.GUID) {
	if id := j.spec.DeviceByGUID(g); id != topospec.None {
		if j.entered[id]++; j.entered[id] == 1 && id != j.rooted {
			j.requeue(id)
		}
	}
}

func (j *Judge) leave(g ib.GUID) {
	if id := j.spec.DeviceByGUID(g); id != topospec.None && j.entered[id] > 0 {
		if j.entered[id]--; j.entered[id] == 0 && id != j.rooted {
			j.requeue(id)
		}
	}
}

func (j *Judge) requeue(id topospec.DeviceID) {
	if j.spec.Device(id).Kind == topospec.KindSwitch {
		j.queue = append(j.queue, id)
	}
}

// again judges the ports of switches that became verified, or are not any more.
// It works off a queue, since one verified switch may verify the next.
func (j *Judge) again() {
	if len(j.queue) == 0 || j.rejudging() {
		return
	}
	for i := 0; i < len(j.queue); i++ {
		id := j.queue[i]
		if id == topospec.None {
			continue
		}
		for _, slot := range j.spec.PortsOf(id) {
			rec := &j.ports[slot]
			if rec.seen.GUID != 0 && (rec.state == StateHeld || rec.state == StateVerified || rec.state == StateSeen || rec.state == StateDrift) {
				j.apply(rec, rec.seen)
			}
		}
	}
	j.queue = j.queue[:0]
}

// rejudging reports whether a caller is processing the queue already; otherwise it marks the first entry.
func (j *Judge) rejudging() bool {
	if j.queue[0] == topospec.None {
		return true
	}
	j.queue = append(j.queue, j.queue[0])
	j.queue[0] = topospec.None
	return false
}
