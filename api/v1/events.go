package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Event is something that operators should learn without a request. Occurrences of one type, host, adapter and cause are
// one event, which counts.
type Event struct {
	ID       string    `json:"id,omitempty" doc:"of the last time: its position among all events, which is the id of server-sent events and CloudEvents"`
	Type     string    `json:"type" doc:"one of the catalogue, docs/reference/events.md, such as lock.changed"`
	Severity string    `json:"severity" enum:"info,notice,warning,critical"`
	By       string    `json:"by" enum:"evidence,host,service" doc:"who says so. evidence: a TPM vouched for it; host: the host's word alone, from which nothing follows; service: the service did it or found it out"`
	Cause    string    `json:"cause" doc:"which of the ways this type of event happens"`
	Host     string    `json:"host,omitempty" doc:"none: it is about no single host"`
	Adapter  ib.GUID   `json:"node_guid,omitzero" doc:"adapter, where it is about one"`
	Expected string    `json:"expected" doc:"as last proven, ordered or demanded"`
	Seen     string    `json:"seen" doc:"the last time"`
	Do       string    `json:"do,omitempty" doc:"what to do"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Count    uint64    `json:"count" doc:"exact"`
}

// Events are what happened, the last first.
type Events struct {
	Items   []Event `json:"items"`
	LeftOff int     `json:"left_off,omitempty" doc:"how many more there are behind this page"`
	Next    string  `json:"next,omitempty" doc:"value of after for the next page; absent: this is the last one. An event that happens again meanwhile goes to the front"`
	// Position is behind all events that there were when the page was read.
	Position string `json:"position,omitempty" doc:"value of after of GET /v1/events/watch, which has all that happens from this page on"`
}

// EventQuery says which events are asked for. Empty fields ask for all.
type EventQuery struct {
	Type     string    `query:"type" maxLength:"64" doc:"of this type only"`
	Host     string    `query:"host" maxLength:"128" doc:"of this host only"`
	Severity string    `query:"severity" enum:"info,notice,warning,critical" doc:"this severe or more"`
	Since    time.Time `query:"since" doc:"that happened at this time or later"`
	PageQuery
}

// EventWatch says which events a stream has, and where it begins.
type EventWatch struct {
	Type       string `query:"type" maxLength:"64" doc:"of this type only"`
	Host       string `query:"host" maxLength:"128" doc:"of this host only"`
	Severity   string `query:"severity" enum:"info,notice,warning,critical" doc:"this severe or more"`
	After      string `query:"after" maxLength:"128" doc:"id of an event, or position of a list: the stream has what happened after it. Empty: it begins now"`
	Form       string `query:"form" enum:"event,cloudevents" default:"event" doc:"of the data of each event: as the list has it, or in the envelope of CloudEvents 1.0"`
	Violations bool   `query:"violations" doc:"the stream also has the message violations when the list of violations in the fabric has changed"`
	LastID     string `header:"Last-Event-ID" maxLength:"128" doc:"goes before after: a client that connects again sends the id that it had last"`
}

// FormCloudEvents is the form of events in the envelope of CloudEvents.
const FormCloudEvents = "cloudevents"

// CloudEvent is an event in the structured form of CloudEvents 1.0.
type CloudEvent struct {
	SpecVersion     string    `json:"specversion" enum:"1.0"`
	ID              string    `json:"id" doc:"with the source: of this event and no other one"`
	Source          string    `json:"source" doc:"/portcullis/ and the series of positions of the store"`
	Type            string    `json:"type" doc:"portcullis. and the type of the event"`
	Subject         string    `json:"subject" doc:"what it is about, as the audit log names it"`
	Time            time.Time `json:"time" doc:"when it happened the last time"`
	DataContentType string    `json:"datacontenttype" enum:"application/json"`
	Severity        string    `json:"severity" enum:"info,notice,warning,critical" doc:"extension attribute"`
	Data            Event     `json:"data"`
}

// EventsBegin is the data of the event begin, with which a stream begins.
type EventsBegin struct {
	Position string `json:"position" doc:"after which the stream begins"`
	Resumed  bool   `json:"resumed,omitempty" doc:"it is the position that was asked for"`
}

// EventsViolations is the data of the message violations: the list of violations in the fabric is another than before, or it is
// known again whether it is. The first one follows begin.
type EventsViolations struct {
	Live bool `json:"live" doc:"messages come when the list changes; false: this instance does not see the fabric now, so ask for the list every so often"`
}

// EventsGap is the data of the event gap: the stream does not have each time that something happened.
type EventsGap struct {
	Reason string `json:"reason" enum:"foreign,later,too-old,merged"`
	Detail string `json:"detail"`
	Do     string `json:"do"`
}

// EventsEnd is the data of the event end, with which the service ends a stream.
type EventsEnd struct {
	Reason string `json:"reason,omitempty" enum:"slow,stopping,credential,store"`
	Do     string `json:"do,omitempty"`
}
