package sa

import (
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Output is the work that an Agent requests: Send at once; Save first, and then Held and Tell. Calls add to it; Reset
// empties it for the next calls.
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

// Waits reports whether something must become durable, be held, or go to the Subnet Manager.
func (o *Output) Waits() bool { return len(o.Save) > 0 || len(o.Held) > 0 || len(o.Tell) > 0 }
