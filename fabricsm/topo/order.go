package topo

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
)

// merge gives the live ids of old and moved in the order of (GUID, id). old is
// in that order but for the ids in moved. The cost is that of sorting moved
// and reading old once, so that one host's reboot does not sort the fabric.
func merge[ID ~int32](old, moved []ID, guid func(ID) ib.GUID, live func(ID) bool) []ID {
	slices.Sort(moved)
	moved = slices.Compact(moved)
	byGUID := func(a, b ID) int { return cmp.Or(cmp.Compare(guid(a), guid(b)), cmp.Compare(a, b)) }
	fresh := slices.DeleteFunc(slices.Clone(moved), func(id ID) bool { return !live(id) })
	slices.SortFunc(fresh, byGUID)

	out := make([]ID, 0, len(old)+len(fresh))
	for _, id := range old {
		if _, ok := slices.BinarySearch(moved, id); ok {
			continue
		}
		for len(fresh) > 0 && byGUID(fresh[0], id) < 0 {
			out, fresh = append(out, fresh[0]), fresh[1:]
		}
		out = append(out, id)
	}
	return append(out, fresh...)
}

func (b *Builder) firstTwin(g ib.GUID) NodeID {
	if id, ok := b.byGUID[g]; ok {
		return id
	}
	return None
}

// link puts a node into the chain of its GUID.
func (b *Builder) link(id NodeID) {
	if b.byGUID == nil {
		b.byGUID = make(map[ib.GUID]NodeID)
	}
	g := b.nodes[id].GUID
	b.nextTwin[id] = b.firstTwin(g)
	b.byGUID[g] = id
}

// unlink takes a node out of the chain of its GUID.
func (b *Builder) unlink(id NodeID) {
	g := b.nodes[id].GUID
	if b.byGUID[g] != id {
		prev := b.byGUID[g]
		for b.nextTwin[prev] != id {
			prev = b.nextTwin[prev]
		}
		b.nextTwin[prev] = b.nextTwin[id]
		return
	}
	if b.nextTwin[id] == None {
		delete(b.byGUID, g)
		return
	}
	b.byGUID[g] = b.nextTwin[id]
}
