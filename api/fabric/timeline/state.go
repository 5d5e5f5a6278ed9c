package timeline

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Fields is how many texts a row has at most.
const Fields = 8

const (
	// MaxRows is how many rows a table has at most.
	MaxRows = 200_000
	// MaxText is the length of a text or an ID in bytes, at most.
	MaxText = 256
)

// Kind says what a row is of. The caller has up to 255 of them.
type Kind uint8

// Key names a row.
type Key struct {
	Kind Kind
	ID   string // MaxText bytes at most
}

// Compare orders keys by kind and ID.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), strings.Compare(k.ID, o.ID))
}

// Value are the texts of a row. Those that a kind does not have are empty.
type Value [Fields]string

// Row is a row of the table.
type Row struct {
	Key
	Value
}

// Change is what becomes of one row. A row that comes has no Was, one that goes no Now.
type Change struct {
	Key
	Was, Now *Value
}

// Event is one frame of a segment.
type Event struct {
	Time    time.Time // UTC, in milliseconds
	Sort    Sort
	Why     string   // of Begin, why nothing was known before; of End, why nothing is known from then on
	Changes []Change // of Begin, Changed and Resumed, in the order of keys
}

// Sort says what an Event is.
type Sort uint8

// Sorts of events. Between two of them the table is as the earlier one left it, unless that is an End.
const (
	Begin     Sort = iota + 1 // the whole table; nothing is known of the time before
	Continues                 // the whole table, which was the same before
	Changed                   // rows changed
	Alive                     // no row changed until then
	End                       // the table is not known from then on
	Resumed                   // it is known again: rows that changed meanwhile, nothing says when
)

// valid reports whether there is such a sort.
func (s Sort) valid() bool { return s >= Begin && s <= Resumed }

// whole reports whether an event of the sort has all rows.
func (s Sort) whole() bool { return s == Begin || s == Continues }

// State is a table. The zero State is empty.
type State struct {
	rows map[Key]*held
	turn uint32
}

type held struct {
	value Value
	turn  uint32 // when the row was in what Replace was given
}

// Len returns the number of rows.
func (s *State) Len() int { return len(s.rows) }

// Get returns the texts of a row, and whether it is there.
func (s *State) Get(k Key) (Value, bool) {
	if h := s.rows[k]; h != nil {
		return h.value, true
	}
	return Value{}, false
}

// Rows returns the rows in the order of their keys.
func (s *State) Rows() []Row {
	out := make([]Row, 0, len(s.rows))
	for k, h := range s.rows {
		out = append(out, Row{k, h.value})
	}
	slices.SortFunc(out, func(a, b Row) int { return a.Compare(b.Key) })
	return out
}

// Clone returns a table of its own with the same rows.
func (s *State) Clone() *State {
	out := &State{rows: make(map[Key]*held, len(s.rows))}
	for k, h := range s.rows {
		out.rows[k] = &held{value: h.value}
	}
	return out
}

// Equal reports whether two tables have the same rows.
func (s *State) Equal(o *State) bool {
	return maps.EqualFunc(s.rows, o.rows, func(a, b *held) bool { return a.value == b.value })
}

// Replace has the rows of some kinds be these and no others, and returns what changed, in the order of keys. Of several rows with
// one key the first counts. Texts are cut at MaxText, and what is no UTF-8 in them is replaced.
func (s *State) Replace(kinds []Kind, rows []Row) []Change {
	if s.rows == nil {
		s.rows = map[Key]*held{}
	}
	s.turn++
	var out []Change
	for i := range rows {
		r := &rows[i]
		r.clip()
		h := s.rows[r.Key]
		switch {
		case h == nil:
			s.rows[r.Key] = &held{value: r.Value, turn: s.turn}
			now := r.Value
			out = append(out, Change{Key: r.Key, Now: &now})
			continue
		case h.turn == s.turn:
			continue
		case h.value != r.Value:
			was, now := h.value, r.Value
			out = append(out, Change{r.Key, &was, &now})
			h.value = r.Value
		}
		h.turn = s.turn
	}
	for k, h := range s.rows {
		if h.turn != s.turn && slices.Contains(kinds, k.Kind) {
			was := h.value
			out = append(out, Change{Key: k, Was: &was})
			delete(s.rows, k)
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return a.Compare(b.Key) })
	return out
}

// clip bounds the texts of a row.
func (r *Row) clip() {
	r.ID = clip(r.ID)
	for i, t := range r.Value {
		r.Value[i] = clip(t)
	}
}

// clip returns text cut to MaxText bytes of whole characters.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= MaxText {
		return text
	}
	return strings.ToValidUTF8(text[:MaxText], "")
}
