// Package trust decides which requests to subnet administration are answered at all: by their SA_Key, their source, their
// content, and the number of existing registrations. It answers nothing: a refused request is dropped without an answer,
// counted, and reported.
//
// # The order of checks
//
//	limiter.Admit      rates of nodes, before anything is read
//	Guard.Check        header, threshold, SA_Key, source GID, enhanced trust model
//	(partitions)       the records' own business
//	Guard.ActsFor      requests on behalf of another port
//	Limits.Room        registrations of a port or alias
//	ServiceKeys.Check  who may register which name
//
// Only requests are checked: an ACK or ABORT of RMPP belongs to its session, and the ACK of a trusted client shows no key.
//
// # Standard and enhanced trust
//
// A request with the SA_Key is trusted, one with zero is not, and one with any other value is dropped. Under the enhanced
// trust model an untrusted request is also dropped unless it is in a short table (see Options.Model). Limits of
// registrations and reserved names apply to untrusted requests under both models.
//
// # The SA_Key
//
// Keys holds the current key and, for a grace period, the previous one. Its owner asks Next whether another key is wanted,
// makes it with a keys.Source, calls Rotate, and saves the facts of State. Only then it passes the new key to the trusted
// clients. Tick ends the grace period; Wake returns when to ask again.
package trust
