// Package rules says of each operation of the API, by its id, which guards hold for it whatever a request says: how it treats
// the version of its object, and in which states of the service it is refused. It decides nothing about a request.
package rules

import (
	"maps"
	"slices"
)

// Version says how an operation that changes something treats the version of its object, which its ETag names.
type Version uint8

// Rules of versions. Operations that read have none.
const (
	MakesNew     Version = iota + 1 // there is no earlier version of what it makes
	HasNone                         // what it changes has no version
	MayName                         // If-Match is compared when it is sent
	MustName                        // it takes away from a host, tenant or cluster, and is refused without If-Match
	NeverDemands                    // an emergency cut: If-Match is compared when it is sent, and never demanded
)

// Compares reports whether an operation compares If-Match.
func (v Version) Compares() bool { return v >= MayName }

// versions has the rule of each operation that does more than read, by its id.
var versions = map[string]Version{
	// Hosts: the version is the number of the last assignment.
	"assign-host": MayName, "release-host": MustName, "remove-host": MustName, "fence-host": NeverDemands,
	"acknowledge-tpm-clear": MayName, "resolve-guid-conflict": MayName,
	"attestation-result": HasNone,                           // it signs what is there
	"assign-hosts":       HasNone, "release-hosts": HasNone, // each host of the body has its version

	// Tenants and clusters: a later object of the same name has another version. That of a tenant changes with its quota, which
	// takes nothing away.
	"create-tenant": MakesNew, "delete-tenant": MustName, "set-tenant-quota": MayName,
	"create-cluster": MakesNew, "delete-cluster": MustName, "use-cluster": MayName, "stop-using-cluster": MustName,

	// Labels: the version is that of the labels alone.
	"label-host": MayName, "label-cluster": MayName, "label-tenant": MayName,

	"make-plan": HasNone, // it Compares

	// The declared topology: the version changes with each step.
	"draft-topospec-revision": MakesNew, "draft-topospec-from-inventory": MakesNew, "approve-topospec-revision": MayName, "reject-topospec-revision": MayName,
	"activate-topospec-revision": MayName, "rollback-topospec": MayName,
	"validate-topospec-revision": HasNone, "simulate-topospec-revision": HasNone, // they report

	// Sessions of a host: each has an id of its own, and its evidence and seal are accepted once.
	"open-session": MakesNew, "submit-evidence": HasNone, "submit-seal": HasNone, "renew-seal": HasNone,

	// Tickets: a decision names its ticket, which is used once.
	"start-rma": MakesNew, "confirm-rma": HasNone, "cancel-rma": HasNone, "confirm-repair": HasNone, "cancel-repair": HasNone,

	// Adoptions: who confirms names the digest, and who ends says how many memberships.
	"start-adoption": MakesNew, "confirm-adoption": HasNone, "end-adoption": HasNone,

	// Reference values: the path has the version, and what it names never changes.
	"learn-reference": MakesNew, "waive-reference": MakesNew, "approve-reference": HasNone, "expire-reference": HasNone,

	// Locks: the order names the adapter, and a lock its epoch.
	"order-locks": HasNone, "report-locks": HasNone, "release-lock": HasNone, "retain-lock": HasNone,

	// The inventory is compared with all that is there, as a whole.
	"import-inventory": HasNone, "remove-equipment": HasNone,

	// Settings and records of the service, which have no version.
	"release-brake": HasNone, "set-clock": HasNone, "accept-audit-break": HasNone,
	"rotate-host-authority": HasNone, "rotate-result-key": HasNone, "rotate-receipt-key": HasNone,
	"approve-review": HasNone, "reject-review": HasNone, "end-review": HasNone,
	"create-backup": MakesNew, "stream-backup": MakesNew, "verify-backup": HasNone,
	"replay-dead-letters": HasNone, "test-webhook": HasNone,

	// The fabric as it is seen, and its keys, which have no version.
	"forget-unseen": HasNone, "step-down": HasNone, "mark-health": HasNone,
	"verify-isolation": HasNone, // it changes nothing
	"begin-inquiry":    MakesNew, "ask-inquiry": HasNone, "end-inquiry": HasNone,
	"issue-receipt": HasNone, // it signs what is there
	"release-keys":  HasNone, "move-key": HasNone, "get-sealed-keys": HasNone,
	"lend-key": HasNone, "lend-sa-key": HasNone, "retire-keys": HasNone, "record-rehearsal": HasNone,
}

