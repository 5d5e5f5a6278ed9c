// Package cloudevent puts events into the envelope of CloudEvents 1.0, in its structured JSON form.
package cloudevent

import (
	"portcullis/api/events"
	v1 "portcullis/api/v1"
)

// MediaType is that of one event.
const MediaType = "application/cloudevents+json"

// prefix begins the types of all events. What follows is the type of the event.
const prefix = "portcullis."

// Of returns an event, which has an id, in its envelope.
func Of(e *v1.Event) v1.CloudEvent {
	source := "/portcullis"
	if p, ok := events.ParsePosition(e.ID); ok {
		source += "/" + p.Series
	}
	return v1.CloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: source, Type: prefix + e.Type, Subject: events.Object(e),
		Time: e.Last.UTC(), DataContentType: "application/json", Severity: e.Severity, Data: *e,
	}
}
