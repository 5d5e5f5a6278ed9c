package remedy

import (
	"fmt"
	"time"

	"portcullis/api/events"
	v1 "portcullis/api/v1"
)

// found is the event that drift began.
func found(d *v1.Drift) v1.Event {
	e := v1.Event{Type: events.DriftFound, By: events.ByService, Cause: d.Kind, Host: d.Host, Expected: expected(d), Seen: text(d)}
	if d.Host == "" {
		e.Type = events.DriftElsewhere
	} else {
		e.Adapter = d.GUID
	}
	return e
}

// ended is the event that drift ended at a host.
func ended(x *row) v1.Event {
	return v1.Event{
		Type: events.DriftEnded, By: events.ByService, Cause: x.Kind, Host: x.Host, Adapter: x.GUID, Expected: expected(&x.Drift),
		Seen: fmt.Sprintf("the newest reading does not have it any more: %s", text(&x.Drift)),
	}
}

// expected says what is wanted.
func expected(d *v1.Drift) string {
	switch d.Kind {
	case v1.DriftMissing, v1.DriftMembership:
		return fmt.Sprintf("P_Key %v", d.PKey)
	case v1.DriftNotEnforced:
		return "the switch port to check P_Keys of packets in both directions"
	default:
		return fmt.Sprintf("no P_Key %v", d.PKey)
	}
}

// text says in a sentence where drift is, what was read, and since when.
func text(d *v1.Drift) string {
	what := d.Found
	switch d.Kind {
	case v1.DriftMissing:
		what = fmt.Sprintf("P_Key %v missing", d.PKey)
	case v1.DriftLeaving, v1.DriftStray:
		what = fmt.Sprintf("P_Key %v", d.PKey)
	}
	where := "P_Key table of the adapter port"
	if d.In == v1.DriftInSwitch {
		where = "switch port"
	}
	at := ""
	if !d.Place.IsZero() {
		at = fmt.Sprintf(" at %v", d.Place)
	}
	return fmt.Sprintf("%s of port %v%s: %s, since %s", where, d.GUID, at, what, d.Since.UTC().Format(time.RFC3339))
}
