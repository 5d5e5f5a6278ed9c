package rmpp

// Source makes the data of a message while it is sent. It is asked for one segment of data at a time, in order and once:
// segments that may be sent again are kept. It must not call the Table.
type Source interface {
	// Fill writes the next bytes and returns what follows them. It fills seg wholly, across the borders of records, unless
	// the data ends or it wants a pause. With fewer bytes and ThenMore, the Table sends the available data, leaves the
	// transaction due, and asks again when the owner calls Expire. So a source that looks at much data and finds little can
	// bound the cost of one call.
	Fill(seg []byte) (n int, then Then)
}

// Then is the state of a Source after some bytes.
type Then uint8

const (
	// ThenEnd means that there is nothing more.
	ThenEnd Then = iota
	// ThenMore means that there may be more.
	ThenMore
	// ThenGiveUp means that there is more, but that it will not be made, for example because it costs too much. The
	// transaction is stopped, because half a message must not look like a whole one.
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
