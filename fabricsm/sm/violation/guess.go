package violation

import (
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/topo"
)

// guessedKey is a key that an attacker may be trying to find.
type guessedKey struct {
	kind keys.Kind
	port topo.PortID
}

// guesses counts wrong keys that were shown to a device.
type guesses struct {
	since time.Time
	n     uint64
	told  uint64
}

const (
	// guessTime is the time within which wrong keys that a device is shown are counted.
	guessTime = 10 * time.Minute
	// guessLeast is how many of them are more than mistakes. Ours count too: this manager may have to try two keys.
	guessLeast = 10
)

// guessed records that a device was shown wrong keys.
func (l *Log) guessed(kind keys.Kind, p topo.PortID, n uint64) {
	name := guessedKey{kind, p}
	g := l.guesses[name]
	if g == nil {
		g = &guesses{since: l.fabric.Now()}
		l.guesses[name] = g
	}
	if l.fabric.Now().Sub(g.since) > guessTime {
		*g = guesses{since: l.fabric.Now()}
	}
	g.n += n
	if step := stepBelow(g.n); g.n >= guessLeast && step > g.told {
		g.told = step
		l.fabric.Report(&KeyGuessing{Kind: kind, GUID: l.guidOf(p), Place: l.fabric.PlaceOf(p), Count: g.n, Window: max(time.Second, l.fabric.Now().Sub(g.since))})
	}
}

// stepBelow returns the greatest number of the sequence 1, 2, 5, 10, 20, 50, ... that is not above n.
func stepBelow(n uint64) uint64 {
	step := uint64(1)
	for step <= n/10 {
		step *= 10
	}
	switch {
	case n >= 5*step:
		return 5 * step
	case n >= 2*step:
		return 2 * step
	default:
		return min(n, step)
	}
}

// forgetGuesses forgets the wrong keys that were shown to a port that goes.
func (l *Log) forgetGuesses(p topo.PortID) {
	for _, kind := range keys.Kinds() {
		delete(l.guesses, guessedKey{kind, p})
	}
}
