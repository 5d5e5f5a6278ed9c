package driver

import (
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/sm"
)

// keep has facts saved before anything else is sent. Without a store they end
// here: those of a whole fabric are megabytes.
func (l *loop) keep(facts []sm.Fact) {
	if l.o.Store != nil {
		l.facts = append(l.facts, facts...)
	}
}

// retrySave is the pause before facts that the store could not take are saved again.
const retrySave = time.Second

// saveFacts makes facts durable, and reports whether packets may be sent. While the store
// cannot take facts nothing is sent: any of it may depend on them. Without a lease facts
// wait, and guard sends nothing that may depend on them.
func (l *loop) saveFacts() (saved bool, err error) {
	if l.o.Fence != nil {
		if l.regain(); l.fence.closed {
			return true, nil
		}
	}
	if len(l.facts) > 0 {
		if l.now.Before(l.saveAt) {
			return false, nil
		}
		err := l.o.Store.Save(l.facts)
		switch {
		case errors.Is(err, ErrLater):
			if l.saveAt.IsZero() {
				l.log.Error("the subnet manager sends nothing until what depends on it is saved", "facts", len(l.facts), "error", err)
			}
			l.saveAt = time.Now().Add(retrySave)
			return false, nil
		case err != nil:
			return false, fmt.Errorf("save LIDs and device facts before using them: %w; nothing that depends on them was sent", err)
		case !l.saveAt.IsZero():
			l.log.Warn("what was to be saved is, and the subnet manager goes on", "facts", len(l.facts))
		}
	}
	l.saveAt = time.Time{}
	if l.facts = l.facts[:0]; cap(l.facts) > batch {
		l.facts = nil // all LIDs of a fabric were given at once
	}
	return true, nil
}
