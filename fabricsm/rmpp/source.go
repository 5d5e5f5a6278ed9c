package rmpp

// Source makes the data of a message while it is sent. It is asked for a segment's
// worth at a time, in order and once: what must be sent again is kept. It must not
// call the Table.
type Source interface {
	// Fill writes the next bytes and says what comes then. It fills seg wholly, across
	// the borders of records, unless the data ends or it wants a pause: with fewer
	// bytes and ThenMore, the Table sends what it has, leaves the transaction due, and
	// asks again when the owner calls Expire. So a source that looks at much and finds
	// little bounds what one call costs.
	Fill(seg []byte) (n int, then Then)
}

// Then is what comes after bytes of a Source.
type Then uint8

const (
	// ThenEnd says that there is nothing more.
	ThenEnd Then = iota
	// ThenMore says that there may be more.
	ThenMore
	// ThenGiveUp says that there is more, but that it will not be made, perhaps
	// because it costs too much. The transaction is stopped, because half a message
	// must not pass for a whole one.
	ThenGiveUp
)

// Bytes is a Source of data that is in memory.
type Bytes struct{ rest []byte }

// NewBytes returns a source of b, which it shares.
func NewBytes(b []byte) *Bytes { return &Bytes{rest: b} }

// Fill implements Source.
func (b *Bytes) Fill(seg []byte) (int, Then) {
	n := copy(seg, b.rest)
	b.rest = b.rest[n:]
	if len(b.rest) > 0 {
		return n, ThenMore
	}
	return n, ThenEnd
}
