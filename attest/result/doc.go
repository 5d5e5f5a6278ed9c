// Package result is the attestation result of a host, for parties who trust the
// service and ask it nothing: claims, their canonical encoding, and what a relying
// party checks in them.
//
// A result is an EAT (RFC 9711) of the profile Profile, whose claims are those of EAT
// Attestation Results (draft-ietf-rats-ear, since revision 03) with the trustworthiness
// vector of AR4SI (draft-ietf-rats-ar4si): one appraisal of the platform, which is TPM
// and measured boot, and one of each adapter. Package token signs and verifies it.
// docs/evidence.md has every claim.
//
// Nothing here reads a clock, a file or a random source.
package result
