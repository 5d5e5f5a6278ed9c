package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Event is something that operators should learn without a request. Occurrences of one type, host, adapter and cause are
// one event, which counts.
type Event struct {
	Type     string    `json:"type" doc:"guid.conflict, lock.changed, lock.unlock-failed, lock.failed, lock.unlock-given, lock.relocked, lock.epoch-skipped, evidence.outdated, evidence.current, fabric.blind, fabric.seen, admission.brake, admission.brake-ended, clock.jump, clock.steady or certificate.ends"`
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
}

// EventQuery says which events are asked for. Empty fields ask for all.
type EventQuery struct {
	Type     string    `query:"type" maxLength:"64" doc:"of this type only"`
	Host     string    `query:"host" maxLength:"128" doc:"of this host only"`
	Severity string    `query:"severity" enum:"info,notice,warning,critical" doc:"this severe or more"`
	Since    time.Time `query:"since" doc:"that happened at this time or later"`
	PageQuery
}
