package violationlog

import "time"

// Tells reports whether n is 1, 2 or 5 times a power of ten: other repetitions are not logged. (NVIDIA's manual writes the
// sequence as 0, 1, 2, 5, 10, ...; its 0 is the first one.)
func Tells(n uint64) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1 || n == 2 || n == 5
}

// crosses reports whether a number for which Tells is true lies after one and up to the other.
func crosses(after, upTo uint64) bool {
	power := uint64(1)
	for upTo/power >= 10 {
		power *= 10
	}
	for _, digit := range [...]uint64{5, 2, 1} {
		if most := digit * power; most <= upTo {
			return most > after
		}
	}
	return false
}

// Pace lets so much through in a time: a bucket of tokens.
type Pace struct {
	left float64
	at   time.Time // zero: it was never asked, and is full
}

// Take takes a token if there is one. rate is tokens a second.
func (p *Pace) Take(now time.Time, rate, burst float64) bool {
	if p.at.IsZero() {
		p.left = burst
	} else {
		p.left = min(burst, p.left+max(0, rate*now.Sub(p.at).Seconds()))
	}
	p.at = now
	if p.left < 1 {
		return false
	}
	p.left--
	return true
}

const (
	// firstRate and firstBurst pace rows that are reported when they begin. The others are reported later and not logged,
	// so that a source of ever new rows does not fill the log.
	firstRate, firstBurst = 4, 32
	// batch bounds the rows that are reported at a time.
	batch = 256
)

// Steps reports whether the count of a row that just grew is one that is reported.
func (t *Table[R, S, X]) Steps(i int32) bool {
	w := &t.row[i]
	return w.step && w.Told != w.Count
}

// Loud reports whether to log a row that just grew: by the sequence, and not too many new ones at once. Otherwise, Due
// returns it later.
func (t *Table[R, S, X]) Loud(i int32, now time.Time) bool {
	w := &t.row[i]
	loud := t.Steps(i)
	if loud && w.Told == 0 && w.Report != w.Report.OfSource() && w.Report != w.Report.OfKind() {
		loud = t.MayTellNew(now)
	}
	return loud
}

// MayTellNew reports whether one more new thing may be reported now.
func (t *Table[R, S, X]) MayTellNew(now time.Time) bool {
	return t.first.Take(now, firstRate, firstBurst)
}

// Later queues a row for Due.
func (t *Table[R, S, X]) Later(i int32) {
	if w := &t.row[i]; !w.due {
		w.due = true
		t.due = append(t.due, i)
	}
}

// Due calls tell with rows that grew and were not reported since, some hundred at most, and reports whether there are more.
func (t *Table[R, S, X]) Due(tell func(i int32)) (more bool) {
	n := min(len(t.due), batch)
	for _, i := range t.due[:n] {
		w := &t.row[i]
		w.due = false
		if w.Count > 0 && w.Told != w.Count {
			tell(i)
		}
	}
	t.due = t.due[:copy(t.due, t.due[n:])]
	return len(t.due) > 0
}
