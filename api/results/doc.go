// Package results signs attestation results with keys of the service, which package
// keyring keeps, and publishes their public halves.
//
// A token says what is recorded about a host. It opens nothing here: no route takes it.
package results
