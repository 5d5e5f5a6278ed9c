package work

// Turns are the requests that are out to one node, and the work that waits for one of them to come back. The zero Turns has
// neither.
type Turns struct {
	out    uint16
	parked []Ref
}

// Out returns how many requests are out.
func (t *Turns) Out() int { return int(t.out) }

// Begin records that a request goes out, and End that one has ended.
func (t *Turns) Begin() { t.out++ }

// End records that a request has ended.
func (t *Turns) End() { t.out-- }

// Park has work that the queue returned wait for a turn.
func (t *Turns) Park(x Ref) { t.parked = append(t.parked, x) }

// PassOn puts one piece of work back that waits for a turn, if fewer requests than most are out.
func (t *Turns) PassOn(q *Queue, most int) {
	for len(t.parked) > 0 && int(t.out) < most {
		x := t.parked[0]
		t.parked = t.parked[1:]
		if len(t.parked) == 0 {
			t.parked = nil
		}
		if q.PutBack(x) {
			return
		}
	}
}

// Drop drops the work that waits for a turn.
func (t *Turns) Drop(q *Queue) {
	for _, x := range t.parked {
		q.Unmark(x)
	}
	t.parked = nil
}
