package driver

// transaction is the lower half of a transaction id, which is ours; transports
// own the upper one. It is drawn at random: a host that could predict it could
// answer for another. 0 is none.
type transaction uint32

// transactions says of those that are out where in flight they are, and remembers
// those that ended last. It is a hash table with open addressing whose keys need
// no hash, being random: every packet looks into it several times.
type transactions struct {
	at    []entry // a power of two of them, at most half of them in use
	used  int
	out   int
	ended []transaction // a ring of those that ended last
	next  int           // where in the ring the next goes
}

type entry struct {
	tid   transaction // 0: free
	place int32       // in flight; over: it ended
}

const (
	over = -1
	// maxEnded is how many transactions are remembered after their end, so that a late answer is not taken for one
	// without a request.
	maxEnded = 4096
)

// find returns the index of a transaction, or of the free entry where it belongs.
func (t *transactions) find(tid transaction) int {
	mask := len(t.at) - 1
	i := int(tid) & mask
	for t.at[i].tid != tid && t.at[i].tid != 0 {
		i = (i + 1) & mask
	}
	return i
}

// has reports whether a transaction is out or ended lately.
func (t *transactions) has(tid transaction) bool { return t.at[t.find(tid)].tid != 0 }

// begin records a transaction that is not known.
func (t *transactions) begin(tid transaction, place int32) {
	if 2*(t.used+1) > len(t.at) {
		t.grow()
	}
	t.at[t.find(tid)] = entry{tid, place}
	t.used++
	t.out++
}

// grow doubles the room.
func (t *transactions) grow() {
	old := t.at
	t.at = make([]entry, max(256, 2*len(old)))
	for _, e := range old {
		if e.tid != 0 {
			t.at[t.find(e.tid)] = e
		}
	}
}

// end records the end of the transaction at index i, which is out, and forgets the one that ended longest ago.
func (t *transactions) end(i int) {
	tid := t.at[i].tid
	t.at[i].place = over
	t.out--
	if len(t.ended) < maxEnded {
		t.ended = append(t.ended, tid)
		return
	}
	t.remove(t.ended[t.next])
	t.ended[t.next] = tid
	t.next = (t.next + 1) % maxEnded
}

// remove forgets a transaction, and moves up those that stand behind it because
// their own entries were in use.
func (t *transactions) remove(tid transaction) {
	mask := len(t.at) - 1
	free := t.find(tid)
	for i := (free + 1) & mask; t.at[i].tid != 0; i = (i + 1) & mask {
		if home := int(t.at[i].tid) & mask; (i-home)&mask >= (i-free)&mask {
			t.at[free], free = t.at[i], i
		}
	}
	t.at[free] = entry{}
	t.used--
}
