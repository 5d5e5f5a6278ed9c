package traps

import "time"

// longestHold bounds the time between two looks at a node whose traps prove to be false, unless a configuration asks for more.
const longestHold = 2 * time.Second

// steadyFor is how many times its last pause a node has to be without a look before the pauses are short again.
const steadyFor = 4

// Look says when a node is looked at because of its traps. The zero value is that of a node that sent none. Each time that
// nothing is found the next look waits twice as long, so that a source of false traps causes few requests.
type Look struct {
	hold   time.Time     // no look before
	pause  time.Duration // between the last two
	isTrue bool          // the last look found something
	isDue  bool          // a look waits
}

// Prove records that the last look found something: the trap was true.
func (l *Look) Prove() { l.isTrue = true }

// IsCredible reports whether no trap of the node proved false: the last look found something, or there was at most one.
// shortest is the time between two looks at least.
func (l *Look) IsCredible(shortest time.Duration) bool { return l.isTrue || l.pause <= shortest }

// IsDue reports whether a look waits.
func (l *Look) IsDue() bool { return l.isDue }

// Await records that a look waits.
func (l *Look) Await() { l.isDue = true }

// Wait returns how long a look has to wait, 0 if it need not.
func (l *Look) Wait(now time.Time) time.Duration {
	if now.Before(l.hold) {
		return l.hold.Sub(now)
	}
	return 0
}

// Begin records a look, after which none begins for a while: shortest at least.
func (l *Look) Begin(now time.Time, shortest time.Duration) {
	if l.isTrue || now.Sub(l.hold) > steadyFor*l.pause {
		l.pause = 0
	}
	l.pause = min(max(2*l.pause, shortest), max(longestHold, shortest))
	l.isDue, l.isTrue, l.hold = false, false, now.Add(l.pause)
}
