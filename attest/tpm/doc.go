// Package tpm is the host's side of attestation: it makes the keys in the
// TPM, activates the service's credential, measures the statement, quotes.
//
// Keys are never stored. Each provisioning run creates the EK from its
// template and a fresh attestation key below it, and flushes both at the end;
// a TPM behind no resource manager has room for three objects only.
package tpm
