package lanes

import (
	"slices"
	"strings"

	"portcullis/fabricsm/topo"
)

// After quality of service, or routes on several lanes, are switched off, the tables written for them are still in the
// devices: a service level may be dropped, or a lane starve. Only the subnet manager that wrote them can know, also after a
// restart. So a fact records that it wrote them, and they are set to the defaults as soon as nothing else is wanted. Tables
// that no subnet manager of ours wrote are left alone.

// written is what of lanes was written to devices and may still be there when something else is wanted.
type written uint8

const (
	mapsWritten   written = 1 << iota // SL-to-VL tables
	pairsWritten                      // those for each pair of ports
	sharesWritten                     // VL arbitration tables
)

// marks returns the words of a fact, by bit.
func (written) marks() [3]string { return [...]string{"maps", "pairs", "shares"} }

// undoes reports whether tables are to be the defaults again. Before there are routes that is not known, and it returns
// false.
func (l *Lanes) undoes() bool {
	return l.written != 0 && l.routes != nil && !l.layered && !l.options.Enabled
}

// programsShares reports whether arbitration tables are programmed.
func (l *Lanes) programsShares() bool {
	return l.options.Enabled || l.written&sharesWritten != 0 && l.undoes()
}

// noteWrite records, before it is done, that tables of a port are written.
func (l *Lanes) noteWrite(p topo.PortID, w written) {
	if l.maps[p].want == lanesByPort {
		w |= pairsWritten
	}
	if l.undoes() || l.written|w == l.written {
		return
	}
	l.written |= w
	l.save()
}

func (l *Lanes) save() {
	var mark []byte
	for bit, word := range l.written.marks() {
		if l.written&(1<<bit) != 0 {
			mark = append(append(mark, ' '), word...)
		}
	}
	l.fabric.Save(strings.TrimSpace(string(mark)))
}

// Load takes what was saved.
func (l *Lanes) Load(mark string) {
	l.written = 0
	words := strings.Fields(mark)
	for bit, word := range l.written.marks() {
		if slices.Contains(words, word) {
			l.written |= 1 << bit
		}
	}
}

// mixed reports whether tables for different input ports may differ from each other though one is wanted for all.
func (l *Lanes) mixed(want laneID) bool {
	return want != lanesByPort && (l.written&pairsWritten != 0 || l.undoes())
}

// Settle forgets that tables were written, once a fabric is settled in which no port has them any longer. A device that
// refuses other tables was reported, and is not asked without end.
func (l *Lanes) Settle() {
	pairs := l.written&pairsWritten != 0 && !(l.layered && l.routes.LanesByPort())
	if !l.undoes() && !pairs {
		return
	}
	for i := range l.maps {
		p := topo.PortID(i)
		if pt := l.fabric.Port(p); pt.isSeen() && l.has(p) && !l.IsDone(p) {
			return
		}
	}
	if l.written &^= pairsWritten; l.undoes() {
		l.written = 0
	}
	l.save()
}
