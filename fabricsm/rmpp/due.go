package rmpp

import "time"

// Table.due is a binary heap of the transactions by when they are due, and those due
// together in the order in which they became so.

func (t *Table[A]) before(a, b *session[A]) bool {
	if c := a.at.Compare(b.at); c != 0 {
		return c < 0
	}
	return a.order < b.order
}

func (t *Table[A]) put(i int, s *session[A]) {
	t.due[i] = s
	s.index = i
}

// schedule sets the time at which a transaction is due.
func (t *Table[A]) schedule(s *session[A], at time.Time) {
	t.order++
	s.at, s.order = at, t.order
	if s.index < 0 {
		t.due = append(t.due, s)
		s.index = len(t.due) - 1
	}
	t.settle(s.index)
}

// unschedule takes a transaction out.
func (t *Table[A]) unschedule(s *session[A]) {
	i, last := s.index, len(t.due)-1
	if i < 0 {
		return
	}
	moved := t.due[last]
	t.due[last] = nil
	t.due = t.due[:last]
	s.index = -1
	if i != last {
		t.put(i, moved)
		t.settle(i)
	}
}

// settle moves the entry at i to its place.
func (t *Table[A]) settle(i int) {
	s := t.due[i]
	for i > 0 {
		up := (i - 1) / 2
		if !t.before(s, t.due[up]) {
			break
		}
		t.put(i, t.due[up])
		i = up
	}
	for {
		down := 2*i + 1
		if down+1 < len(t.due) && t.before(t.due[down+1], t.due[down]) {
			down++
		}
		if down >= len(t.due) || !t.before(t.due[down], s) {
			break
		}
		t.put(i, t.due[down])
		i = down
	}
	t.put(i, s)
}
