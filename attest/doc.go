// Package attest decides whether a host's TPM evidence is trusted.
//
// The host proves with its TPM 2.0 which host it is, which InfiniBand HCA GUIDs it has, which firmware and locks these
// have, and in which boot it said so. The roles are those of RFC 9334: the agent is the attester, this package the
// verifier, package admission the relying party. The exchange is three requests, the first two on one TLS connection;
// docs/reference/evidence.md has every byte of it:
//
//	agent      -> SessionRequest   host id, EK certificate, what was measured, two keys
//	Begin      -> Session          credential for the first key, nonce, PCR list
//	agent      -> Evidence         statement, quote, second key certified, PCRs, proof
//	Verify     -> Verdict          accepted with Facts, or refused with a Reason
//	BeginSeal  -> Seal             second nonce
//	agent      -> SealEvidence     quote by the second key, which signs once nothing
//	                               more can be attested in this boot
//	VerifySeal                     the same boot, the same registers but for the cap
//
// All of it is pure: no I/O and no clock, and randomness is passed in. Everything is closed by default: no policy, no
// roots, no inventory, no reference values or an unknown value means refused. Other packages decide what a verdict grants.
//
// Section numbers in comments are those of the TPM 2.0 Library Specification, revision 1.64, and of the TCG EK Credential
// Profile 2.5.
package attest
