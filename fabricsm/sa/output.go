package sa

import (
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Output is what an Agent wants done: Send at once; Save first, and then Held and Tell.
// Calls add to it; Reset empties it for the next ones.
type Output struct {
	Send []transport.Packet

	Save []sm.Fact          // durable first
	Held []transport.Packet // then on the wire
	Tell []sm.Input         // and to the Subnet Manager, in order

	Events []sm.Event
}

// Reset empties it and keeps its memory.
func (o *Output) Reset() {
	clear(o.Tell)
	clear(o.Events)
	clear(o.Save)
	*o = Output{Send: o.Send[:0], Save: o.Save[:0], Held: o.Held[:0], Tell: o.Tell[:0], Events: o.Events[:0]}
}

// Waits reports whether something has to be durable, or told, before the rest is done.
func (o *Output) Waits() bool { return len(o.Save) > 0 || len(o.Held) > 0 || len(o.Tell) > 0 }
