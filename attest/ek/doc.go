// Package ek checks endorsement keys (EKs): the certificate that a TPM vendor issued, the key in it, and the template that
// key must have.
//
// It needs no TPM. From the certified key and the template it rebuilds the EK's public area byte for byte (TCG EK
// Credential Profile, annex B). So it takes nothing about the EK from a host except the certificate. It makes credentials
// that only the TPM holding the EK can open.
package ek
