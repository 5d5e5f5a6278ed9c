// Package drills plays the threats that are about who may ask the service for what:
// the API with its credentials, admission over a store in memory, and the Subnet
// Manager of package stage under it, all in one goroutine and in virtual time. All
// gives those together with the drills of the fabric alone.
//
// What the drills leave out is attestation: hosts count as attested. Evidence has
// threats of its own.
package drills
