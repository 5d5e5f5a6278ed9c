// Package portview holds what a view shows of ports and switches besides topo.Fabric.
//
// A [Recorder] belongs to the core. It learns which ports and switches changed, and writes them down when a view is made: a
// port changes several times while it comes up. [Devices] is its result, which views share and readers ask.
package portview

import (
	"iter"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/aliases"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/pkeys"
	"portcullis/fabricsm/topo"
)

// Sizes of attributes in wire format, in bytes (IBTA volume 1, 14.2.5.6 and 14.2.5.4).
const (
	PortInfoSize   = 64
	SwitchInfoSize = 20
)

// port is what is shown of a port. It is immutable: snapshots share it.
type port struct {
	info  [PortInfoSize]byte // without M_Key
	lanes lanes.Shown
}

// Devices is an immutable snapshot of ports and switches. The zero Devices shows nothing.
type Devices struct {
	fabric   *topo.Fabric
	routes   *route.Tables
	ports    topo.Pages[*port]                 // by PortID, nil: not read
	switches topo.Pages[*[SwitchInfoSize]byte] // by NodeID, nil: not read
	lanes    lanes.View
	pkeys    topo.Pages[*pkeys.Table] // by PortID, nil: not read
	mkeys    topo.Pages[*mkeys.State] // by PortID, nil: nothing is known
	aliases  *aliases.Shown
	stirs    shownStirs
}

// at returns an entry, the zero value for one that is not there.
func at[T any](pages *topo.Pages[T], i int32) (v T) {
	if i < 0 || int(i) >= pages.Len() {
		return v
	}
	return pages.At(i)
}

// PortInfo returns PortInfo of a port as the device last showed it, in wire format but with an M_Key of 0: nil if it was
// not read. It must not be written to.
func (d *Devices) PortInfo(p topo.PortID) *[PortInfoSize]byte {
	if s := at(&d.ports, int32(p)); s != nil {
		return &s.info
	}
	return nil
}

// SwitchInfo returns SwitchInfo of a switch as it last showed it, in wire format: nil if it was not read. It must not be
// written to.
func (d *Devices) SwitchInfo(id topo.NodeID) *[SwitchInfoSize]byte { return at(&d.switches, int32(id)) }

// SLtoVL returns the virtual lane for each service level of packets that leave by a port and came in by another of its
// switch; in is 0 for end ports. It is known only for ports whose tables this Subnet Manager programs, once they are right.
// The tables of others were not read.
func (d *Devices) SLtoVL(out topo.PortID, in ib.PortNum) (vl [16]ib.VL, known bool) {
	if s := at(&d.ports, int32(out)); s != nil {
		return d.lanes.Map(s.lanes, d.fabric, d.routes, out, in)
	}
	return vl, false
}

// VLArbitration returns half of an arbitration table of a port. It is known only for ports whose tables this Subnet Manager
// programs, once they are right.
func (d *Devices) VLArbitration(p topo.PortID, half mad.VLArbHalf) (t mad.VLArbitration, known bool) {
	s, room, ok := d.arbitrates(p, half)
	if !ok {
		return t, false
	}
	fp := d.fabric.Port(p)
	return d.lanes.Half(s.lanes, lanes.KindOf(d.fabric.Node(fp.Node).Type, fp.Num), &room, half)
}

// LeavesSLtoVL reports whether this Subnet Manager neither reads nor writes the SL-to-VL tables of a port: nothing needs
// lanes, the port has no link, or its device cannot be programmed.
func (d *Devices) LeavesSLtoVL(p topo.PortID) bool {
	s := at(&d.ports, int32(p))
	return s != nil && d.lanes.LeavesMap(s.lanes, d.fabric.LinkUp(p) != topo.None)
}

// LeavesVLArbitration reports half of an arbitration table that this Subnet Manager
// neither reads nor writes, or that the port has no room for.
func (d *Devices) LeavesVLArbitration(p topo.PortID, half mad.VLArbHalf) bool {
	s, room, ok := d.arbitrates(p, half)
	return ok && d.lanes.LeavesHalf(s.lanes, d.fabric.LinkUp(p) != topo.None, &room, half)
}

// arbitrates returns what is shown of a port that was read, and its PortInfo. It reports false also for a half that there
// is not.
func (d *Devices) arbitrates(p topo.PortID, half mad.VLArbHalf) (s *port, room mad.PortInfo, ok bool) {
	s = at(&d.ports, int32(p))
	if s == nil || half < mad.VLArbLow0 || half > mad.VLArbHigh32 {
		return nil, room, false
	}
	return s, room, mad.Decode(s.info[:], &room) == nil
}

// KeyTable returns what is known of the P_Key table of a port, nil if nothing was read of it.
func (d *Devices) KeyTable(p topo.PortID) *pkeys.Table { return at(&d.pkeys, int32(p)) }

// PKeys returns the P_Key table of a port, empty entries left out, in the order of the table. proven says that every block
// of it was read with a Get since it was last written; a table that was not read at all is nil and not proven.
func (d *Devices) PKeys(p topo.PortID) (keys []ib.PKey, proven bool) {
	t := d.KeyTable(p)
	if t == nil {
		return nil, false
	}
	for _, k := range t.Keys() {
		if k.Valid() {
			keys = append(keys, k)
		}
	}
	return keys, t.IsProven()
}

// PKeyTable returns the P_Key table of a port as it is known, empty entries and all,
// nil if nothing was read of it. It must not be written to.
func (d *Devices) PKeyTable(p topo.PortID) []ib.PKey { return d.KeyTable(p).Keys() }

// PKeyBlocks returns how many blocks of the P_Key table of a port are managed, 0 if none is.
func (d *Devices) PKeyBlocks(p topo.PortID) int { return d.KeyTable(p).Blocks() }

// PKeyBlock returns a block of the P_Key table of a port, empty entries included: nil if it was neither read nor written.
// It must not be written to.
func (d *Devices) PKeyBlock(p topo.PortID, block int) []ib.PKey { return d.KeyTable(p).Block(block) }

// PKeysSince visits the ports whose P_Key tables may differ from those of an older snapshot.
func (d *Devices) PKeysSince(old *Devices) iter.Seq[topo.PortID] {
	return func(yield func(topo.PortID) bool) {
		for i := range d.pkeys.Changed(&old.pkeys) {
			if (i >= int32(old.pkeys.Len()) || d.pkeys.At(i) != old.pkeys.At(i)) && !yield(topo.PortID(i)) {
				return
			}
		}
	}
}

// Aliases returns the alias GUIDs that a port holds, as they were read back: entries of GUIDInfo from 1 on, 0 for unused
// ones. The caller must not write to the result.
func (d *Devices) Aliases(p topo.PortID) []ib.GUID { return d.aliases.Of(p) }

// AliasesSince visits the ports whose aliases differ from those of an older snapshot, some of them twice, in no order.
// Without a change it costs nothing.
func (d *Devices) AliasesSince(old *Devices) iter.Seq[topo.PortID] {
	return d.aliases.Changed(old.aliases)
}

// MKey returns the state of the M_Key of an end port; nil for none.
func (d *Devices) MKey(p topo.PortID) *mkeys.State { return at(&d.mkeys, int32(p)) }
