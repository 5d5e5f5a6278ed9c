package hostwrites

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// ReadGUIDs reads a block of the GUIDs of an adapter that is to have no aliases.
func (w *Watcher) ReadGUIDs(p topo.PortID) {
	pt := w.fabric.Port(p)
	blocks := (int(pt.GUIDCap) + 7) / 8
	if !w.IsAdapter(p) || !pt.IsPlaced || blocks == 0 || w.fabric.HasAliases(p) {
		return
	}
	pt.State.block = uint8((int(pt.State.block) + 1) % blocks)
	pt.State.due = true
	w.queue.MarkPort(work.GUID, p)
}

// DueGUIDs reports whether a block of GUIDInfo of a port is to be read, and which, and takes it as asked for.
func (w *Watcher) DueGUIDs(p topo.PortID) (block uint8, due bool) {
	return w.fabric.Port(p).State.Due()
}

// TakeGUIDs takes a block of GUIDs of an adapter that is to have no aliases. A GUID of another port is reported, and taken
// out of got; other entries are left. It reports whether got is to be written.
func (w *Watcher) TakeGUIDs(p topo.PortID, r *work.Request, got *mad.GUIDInfo) (write bool) {
	if r.Method != mad.MethodGet || !w.fabric.IsWriting() {
		return false
	}
	for i, g := range got.GUID {
		if g == 0 || r.Mod == 0 && i == 0 || !w.BelongsTo(g, p) {
			continue
		}
		w.fabric.Note(p, violation.HostWrite{Field: violation.HostAlias, LID: w.fabric.Port(p).LID, Victim: g})
		got.GUID[i], write = 0, true
	}
	return write
}

// BelongsTo reports whether a GUID is that of another node's port, or memberships are granted to it.
func (w *Watcher) BelongsTo(g ib.GUID, but topo.PortID) bool {
	if q, ok := w.fabric.PortByGUID(g); ok {
		return w.fabric.Port(q).Node != w.fabric.Port(but).Node
	}
	return w.fabric.IsMember(g)
}
