package topo

import "portcullis/fabricsm/ib"

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
	g := b.node(id).GUID
	b.nextTwin[id] = b.firstTwin(g)
	b.byGUID[g] = id
}

// unlink takes a node out of the chain of its GUID.
func (b *Builder) unlink(id NodeID) {
	g := b.node(id).GUID
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
