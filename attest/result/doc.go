// Package result is the attestation result of a host, for parties who trust the service but do not query it: claims, their
// canonical encoding, and the checks of a relying party.
//
// A result is an EAT (RFC 9711) of the profile Profile, whose claims are those of EAT Attestation Results
// (draft-ietf-rats-ear, since revision 03) with the trustworthiness vector of AR4SI (draft-ietf-rats-ar4si): one appraisal
// of the platform, which is TPM and measured boot, and one of each adapter. Package token signs and verifies it.
// docs/reference/evidence.md has every claim.
//
// This package reads no clock, no file and no random source.
package result