// VersionOf returns the rule of an operation, 0 for one that only reads.
func VersionOf(id string) Version { return versions[id] }

// Versions returns the rule of each operation that does more than read, by its id.
func Versions() map[string]Version { return maps.Clone(versions) }

// growing are the operations that add records which stay. A store that is short of room
// refuses them and takes all others, so that removals are still recorded.
var growing = []string{
	"import-inventory", "open-session", "submit-evidence", "assign-host", "assign-hosts", "create-tenant", "create-cluster", "use-cluster",
	"label-host", "label-cluster", "label-tenant",
	"learn-reference", "waive-reference", "draft-topospec-revision", "draft-topospec-from-inventory", "start-rma",
}

// Grows reports whether an operation adds records which stay.
func Grows(id string) bool { return slices.Contains(growing, id) }

// granting are the operations that grant something, or begin what a time ends. They are refused while the clock is
// not believed; all others go on, removals among them.
var granting = []string{
	"open-session", "submit-evidence", "submit-seal", "renew-seal", "order-locks", "assign-host", "assign-hosts", "use-cluster",
	"waive-reference", "approve-reference", "confirm-repair", "confirm-rma", "approve-review",
}

// Grants reports whether an operation grants something, or begins what a time ends.
func Grants(id string) bool { return slices.Contains(granting, id) }

// Classes of operations of which a site may demand a reason.
const (
	TakeAway = "take-away" // it takes something away from a host, tenant or cluster, or has that happen
	Approve  = "approve"   // it decides as the second person
	Change   = "change"    // it changes something, or uses a key
)

// Classes returns the classes, the smallest first.
func Classes() []string { return []string{Approve, TakeAway, Change} }

// takesAway are the operations of TakeAway.
var takesAway = []string{
	"release-host", "release-hosts", "remove-host", "fence-host", "delete-tenant", "delete-cluster", "stop-using-cluster", "end-adoption", "remove-equipment",
	"release-lock", "release-brake", "expire-reference", "forget-unseen", "reject-review", "end-review", "retire-keys", "mark-health",
	"activate-topospec-revision", "rollback-topospec",
	// As the second person: what was granted at the old switch ends, and the TPM that was replaced is denied.
	"confirm-rma", "confirm-repair",
	// Keys of before may be revoked, and with them what they signed.
	"rotate-host-authority", "rotate-result-key", "rotate-receipt-key",
}

// approves are the operations of Approve.
var approves = []string{
	"approve-topospec-revision", "reject-topospec-revision", "confirm-repair", "confirm-rma", "approve-reference", "approve-review", "reject-review",
	"confirm-adoption",
}

// reports are the operations that have a rule of versions and change nothing: they compare, sign what is there, or are a part of
// what began with a reason.
var reports = []string{
	"make-plan", "validate-topospec-revision", "simulate-topospec-revision", "attestation-result", "issue-receipt", "verify-isolation", "verify-backup",
	"ask-inquiry", "end-inquiry",
}

// TakesAway reports whether an operation takes something away.
func TakesAway(id string) bool { return slices.Contains(takesAway, id) }

// DemandsReason reports whether a site that demands reasons of these classes demands one of an operation.
func DemandsReason(classes []string, id string) bool {
	return slices.ContainsFunc(classes, func(class string) bool {
		switch class {
		case TakeAway:
			return TakesAway(id)
		case Approve:
			return slices.Contains(approves, id)
		case Change:
			return versions[id] != 0 && !slices.Contains(reports, id)
		}
		return false
	})
}
