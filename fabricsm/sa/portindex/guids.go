package portindex

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// guids finds end ports by GUID: an open table of which books share pages.
type guids struct {
	slots topo.Pages[slot] // as many as a power of two, or none
	mask  int32
	seed  uint64
}

type slot struct {
	guid ib.GUID
	port *EndPort // nil: it is free
}

func (t *guids) get(g ib.GUID) *EndPort {
	if t.slots.Len() == 0 {
		return nil
	}
	for i := int32(mix(uint64(g)^t.seed)) & t.mask; ; i = (i + 1) & t.mask {
		if s := t.slots.At(i); s.guid == g || s.port == nil {
			return s.port
		}
	}
}

// near returns the first end port at or after the slot where a GUID belongs.
func (t *guids) near(g ib.GUID) *EndPort {
	start := int32(mix(uint64(g)^t.seed)) & t.mask
	for i := range int32(t.slots.Len()) {
		if s := t.slots.At((start + i) & t.mask); s.port != nil {
			return s.port
		}
	}
	return nil
}

// ownGUIDs is a table to be written to.
type ownGUIDs struct {
	slots topo.OwnPages[slot]
	n     int    // slots in use
	seed  uint64 // so that an attacker cannot choose GUIDs that all hash to one slot
}

func (t *ownGUIDs) snapshot() guids {
	s := t.slots.Snapshot()
	return guids{s, int32(s.Len() - 1), t.seed}
}

// find returns the slot of a GUID, or the free slot where it belongs.
func (t *ownGUIDs) find(g ib.GUID) (i int32, found bool) {
	mask := int32(t.slots.Len() - 1)
	for i = int32(mix(uint64(g)^t.seed)) & mask; ; i = (i + 1) & mask {
		if s := t.slots.At(i); s.port == nil || s.guid == g {
			return i, s.port != nil
		}
	}
}

func (t *ownGUIDs) get(g ib.GUID) *EndPort {
	if t.slots.Len() == 0 {
		return nil
	}
	i, _ := t.find(g)
	return t.slots.At(i).port
}

// put sets the end port of a GUID; nil removes it. At most half of the table is in use.
func (t *ownGUIDs) put(g ib.GUID, e *EndPort) {
	if t.slots.Len() < 2*(t.n+1) {
		t.grow()
	}
	i, found := t.find(g)
	switch {
	case e != nil && !found:
		t.n++
		fallthrough
	case e != nil:
		t.slots.Set(i, slot{g, e})
	case found:
		t.n--
		t.close(i)
	}
}

// close frees a slot, and moves back those behind it that were put off by it.
func (t *ownGUIDs) close(free int32) {
	mask := int32(t.slots.Len() - 1)
	for i := (free + 1) & mask; ; i = (i + 1) & mask {
		s := t.slots.At(i)
		if s.port == nil {
			break
		}
		// It may go where it can still be found: not before where it belongs.
		if home := int32(mix(uint64(s.guid)^t.seed)) & mask; (i-home)&mask >= (i-free)&mask {
			t.slots.Set(free, s)
			free = i
		}
	}
	t.slots.Set(free, slot{})
}

func (t *ownGUIDs) grow() {
	old := t.slots.Pages
	t.slots = topo.OwnPages[slot]{}
	t.slots.Grow(max(128, 2*old.Len()))
	for i := range int32(old.Len()) {
		if s := old.At(i); s.port != nil {
			at, _ := t.find(s.guid)
			t.slots.Set(at, s)
		}
	}
}
