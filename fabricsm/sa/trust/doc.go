// Package trust decides which requests to subnet administration are answered at all:
// by the SA_Key that they show, by where they come from, by what they ask, and by how
// much their owner has registered already. It answers nothing: what it refuses is
// dropped without a word, counted, and told of.
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
// Requests are checked, and nothing else: an ACK or ABORT of RMPP belongs to its
// session, and the ACK of a trusted client shows no key.
//
// # Standard and enhanced trust
//
// A request with the SA_Key is trusted, one with zero is not, and one with anything
// else is dropped. Under the enhanced trust model an untrusted request is dropped too
// unless it stands in a short table (see Options.Model). Limits of registrations, and
// names that are reserved, bind untrusted requests under either.
//
// # The SA_Key
//
// Keys holds the one in force and, for a grace, the one before. Its owner asks Next
// whether another is wanted, draws it from a source of keys.Source, calls Rotate, saves
// the facts of State, and only then gives the new key to those who are to be trusted.
// Tick ends the grace; Wake says when to ask again.
package trust
