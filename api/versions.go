package api

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "portcullis/api/v1"
)

// versionRule says how an operation that changes something treats the version of its object, which its ETag names.
type versionRule uint8

// Rules of versions. Operations that read have none.
const (
	makesNew     versionRule = iota + 1 // there is no earlier version of what it makes
	hasNone                             // what it changes has no version
	mayName                             // If-Match is compared when it is sent
	mustName                            // it takes away from a host, tenant or cluster, and is refused without If-Match
	neverDemands                        // an emergency cut: If-Match is compared when it is sent, and never demanded
)

// compares reports whether an operation compares If-Match.
func (v versionRule) compares() bool { return v >= mayName }

// versionRules has the rule of each operation that does more than read, by its id.
var versionRules = map[string]versionRule{
	// Hosts: the version is the number of the last assignment.
	"assign-host": mayName, "release-host": mustName, "remove-host": mustName, "fence-host": neverDemands,
	"acknowledge-tpm-clear": mayName, "resolve-guid-conflict": mayName,
	"attestation-result": hasNone, // it signs what is there

	// Tenants and clusters: a later object of the same name has another version. That of a tenant changes with its quota, which
	// takes nothing away.
	"create-tenant": makesNew, "delete-tenant": mustName, "set-tenant-quota": mayName,
	"create-cluster": makesNew, "delete-cluster": mustName, "use-cluster": mayName, "stop-using-cluster": mustName,

	// Labels: the version is that of the labels alone.
	"label-host": mayName, "label-cluster": mayName, "label-tenant": mayName,

	"make-plan": hasNone, // it compares

	// The declared topology: the version changes with each step.
	"draft-topospec-revision": makesNew, "draft-topospec-from-inventory": makesNew, "approve-topospec-revision": mayName, "reject-topospec-revision": mayName,
	"activate-topospec-revision": mayName, "rollback-topospec": mayName,
	"validate-topospec-revision": hasNone, "simulate-topospec-revision": hasNone, // they report

	// Sessions of a host: each has an id of its own, and its evidence and seal are accepted once.
	"open-session": makesNew, "submit-evidence": hasNone, "submit-seal": hasNone, "renew-seal": hasNone,

	// Tickets: a decision names its ticket, which is used once.
	"start-rma": makesNew, "confirm-rma": hasNone, "cancel-rma": hasNone, "confirm-repair": hasNone, "cancel-repair": hasNone,

	// Adoptions: who confirms names the digest, and who ends says how many memberships.
	"start-adoption": makesNew, "confirm-adoption": hasNone, "end-adoption": hasNone,

	// Reference values: the path has the version, and what it names never changes.
	"learn-reference": makesNew, "waive-reference": makesNew, "approve-reference": hasNone, "expire-reference": hasNone,

	// Locks: the order names the adapter, and a lock its epoch.
	"order-locks": hasNone, "report-locks": hasNone, "release-lock": hasNone, "retain-lock": hasNone,

	// The inventory is compared with all that is there, as a whole.
	"import-inventory": hasNone, "remove-equipment": hasNone,

	// Settings and records of the service, which have no version.
	"release-brake": hasNone, "set-clock": hasNone, "accept-audit-break": hasNone,
	"rotate-host-authority": hasNone, "rotate-result-key": hasNone, "rotate-receipt-key": hasNone,
	"approve-review": hasNone, "reject-review": hasNone, "end-review": hasNone,
	"create-backup": makesNew, "stream-backup": makesNew, "verify-backup": hasNone,
	"replay-dead-letters": hasNone, "test-webhook": hasNone,

	// The fabric as it is seen, and its keys, which have no version.
	"forget-unseen": hasNone, "step-down": hasNone, "mark-health": hasNone,
	"verify-isolation": hasNone, // it changes nothing
	"begin-inquiry":    makesNew, "ask-inquiry": hasNone, "end-inquiry": hasNone,
	"issue-receipt": hasNone, // it signs what is there
	"release-keys":  hasNone, "move-key": hasNone, "get-sealed-keys": hasNone,
	"lend-key": hasNone, "lend-sa-key": hasNone, "retire-keys": hasNone, "record-rehearsal": hasNone,
}

// documentDemand says in the document that an operation is refused without If-Match.
func documentDemand(_ *huma.OpenAPI, op *huma.Operation) {
	if versionRules[op.OperationID] != mustName {
		return
	}
	for _, p := range op.Parameters {
		if p.Name == "If-Match" {
			p.Required, p.Description = true, "versions of the object that the request is for, as ETag has them; *: any"
			p.Schema.Description = p.Description
		}
	}
}

// versionMissing refuses a request that takes something away, and does not say of which version of the object.
func versionMissing(r *http.Request) *problem {
	return newProblem(http.StatusPreconditionRequired, v1.CodeVersionMissing,
		"the request takes something away, and has no If-Match that says which version of the object it means; nothing was done",
		"GET "+objectOf(r)+` and send its ETag, such as If-Match: "7"; If-Match: * means the object as it is when the request arrives`)
}

// objectOf returns the path of the object that a request changes: /v1, its kind and its name.
func objectOf(r *http.Request) string {
	parts := strings.SplitN(r.URL.EscapedPath(), "/", 5)
	return strings.Join(parts[:min(len(parts), 4)], "/")
}
