// Package exposed remembers which M_Keys another party may have seen.
//
// A device that protects its key answers no request without it, not even with its identity. So a key is shown to any
// device at the end of the cable. The only remedy is that no device uses a key that another may have seen: it gets another
// key when it is back, before it gets anything else. A key may have been seen by
//
//   - a device that answered a probe under it with another GUID,
//   - a device that was silent to such probes,
//   - a device that may have been there already when the last requests went out, before the loss
//     of the link became known.
//
// A [Record] knows these, and how far each key is replaced. It decides nothing.
package exposed

import (
	"maps"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Progress is the progress of making a key worthless that another party has.
type Progress uint8

const (
	// None: no other party has the key.
	None Progress = iota
	// Shown: the device is on that key, or may be.
	Shown
	// Replaced: it was given another; one with dual keys still obeys the first.
	Replaced
)

// Marks by which progress is saved.
const (
	markShown    = "shown"
	markReplaced = "replaced"
)

// Mark returns the progress as it is saved, "" for None.
func (p Progress) Mark() string {
	switch p {
	case Shown:
		return markShown
	case Replaced:
		return markReplaced
	default:
		return ""
	}
}

// parse returns the progress that was saved. A mark of a later version is read as the worse.
func parse(mark string) Progress {
	switch mark {
	case "":
		return None
	case markReplaced:
		return Replaced
	default:
		return Shown
	}
}

// lossTime is how long before its loss becomes known a link may have been gone: a switch repeats the trap that reports the
// loss at about this pace.
const lossTime = time.Second

// Record is the known exposure of keys. The zero Record is empty.
type Record struct {
	progress map[ib.GUID]Progress
	to       map[topo.PortID][]ib.GUID // probed: whose keys were shown since an answer came from there
	told     map[ib.GUID]bool          // keys that another device has seen for certain, and that were not replaced since
	at       []uint32                  // by topo.PortID: when the last request under its key went out, in milliseconds, 0 for never
}

// Load takes what was saved of a device.
func (r *Record) Load(guid ib.GUID, mark string) { r.set(guid, parse(mark)) }

func (r *Record) set(guid ib.GUID, to Progress) {
	if to == None {
		delete(r.progress, guid)
		return
	}
	if r.progress == nil {
		r.progress = make(map[ib.GUID]Progress)
	}
	r.progress[guid] = to
}

// Of returns the progress for the key of a device.
func (r *Record) Of(guid ib.GUID) Progress { return r.progress[guid] }

// All returns the devices whose keys another party has, by GUID.
func (r *Record) All() []ib.GUID { return slices.Sorted(maps.Keys(r.progress)) }

// Set records progress, and reports whether that changed.
func (r *Record) Set(guid ib.GUID, to Progress) bool {
	if r.progress[guid] == to {
		return false
	}
	if to != Shown {
		delete(r.told, guid)
	}
	r.set(guid, to)
	return true
}

// RecordShown records that a request under the key of an end port goes out, at a time since the start. ports is how many
// ports there are.
func (r *Record) RecordShown(p topo.PortID, at time.Duration, ports int) {
	if n := ports - len(r.at); n > 0 {
		r.at = append(r.at, make([]uint32, n)...)
	}
	r.at[p] = millis(at) + 1
}

func millis(d time.Duration) uint32 { return uint32(d / time.Millisecond) }

// RecordProbe records that a probe of a port goes out under the key of a device.
func (r *Record) RecordProbe(p topo.PortID, guid ib.GUID) {
	if slices.Contains(r.to[p], guid) {
		return
	}
	if r.to == nil {
		r.to = make(map[topo.PortID][]ib.GUID)
	}
	r.to[p] = append(r.to[p], guid)
}

// ProbedUnder returns the devices under whose keys a port was probed since an answer came from there.
func (r *Record) ProbedUnder(p topo.PortID) []ib.GUID { return r.to[p] }

// Answered records that an answer to a probe of a port came from an end port. It returns the devices under whose keys that
// was asked before.
func (r *Record) Answered(p topo.PortID) []ib.GUID {
	under := r.to[p]
	delete(r.to, p)
	return under
}

// RecordSeen records that another device has seen the key of a device for certain, and reports whether that is new.
func (r *Record) RecordSeen(guid ib.GUID) bool {
	if r.told[guid] {
		return false
	}
	if r.told == nil {
		r.told = make(map[ib.GUID]bool)
	}
	r.told[guid] = true
	return true
}

// WasShown reports whether a request under the key of an end port went out since its link is there.
func (r *Record) WasShown(p topo.PortID) bool { return int(p) < len(r.at) && r.at[p] != 0 }

// LinkLost records that the link of an end port is gone. It reports whether the last request under the key of that port
// may have met another device.
func (r *Record) LinkLost(p topo.PortID, now time.Duration) bool {
	if !r.WasShown(p) {
		return false
	}
	recent := millis(now)-(r.at[p]-1) <= uint32(lossTime/time.Millisecond)
	r.at[p] = 0
	return recent
}

// Forget forgets under which keys a port that goes was probed, and that its own key was shown.
func (r *Record) Forget(p topo.PortID) {
	delete(r.to, p)
	if int(p) < len(r.at) {
		r.at[p] = 0
	}
}
