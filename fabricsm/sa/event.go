package sa

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/service"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Asked is the origin of a request that led to an event.
type Asked struct {
	GUID  ib.GUID  // physical port that has the source LID; 0: no requester
	Place ib.Place // switch port in front of it
	Count uint64   // of refusals like this one, so far; 0: it is none
}

func (a *Asked) String() string {
	if a.GUID == 0 {
		return ""
	}
	s := fmt.Sprintf("; port %v asked", a.GUID)
	if !a.Place.IsZero() {
		s += fmt.Sprintf(" at %v", a.Place)
	}
	if a.Count > 0 {
		s += fmt.Sprintf(", number %d", a.Count)
	}
	return s
}

// asked returns the location of a requester.
func (a *Agent) asked(who *portindex.Asker) Asked {
	port := a.book.EndPort(who.Port)
	if who.LID == 0 || port == nil {
		return Asked{} // there is no requester
	}
	return Asked{GUID: port.GUID, Place: a.book.View.Fabric.PlaceOf(port.Port), Count: a.refusals}
}

// turnedDown counts a request that is answered with a refusal. A reason of 0 means that there is no refusal. quiet is true
// if the refusal is not reported now, see Violation.
func (a *Agent) turnedDown(now time.Time, p *transport.Packet, who *portindex.Asker, m *mad.MAD, target ib.GUID, reason uint8) (quiet bool) {
	if a.refusals = 0; reason == 0 {
		return false
	}
	d := a.dropped(p, who, m, trust.Refused, target)
	d.Reason = reason
	row, loud := a.note(now, d)
	a.refusals = row.Count
	return !loud
}

// GroupEvent is an event of multicast groups. Refusals are reported by the suppression sequence, and a second later as a
// Violation with the exact count.
type GroupEvent struct {
	sm.Administration
	group.Event
	Asked Asked
}

// String implements fmt.Stringer.
func (e *GroupEvent) String() string { return e.Event.String() + e.Asked.String() }

// ServiceEvent is an event of services that hosts register by name, likewise.
type ServiceEvent struct {
	sm.Administration
	service.Event
	Asked Asked
}

// String implements fmt.Stringer.
func (e *ServiceEvent) String() string { return e.Event.String() + e.Asked.String() }

// SubscriptionEvent is an event of subscriptions to notices, likewise.
type SubscriptionEvent struct {
	sm.Administration
	inform.Event
	Asked Asked
}

// String implements fmt.Stringer.
func (e *SubscriptionEvent) String() string { return e.Event.String() + e.Asked.String() }

// AliasEvent is an event of aliases that a port was given or refused, likewise.
type AliasEvent struct {
	sm.Administration
	alias.Event
	Asked Asked
}

// String implements fmt.Stringer.
func (e *AliasEvent) String() string { return e.Event.String() + e.Asked.String() }
