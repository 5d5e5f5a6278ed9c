package registry

import (
	"iter"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo"
)

// Fabric is the view of the fabric for registries. Of makes one from a book. It is immutable.
type Fabric interface {
	// EndPort, ByGUID and ByLID return an end port, or nil if there is none.
	EndPort(p topo.PortID) *portindex.EndPort
	ByGUID(g ib.GUID) *portindex.EndPort
	ByLID(lid ib.LID) *portindex.EndPort
	// Changed visits the port GUIDs of end ports that came, went or are not as they were
	// in an older one of the same kind, nil for none. It may visit one twice.
	Changed(old Fabric) iter.Seq[ib.GUID]
	// Settled says that nothing is left to be found out.
	Settled() bool
	// Lacks reports whether a port surely has no P_Key of a partition, and not only a table that was not read.
	Lacks(e *portindex.EndPort, k ib.PKey) bool
	// GUIDCap is how many GUIDs an end port has room for, its own counted; 0: not known.
	GUIDCap(e *portindex.EndPort) int
	// PlaceOf is the switch port before an end port; zero: there is none.
	PlaceOf(e *portindex.EndPort) ib.Place
	// Issuer is the end port of the Subnet Manager.
	Issuer() (ib.LID, ib.GUID)
	// Ceiling is the lowest multicast LID that some switch has no room for.
	Ceiling() ib.LID
	// GroupSL is the service level that multicast groups must have, if they must.
	GroupSL() (sl ib.SL, must bool)
}

// Of returns the fabric of a book.
func Of(b *portindex.Book) Fabric { return known{b} }

type known struct{ *portindex.Book }

// Changed implements Fabric.
func (k known) Changed(old Fabric) iter.Seq[ib.GUID] {
	o, _ := old.(known)
	return k.Book.Changed(o.Book)
}

// Settled implements Fabric.
func (k known) Settled() bool { return k.View.Settled }

// Lacks implements Fabric: of the port, or of the switch port before it, the whole
// table was read.
func (k known) Lacks(e *portindex.EndPort, key ib.PKey) bool {
	for _, p := range []topo.PortID{e.Port, k.View.Fabric.SwitchPortOf(e.Port)} {
		if p == topo.None {
			continue
		}
		keys, proven := k.View.PKeys(p)
		if proven && !slices.ContainsFunc(keys, func(o ib.PKey) bool { return o.Base() == key.Base() }) {
			return true
		}
	}
	return false
}

// GUIDCap implements Fabric.
func (k known) GUIDCap(e *portindex.EndPort) int {
	raw := k.View.PortInfo(e.Port)
	var info mad.PortInfo
	if raw == nil || mad.Decode(raw[:], &info) != nil {
		return 0
	}
	return int(info.GUIDCap)
}

// PlaceOf implements Fabric.
func (k known) PlaceOf(e *portindex.EndPort) ib.Place { return k.View.Fabric.PlaceOf(e.Port) }

// Issuer implements Fabric.
func (k known) Issuer() (ib.LID, ib.GUID) { return k.View.LID, k.View.GUID }

// Ceiling implements Fabric.
func (k known) Ceiling() ib.LID {
	if m := k.View.Multicast; m != nil {
		return m.Ceiling
	}
	return mcast.Ceiling(k.View.Fabric)
}

// GroupSL implements Fabric. Where routes use several lanes trees are proven to close
// no circle on one of them.
func (k known) GroupSL() (ib.SL, bool) {
	v := k.View
	if v.Multicast == nil || v.Tables == nil || v.Tables.Layers() <= 1 {
		return 0, false
	}
	return v.Multicast.SL, true
}
