package attest

import "fmt"

// Reason says why evidence was refused: one code for one cause. Codes are
// stable; they appear in audit records and host status.
type Reason string

// Reasons of Begin.
const (
	ReasonRequest   Reason = "request"     // malformed request, or a part over its size
	ReasonPolicy    Reason = "policy"      // no usable policy is configured
	ReasonHost      Reason = "host"        // the request is for another host
	ReasonInventory Reason = "inventory"   // inventory has no usable record of the host
	ReasonEKKind    Reason = "ek-kind"     // unknown EK template, or not that of the certified key
	ReasonEKParse   Reason = "ek-parse"    // the certificate cannot be read
	ReasonEKWeak    Reason = "ek-weak"     // key too short, bad exponent, ROCA, unknown curve
	ReasonEKUsage   Reason = "ek-usage"    // not an EK certificate
	ReasonEKChain   Reason = "ek-chain"    // no chain to a configured root
	ReasonEKExpired Reason = "ek-expired"  // outside its validity
	ReasonEKRevoked Reason = "ek-revoked"  // on the deny list
	ReasonEKMissing Reason = "ek-missing"  // policy demands a certificate, none was sent
	ReasonEKPin     Reason = "ek-pin"      // not the EK inventory has for this host
	ReasonEKApprove Reason = "ek-approval" // the chain is right, but no operator has confirmed the EK
	ReasonAK        Reason = "ak"          // not exactly the attestation key template with the policy of the measurements
	ReasonStart     Reason = "start"       // agent or image is not allowed, or not the one measured
)

// Reasons of Verify.
const (
	ReasonSession       Reason = "session"        // unknown, expired, used, or of another host
	ReasonChannel       Reason = "channel"        // no channel binding value although demanded
	ReasonSize          Reason = "size"           // a part over its size or count
	ReasonProof         Reason = "proof"          // the AK was not activated, or the body was altered
	ReasonParse         Reason = "parse"          // a TPM structure is not exactly one structure
	ReasonAlgorithm     Reason = "algorithm"      // not ECDSA with SHA-256
	ReasonSignature     Reason = "signature"      // does not verify with the AK
	ReasonMagic         Reason = "magic"          // not made by a TPM
	ReasonType          Reason = "type"           // an attestation of another type
	ReasonCertify       Reason = "certify"        // the first key does not certify the second
	ReasonNonce         Reason = "nonce"          // not for this session, statement and connection
	ReasonSigner        Reason = "signer"         // the AK is not a child of this EK
	ReasonSelection     Reason = "selection"      // not exactly the demanded registers
	ReasonPCRValues     Reason = "pcr-values"     // not one 32-byte value per register
	ReasonPCRDigest     Reason = "pcr-digest"     // the values are not those quoted
	ReasonDigests       Reason = "digests"        // the last statement digest is not this statement's
	ReasonAgentPCR      Reason = "agent-pcr"      // the register holds more or other than the statements
	ReasonTPM           Reason = "tpm-firmware"   // firmware of the TPM that the policy does not allow
	ReasonEventLog      Reason = "event-log"      // not the log of the statement, or not one that leads to the registers
	ReasonStatement     Reason = "statement"      // not canonical, or a field is out of its range
	ReasonStatementHost Reason = "statement-host" // the statement names another host
	ReasonStatementAge  Reason = "statement-age"  // collected too long ago, or in the future
	ReasonGUIDMismatch  Reason = "guid-mismatch"  // HCAs or ports are not those of inventory
	ReasonReference     Reason = "reference"      // no reference values of its class have this boot
	ReasonFirmware      Reason = "firmware"       // below the minimum, a board not listed, or not assured enough
	ReasonDebug         Reason = "debug-mode"     // recovery, debug firmware, or a token session
	ReasonDPU           Reason = "dpu"            // a DPU, whose own processor no evidence speaks for
	ReasonLock          Reason = "lock"           // settings or their lock are not as demanded
	ReasonUnread        Reason = "unread"         // what the policy demands to know could not be read
)

// Reasons of VerifySeal, beside those of a quote.
const (
	ReasonSeal    Reason = "seal"     // another boot, or other registers than the evidence showed
	ReasonHostKey Reason = "host-key" // a key that is not exactly the template, or not the one that was certified
)

// Reasons of BootHistory.
const (
	ReasonReplayBoot Reason = "replay-boot" // the host was handed over in this boot before
	ReasonCleared    Reason = "cleared"     // the TPM was cleared, and no operator acknowledged it
	ReasonClock      Reason = "clock"       // the TPM's clock went back in one boot
)

// Refusal is evidence or a request that was not accepted. Detail is for
// operators and audit; it must not be sent to the host.
type Refusal struct {
	Code   Reason
	Detail string
}

// Error implements error.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

func refuse(code Reason, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
}
