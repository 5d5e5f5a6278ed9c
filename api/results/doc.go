// Package results signs attestation results with keys of the service, publishes their
// public halves, and rotates them.
//
// All keys stand in one record of the store, so that every service over it signs by the
// same ones and publishes the same ones. Their private halves are sealed in a vault of
// their own, whose root stands outside the store: a stolen disk or backup signs nothing.
// A key is published some time before it signs, because relying parties keep what they
// got for a while, and for as long after as a token of it may count.
//
// A token says what is recorded about a host. It opens nothing here: no route takes it.
package results
