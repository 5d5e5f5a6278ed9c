package work

// Ring is a queue of work in chunks: it grows without copying, and frees memory while it is emptied. The zero Ring is empty.
type Ring struct {
	first, last *chunk
	head, tail  int // next to be taken from the first, and put into the last
	size        int
	spare       *chunk // emptied last
}

// chunk fills a page of memory.
type chunk struct {
	refs [511]Ref
	next *chunk
}

// Len returns how many pieces of work are in the ring.
func (r *Ring) Len() int { return r.size }

// Push adds work at the end.
func (r *Ring) Push(x Ref) {
	if r.last == nil || r.tail == len(r.last.refs) {
		r.grow()
	}
	r.last.refs[r.tail] = x
	r.tail++
	r.size++
}

// grow puts a chunk at the end.
func (r *Ring) grow() {
	c := r.spare
	if r.spare = nil; c == nil {
		c = new(chunk)
	}
	if r.tail = 0; r.last == nil {
		r.first, r.last, r.head = c, c, 0
		return
	}
	r.last.next, r.last = c, c
}

// Pop takes the oldest work out. It reports false if there is none.
func (r *Ring) Pop() (x Ref, ok bool) {
	if r.size == 0 {
		return Ref{}, false
	}
	if r.head == len(r.first.refs) {
		r.spare = r.first
		r.first, r.head = r.first.next, 0
		r.spare.next = nil
	}
	x = r.first.refs[r.head]
	r.head++
	if r.size--; r.size == 0 {
		r.head, r.tail = 0, 0 // one chunk is left
	}
	return x, true
}
