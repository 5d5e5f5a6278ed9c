package events

import "slices"

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
	FabricForeign    = "fabric.foreign-p-keys"
	StateRolledBack  = "state.rolled-back"
	AnchorsFailing   = "anchors.failing"
	AnchorsWritten   = "anchors.written"
	StoreRoom        = "store.room"
	StoreShort       = "store.short"
	TokenEnds        = "token.ends"
	ClockJump        = "clock.jump"
	ClockSteady      = "clock.steady"
	WebhookFailing   = "webhook.failing"
	WebhookDelivers  = "webhook.delivers"
	AdoptionFound    = "adoption.found"
	AdoptionBegan    = "adoption.began"
	AdoptionDue      = "adoption.due"
	AdoptionEnded    = "adoption.ended"

	DriftFound     = "drift.found"
	DriftEnded     = "drift.ended"
	DriftFenced    = "drift.fenced"
	DriftElsewhere = "drift.elsewhere"

	IsolationLost      = "isolation.lost"
	IsolationUnproven  = "isolation.unproven"
	IsolationRegained  = "isolation.regained"
	IsolationDisclosed = "isolation.disclosed"
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

// KindOf finds a type.
func KindOf(name string) (Kind, bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Type == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}
