package registry

// Cursor yields the records that answer a query, one at a time.
type Cursor interface {
	// Step writes the next record to dst, in at most the given number of steps, and returns its length. Without a record,
	// done reports whether there is none left.
	Step(dst []byte, most int) (n int, done bool)
	// Steps is how many steps were taken so far.
	Steps() int
}

// Walk is the common part of cursors over a registry: each looks at no more than it is allowed to at a time, and counts
// that.
type Walk struct {
	Done  bool // there is nothing left to look at
	steps int
}

// Steps implements Cursor.
func (w *Walk) Steps() int { return w.steps }

// Take is Step for records of a size in bytes. Each step looks at one thing, and
// reports whether it wrote its record.
func (w *Walk) Take(dst []byte, size, most int, look func(dst []byte) bool) (n int, done bool) {
	if len(dst) < size {
		w.Done = true
	}
	for ; most > 0 && !w.Done; most-- {
		w.steps++
		if look(dst[:size]) {
			return size, false
		}
	}
	return 0, w.Done
}
