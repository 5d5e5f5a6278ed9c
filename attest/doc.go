// Package attest decides whether a host's TPM evidence is to be believed.
//
// The host proves with its TPM 2.0 which host it is, which InfiniBand HCA
// GUIDs it has, and in which boot it said so. The roles are those of RFC 9334:
// the agent is the attester, this package the verifier, package admission the
// relying party. The exchange is two requests on one TLS connection:
//
//	agent  -> SessionRequest   host id, EK certificate, AK public area
//	Begin  -> Session          credential for that AK, nonce, PCR list
//	agent  -> Evidence         statement, quote, PCR values, proof
//	Verify -> Verdict          accepted with Facts, or refused with a Reason
//
// Begin and Verify are pure: no I/O and no clock, and randomness is passed in.
// Everything is closed by default: no policy, no roots, no inventory or an
// unknown value means refused. What a verdict grants is decided elsewhere.
//
// Section numbers in comments are those of the TPM 2.0 Library Specification,
// revision 1.64, and of the TCG EK Credential Profile 2.5.
package attest
