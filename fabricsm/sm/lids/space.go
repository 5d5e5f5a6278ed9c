// Package lids assigns LIDs to end ports.
//
// A GUID keeps its LIDs while it is away, until there are no others left. It keeps them longer if it was seen lately or is a
// member of a partition. The package has no clock and sends nothing.
package lids

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Space holds the owner of each unicast LID.
type Space struct {
	owner  []ib.GUID // by LID
	byGUID map[ib.GUID]ib.LID
	lmc    map[ib.GUID]ib.LMC    // of those that own more than one
	next   [MaxLMC + 1]ib.LID    // by LMC: no range of LIDs below it is free
	spare  ib.LID                // where the search for LIDs of absent GUIDs goes on
	fresh  []uint64              // bits by LID: given since the core began
	away   map[ib.GUID]time.Time // when owners were seen last that are not seen now, and were since the core began
}

// fewLIDs is how many LIDs there is room for at least.
const fewLIDs = 512

// MaxLMC is the highest LMC that there is.
const MaxLMC = 7

func newSpace() Space {
	s := Space{
		owner: make([]ib.GUID, 0, fewLIDs), fresh: make([]uint64, 0, fewLIDs/64),
		byGUID: make(map[ib.GUID]ib.LID, fewLIDs), lmc: make(map[ib.GUID]ib.LMC), away: make(map[ib.GUID]time.Time), spare: ib.MinUnicastLID,
	}
	for lmc := range s.next {
		s.next[lmc] = max(ib.MinUnicastLID, ib.LID(1)<<lmc)
	}
	return s
}

// At returns the owner of a LID, 0 if it is free.
func (s *Space) At(l ib.LID) ib.GUID {
	if int(l) < len(s.owner) {
		return s.owner[l]
	}
	return 0
}

// Of returns the base LID that a GUID owns, 0 if it owns none.
func (s *Space) Of(g ib.GUID) ib.LID { return s.byGUID[g] }

// Owners returns the number of GUIDs that own LIDs.
func (s *Space) Owners() int { return len(s.byGUID) }

// IsNew reports whether a LID was assigned since the core began.
func (s *Space) IsNew(l ib.LID) bool {
	return int(l)/64 < len(s.fresh) && s.fresh[l/64]>>(l%64)&1 != 0
}

// Load takes a saved fact, or what a GUID is to have. Those that contradict it are dropped.
func (s *Space) Load(g ib.GUID, l ib.LID, lmc ib.LMC) {
	s.release(g)
	if !g.Valid() || !isRange(l, lmc) {
		return
	}
	for i := range ib.LID(1) << lmc {
		if before := s.At(l + i); before != 0 {
			s.release(before)
		}
	}
	s.own(g, l, lmc)
}

// isRange reports whether an LMC makes a range of unicast LIDs of a base LID.
func isRange(l ib.LID, lmc ib.LMC) bool {
	size := 1 << lmc
	return lmc <= MaxLMC && l.IsUnicast() && int(l)%size == 0 && int(l)+size-1 <= int(ib.MaxUnicastLID)
}

func (s *Space) set(l ib.LID, g ib.GUID) {
	for int(l) >= len(s.owner) {
		s.owner = append(s.owner, 0)
	}
	s.owner[l] = g
}

func (s *Space) own(g ib.GUID, l ib.LID, lmc ib.LMC) {
	for i := range ib.LID(1) << lmc {
		s.set(l+i, g)
	}
	s.byGUID[g] = l
	if lmc != 0 {
		s.lmc[g] = lmc
	}
}

func (s *Space) release(g ib.GUID) {
	l, ok := s.byGUID[g]
	if !ok {
		return
	}
	for i := range ib.LID(1) << s.lmc[g] {
		s.set(l+i, 0)
	}
	for lmc := range s.next {
		s.next[lmc] = min(s.next[lmc], max(l&^(1<<lmc-1), 1<<lmc))
	}
	delete(s.byGUID, g)
	delete(s.lmc, g)
	delete(s.away, g)
}

// isFree reports whether an aligned range of LIDs has no owner other than one GUID.
func (s *Space) isFree(l ib.LID, lmc ib.LMC, but ib.GUID) bool {
	if !isRange(l, lmc) {
		return false
	}
	for i := range ib.LID(1) << lmc {
		if g := s.At(l + i); g != 0 && g != but {
			return false
		}
	}
	return true
}

// ownerIn returns the first owner of LIDs of a range, 0 if all are free.
func (s *Space) ownerIn(l ib.LID, lmc ib.LMC) ib.GUID {
	for i := range ib.LID(1) << lmc {
		if g := s.At(l + i); g != 0 {
			return g
		}
	}
	return 0
}

// setNew records that a LID was assigned now.
func (s *Space) setNew(l ib.LID) {
	for int(l)/64 >= len(s.fresh) {
		s.fresh = append(s.fresh, 0)
	}
	s.fresh[l/64] |= 1 << (l % 64)
}

// pick returns LIDs for a GUID: those it had, if they are as many as wanted. Otherwise it takes those around the base LID
// it had or was found with if they are free, or the first that are. fresh says that this is new and must be saved. taken
// are the GUIDs that lost their LIDs because no others were left; keeps reports those that do not.
func (s *Space) pick(g ib.GUID, found ib.LID, lmc ib.LMC, keeps func(ib.GUID) bool) (l ib.LID, fresh bool, taken []ib.GUID) {
	had, ok := s.byGUID[g]
	if ok && s.lmc[g] == lmc {
		return had, false, nil
	}
	switch {
	case ok && s.isFree(had, lmc, g):
		l = had
	case s.isFree(found, lmc, g):
		l = found
	default:
		l = s.first(lmc, g)
	}
	if l == 0 {
		if l, taken = s.takeSpare(lmc, g, keeps); l == 0 {
			return 0, false, nil
		}
	}
	s.release(g)
	s.own(g, l, lmc)
	return l, true, taken
}

// first returns the first free range of LIDs, 0 if there is none.
func (s *Space) first(lmc ib.LMC, g ib.GUID) ib.LID {
	size := ib.LID(1) << lmc
	for l := s.next[lmc]; isRange(l, lmc); l += size {
		if s.isFree(l, lmc, g) {
			s.next[lmc] = l
			return l
		}
	}
	s.next[lmc] = ib.MaxUnicastLID + 1
	return 0
}

// takeSpare takes a range of LIDs whose owners do not keep them.
func (s *Space) takeSpare(lmc ib.LMC, but ib.GUID, keeps func(ib.GUID) bool) (ib.LID, []ib.GUID) {
	size := ib.LID(1) << lmc
	for range int(ib.MaxUnicastLID)/int(size) + 1 {
		l := max(s.spare&^(size-1), size)
		if s.spare = l + size; s.spare > ib.MaxUnicastLID {
			s.spare = ib.MinUnicastLID
		}
		var taken []ib.GUID
		ok := isRange(l, lmc)
		for i := range size {
			g := s.At(l + i)
			switch {
			case g == 0 || g == but:
			case keeps(g):
				ok = false
			case len(taken) == 0 || taken[len(taken)-1] != g:
				taken = append(taken, g)
			}
		}
		if !ok {
			continue
		}
		for _, g := range taken {
			s.release(g)
		}
		return l, taken
	}
	return 0, nil
}
