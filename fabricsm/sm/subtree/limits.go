package subtree

import (
	"cmp"
	"time"

	"portcullis/fabricsm/mad"
)

// Limits bound what may be found.
type Limits struct {
	// Ceiling is the size of the largest fabric there may be; default 81920,
	// which 49151 hosts on 64-port switches have.
	Ceiling int
	// Entry is the size of what may be found within Window behind one port that
	// is part of the fabric for long, if none of it was seen before; default
	// 16384. It is also the size of what is let go when the ceiling is reached.
	Entry int
	// Window is default 1 min.
	Window time.Duration
	// Cable is the size of what may hang on the rest by one cable alone, if none of it
	// was known when the core began; default 2048.
	Cable int
	// Hops is how many hops from us a port may be behind which something is looked
	// for, 1 to mad.MaxHops; default mad.MaxHops.
	Hops int
}

// WithDefaults returns the limits with the default of each field that is zero.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Ceiling: cmp.Or(l.Ceiling, 81920), Entry: cmp.Or(l.Entry, 16384), Window: cmp.Or(l.Window, time.Minute),
		Cable: cmp.Or(l.Cable, 2048), Hops: cmp.Or(l.Hops, mad.MaxHops),
	}
}

// Check reports every value that makes no sense.
func (l *Limits) Check(wrong func(format string, args ...any)) {
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"ceiling", int64(l.Ceiling)}, {"of an entry", int64(l.Entry)}, {"window", int64(l.Window)}, {"behind one cable", int64(l.Cable)},
	} {
		if n.n < 0 {
			wrong("growth %s is negative", n.name)
		}
	}
	if l.Hops < 0 || l.Hops > mad.MaxHops {
		wrong("growth: %d hops: want 1 to %d", l.Hops, mad.MaxHops)
	}
}
