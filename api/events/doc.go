// Package events keeps what operators should learn without a request: an adapter's lock that is not as it was, evidence
// that no longer counts. An event stands in the store in one row for its type, host, adapter, cause and source, with exact
// counts. It also stands in the audit log, in the transaction of the change that it reports, and in the journal.
package events
