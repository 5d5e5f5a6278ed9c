package v1

import "time"

// AuditEntry is one entry of the audit log. Each has the hash of the one before it.
type AuditEntry struct {
	Seq     uint64    `json:"seq" doc:"from 1, without gaps"`
	Time    time.Time `json:"time"`
	Actor   string    `json:"actor" doc:"name of a credential; agent:HOST once its TPM answered; source:ADDRESS before; service"`
	Action  string    `json:"action" doc:"for example host.assign"`
	Object  string    `json:"object" doc:"for example host/compute-01"`
	Code    string    `json:"code,omitempty" doc:"of refusals and decisions"`
	Detail  string    `json:"detail,omitempty"`
	Reason  string    `json:"reason,omitempty" doc:"why, in the words of the actor: from Portcullis-Reason or from the body of the request"`
	Request string    `json:"request,omitempty" doc:"id of the request that it was done for, as the answer had it (X-Request-Id) and the log of the service has it; absent: for none"`
	Source  string    `json:"source,omitempty" doc:"address that the request came from; absent: from a socket of the machine"`
	Before  string    `json:"before,omitempty" doc:"SHA-256 of the object's record before; empty: there was none"`
	After   string    `json:"after,omitempty" doc:"and after"`
	Prev    string    `json:"prev" doc:"hash of the entry before; empty in the first"`
	Hash    string    `json:"hash" doc:"SHA-256, hexadecimal, of this entry's JSON with an empty hash"`
}

// AuditHead is the last entry of the audit log; Seq is 0 in an empty one.
type AuditHead struct {
	Seq    uint64 `json:"seq"`
	Hash   string `json:"hash"`
	Branch uint64 `json:"branch,omitempty" doc:"how often operators had a state count that was rolled back"`
}

// AuditQuery says which entries are asked for. Empty fields ask for all.
type AuditQuery struct {
	After  string    `query:"after" maxLength:"20" doc:"what the page before returned as next"`
	Limit  int       `query:"limit" minimum:"1" maximum:"5000" doc:"how many at most; default 1000"`
	Newest bool      `query:"newest" doc:"the last entries first"`
	Actor  string    `query:"actor" maxLength:"256" doc:"of this actor only"`
	Action string    `query:"action" maxLength:"128" doc:"of this action only, or of all that begin with it if it ends in a dot"`
	Object string    `query:"object" maxLength:"256" doc:"about this object only"`
	Since  time.Time `query:"since" doc:"of this time or later"`
	Until  time.Time `query:"until" doc:"before this time"`
}

// AuditEntries are a part of the audit log. A page with filters may have few items, or none, and still
// name a next one.
type AuditEntries struct {
	Items []AuditEntry `json:"items" nullable:"false"`
	Next  string       `json:"next,omitempty" doc:"value of after for the next page"`
	Head  AuditHead    `json:"head" doc:"the last entry when this page was read"`
}

// AuditBreaks are the places where the audit log is not what was written.
type AuditBreaks struct {
	Verified time.Time    `json:"verified,omitzero" doc:"when the log was verified last and was whole but for breaks that were accepted; absent: not yet"`
	Open     []AuditBreak `json:"open" nullable:"false" doc:"those that no operator accepted, in the order of the log, 100 at most"`
	Accepted []AuditBreak `json:"accepted" nullable:"false" doc:"those that operators accepted"`
}

// AuditBreak is a place where the audit log is not what was written.
type AuditBreak struct {
	Cause string    `json:"cause" enum:"altered,cut,rolled-back"`
	Seq   uint64    `json:"seq" doc:"first entry that does not fit, or is missing"`
	Found string    `json:"found,omitempty" doc:"what is wrong"`
	From  AuditHead `json:"from" doc:"last entry before that fits; rolled-back: the one that was verified before"`
	To    AuditHead `json:"to" doc:"entry from which the log goes on"`

	Entry  uint64    `json:"entry,omitempty" doc:"entry by which an operator accepted it"`
	Time   time.Time `json:"time,omitzero" doc:"and when"`
	Actor  string    `json:"actor,omitempty"`
	Detail string    `json:"detail,omitempty" doc:"reason that the operator stated, and what was wrong"`
}

// AuditAccept accepts a break of the audit log.
type AuditAccept struct {
	Seq    uint64 `json:"seq" minimum:"1" doc:"of an open break"`
	Hash   string `json:"hash" maxLength:"64" doc:"of its entry to, so that what was looked at is what is accepted"`
	Reason string `json:"reason" minLength:"1" maxLength:"200" doc:"what is known of how the break came to be"`
}
