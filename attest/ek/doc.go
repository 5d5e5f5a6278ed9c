// Package ek checks endorsement keys (EKs): the certificate a TPM vendor gave,
// the key in it, and the template that key must have.
//
// It needs no TPM. From the certified key and the template it rebuilds the
// EK's public area byte for byte (TCG EK Credential Profile, annex B), so that
// nothing about the EK but its certificate is taken from a host, and makes
// credentials that only the TPM holding the EK can open.
package ek
