package keymgr

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// outbox collects what one step wants done.
type outbox struct{ Output }

// empty begins with another step, in the memory of the last one.
func (o *outbox) empty() {
	o.Output = Output{
		Save: o.Save[:0], Answer: o.Answer[:0], Send: o.Send[:0], Events: o.Events[:0], Judged: o.Judged[:0],
	}
}

func (o *outbox) event(e sm.Event) { o.Events = append(o.Events, e) }

func (o *outbox) save(f sm.Fact) { o.Save = append(o.Save, f) }

func (o *outbox) judged(j sm.ClassTrapJudged) { o.Judged = append(o.Judged, j) }

// ring has the record of a key saved before anything is sent, if it changed.
func (o *outbox) ring(r *keys.Ring) {
	if r.Next(ib.Place{}, false).Save {
		o.save(sm.KeyFactOf(r.Record()))
		r.Saved()
	}
}
