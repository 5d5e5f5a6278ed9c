// Package events keeps what operators should hear of although they asked for
// nothing: an adapter's lock that is not as it was, evidence that no longer counts.
// An event stands in the store in one row for its type, host, adapter, cause and who
// says it, with exact counts; in the audit log, in the transaction of whatever it tells of;
// and in the journal.
package events
