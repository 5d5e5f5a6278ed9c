package events

import (
	"slices"

	"portcullis/attest"
)

// Types of events. They do not change from release to release.
const (
	LockChanged      = "lock.changed"
	LockUnlockFailed = "lock.unlock-failed"
	LockFailed       = "lock.failed"
	LockUnlockGiven  = "lock.unlock-given"
	LockRelocked     = "lock.relocked"
	LockEpochSkipped = "lock.epoch-skipped"
	EvidenceOutdated = "evidence.outdated"
	EvidenceCurrent  = "evidence.current"
	GUIDConflict     = "guid.conflict"
	CertificateEnds  = "certificate.ends"
	AuditBroken      = "audit.broken"
	AuditWhole       = "audit.whole"
	BrakeEngaged     = "admission.brake"
	BrakeEnded       = "admission.brake-ended"
	FabricBlind      = "fabric.blind"
	FabricSeen       = "fabric.seen"
	StateRolledBack  = "state.rolled-back"
	AnchorsFailing   = "anchors.failing"
	AnchorsWritten   = "anchors.written"
	StoreRoom        = "store.room"
	StoreShort       = "store.short"
	TokenEnds        = "token.ends"
	ClockJump        = "clock.jump"
	ClockSteady      = "clock.steady"
)

// Severities, the least first.
const (
	Info     = "info"
	Notice   = "notice"
	Warning  = "warning"
	Critical = "critical"
)

// The source of an event.
const (
	ByEvidence = "evidence" // a TPM vouched for it, from a boot that is trusted
	ByHost     = "host"     // a host's word, from a boot that was: nothing follows from it
	ByService  = "service"  // this service did it, or found it out
)

// Kind is a type of event.
type Kind struct {
	Type, Severity string
	What           string   // what happened
	Causes         []string // which there are
	// often: hosts cause it, so the audit log and the journal record the 1st, 2nd, 5th, 10th, 20th and so on, and the first
	// after a day.
	often bool
	// about names what it is about, where that is no host.
	about string
}

// Kinds lists all types there are, by name.
func Kinds() []Kind {
	return []Kind{
		{GUIDConflict, Critical, "evidence of a host has a GUID that inventory has for another one", []string{"claims", "claimed"}, false, ""},
		{BrakeEngaged, Critical, "many hosts would lose memberships by themselves, and keep them until an operator decides", []string{"evidence", "place"}, false, "admission"},
		{BrakeEnded, Notice, "no host keeps memberships that automatic causes would take any more, or an operator had them go on", []string{"ended", "released"}, false, "admission"},
		{AnchorsFailing, Warning, "heads of the audit log cannot be anchored outside of the store", []string{"file", "syslog", "webhook"}, false, "anchors"},
		{AnchorsWritten, Notice, "heads of the audit log are anchored again", []string{"file", "syslog", "webhook"}, false, "anchors"},
		{AuditBroken, Critical, "the audit log is not what was written, or not what was verified before", []string{"altered", "cut", "rolled-back"}, false, "audit"},
		{AuditWhole, Notice, "the audit log is whole again", []string{"verified"}, false, "audit"},
		{CertificateEnds, Warning, "the TLS certificate of the API ends soon, or has ended", []string{"soon", "ended"}, false, "certificate"},
		{ClockJump, Critical, "the clock of a machine was set, or is not that of other instances: while it is behind the highest time seen, or contradicted, nothing new is granted", []string{"back", "ahead"}, true, "clock"},
		{ClockSteady, Notice, "the clock is believed again, or an operator set the recorded time", []string{"caught-up", "set"}, true, "clock"},
		{FabricBlind, Critical, "the subnet manager does not see what it knew", []string{"own-port", "adapter", "alone", "nodes"}, false, "fabric"},
		{FabricSeen, Notice, "the subnet manager sees what it knew again, or an operator held the rest for gone", []string{"back", "accepted"}, false, "fabric"},
		{EvidenceCurrent, Info, "what accepted evidence was judged by has changed", attest.LapseCauses(), false, ""},
		{EvidenceOutdated, Warning, "evidence that was accepted no longer meets policy", attest.LapseCauses(), false, ""},
		{LockChanged, Critical, "a lock, or a setting under it, is not as it was last proven", []string{"unlocked", "epoch", "method", "file", "value"}, true, ""},
		{LockEpochSkipped, Notice, "a key was given out and never proven, and the next one is", []string{"skipped", "repeated"}, true, ""},
		{LockFailed, Warning, "the agent could not lock an adapter", []string{"unreadable", "refused", "not-compliant", "reset", "firewall", "not-held", "challenge", "order"}, true, ""},
		{LockRelocked, Info, "evidence showed the next lock of an adapter", []string{"proven"}, true, ""},
		{LockUnlockFailed, Warning, "an adapter does not open with the keys that the service has for it", []string{"foreign", "out-of-band", "not-ours"}, true, ""},
		{LockUnlockGiven, Notice, "an agent received the keys to open an adapter permanently, as an operator decided", []string{"release"}, false, ""},
		{StateRolledBack, Critical, "the audit log is not what was anchored of it: an older state was put in place of a newer one", []string{"shorter", "differs", "branch"}, false, "state"},
		{StoreRoom, Notice, "the store has room again", []string{"room"}, false, "store"},
		{StoreShort, Warning, "the store runs short of room", []string{"soon", "removals"}, false, "store"},
		{TokenEnds, Warning, "operator tokens end soon, or have ended", []string{"soon", "ended"}, false, "tokens"},
	}
}

// KindOf finds a type.
func KindOf(name string) (Kind, bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Type == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}
