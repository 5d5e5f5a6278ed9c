package work

// A request id is a slot number and a generation, so that a late answer to an earlier request of the slot is not taken for
// the present one.
const (
	slotBits = 12
	maxSlots = 1 << slotBits
	slotMask = maxSlots - 1
)

// UnusedID returns an id, one for each number, that no request has.
func UnusedID(n uint32) uint32 { return n<<slotBits | slotMask }

// Slots is a table of requests that are out, by id. The zero Slots is empty.
type Slots[R any] struct {
	list []slot[R]
	free []uint16
	gen  uint32
}

// slot is one entry of the table; its id is 0 while it is free.
type slot[R any] struct {
	id      uint32
	request R
}

// NewSlots returns an empty table with memory for a number of requests.
func NewSlots[R any](size int) Slots[R] {
	return Slots[R]{list: make([]slot[R], 0, size), free: make([]uint16, 0, size)}
}

// Take returns the id of a new request, never 0, and where it is kept until the next Take.
func (t *Slots[R]) Take() (uint32, *R) {
	if len(t.free) == 0 {
		t.list = append(t.list, slot[R]{})
		t.free = append(t.free, uint16(len(t.list)-1))
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.gen = (t.gen + 1) & (1<<(32-slotBits) - 1)
	if t.gen == 0 {
		t.gen = 1
	}
	t.list[i] = slot[R]{id: t.gen<<slotBits | uint32(i)}
	return t.list[i].id, &t.list[i].request
}

// At returns the request with an id, nil if none is out.
func (t *Slots[R]) At(id uint32) *R {
	i := int(id & slotMask)
	if id == 0 || i >= len(t.list) || t.list[i].id != id {
		return nil
	}
	return &t.list[i].request
}

// End removes a request, and returns it. It reports false if none with that id is out.
func (t *Slots[R]) End(id uint32) (r R, ok bool) {
	at := t.At(id)
	if at == nil {
		return r, false
	}
	r = *at
	t.list[id&slotMask] = slot[R]{}
	t.free = append(t.free, uint16(id&slotMask))
	return r, true
}

// Any reports whether a request that is out is one of those that match.
func (t *Slots[R]) Any(match func(*R) bool) bool {
	for i := range t.list {
		if s := &t.list[i]; s.id != 0 && match(&s.request) {
			return true
		}
	}
	return false
}

// Out returns how many requests are out.
func (t *Slots[R]) Out() int { return len(t.list) - len(t.free) }
