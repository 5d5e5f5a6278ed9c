package register

import "fmt"

// MCCError is why a component was refused.
type MCCError uint8

// Errors. Others are not known, and never mean that all is well.
const (
	MCCOK                    MCCError = 0x0
	MCCFailed                MCCError = 0x1
	RejectedDigest           MCCError = 0x2
	RejectedNotApplicable    MCCError = 0x3
	RejectedUnknownKey       MCCError = 0x4
	RejectedAuthFailed       MCCError = 0x5
	RejectedUnsigned         MCCError = 0x6
	RejectedKeyNotApplicable MCCError = 0x7
	RejectedBadFormat        MCCError = 0x8
	BlockedPendingReset      MCCError = 0x9
	RejectedNotSecuredFW     MCCError = 0xA
	RejectedForbiddenVersion MCCError = 0xF
	RejectedSecurityVersion  MCCError = 0x19
	RejectedDevImage         MCCError = 0x32
)

func (e MCCError) String() string {
	switch e {
	case MCCOK:
		return "ok"
	case MCCFailed:
		return "error"
	case RejectedDigest:
		return "the digest is wrong"
	case RejectedNotApplicable:
		return "not for this device"
	case RejectedUnknownKey:
		return "the key is not known"
	case RejectedAuthFailed:
		return "the signature is wrong"
	case RejectedUnsigned:
		return "not signed"
	case RejectedKeyNotApplicable:
		return "the key may not sign this"
	case RejectedBadFormat:
		return "bad format"
	case BlockedPendingReset:
		return "blocked until a reset"
	case RejectedNotSecuredFW:
		return "not secure firmware"
	case RejectedForbiddenVersion:
		return "the version is forbidden"
	case RejectedSecurityVersion:
		return "the security version is too low"
	case RejectedDevImage:
		return "a development image on a production device"
	}
	return fmt.Sprintf("error 0x%02X", uint8(e))
}
