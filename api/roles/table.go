package roles

import "slices"

// Operations that the OpenAPI document does not have.
const (
	Metrics    = "get-metrics"    // GET /metrics and /metrics/fabric
	Conditions = "get-conditions" // the details of GET /readyz
	UFM        = "get-ufm"        // what the surface of UFM shows, of the whole fabric
)

// Group is a row of the table: operations that the same roles may use.
type Group struct {
	Name       string
	Does       string // in a sentence for the documents
	Roles      []Role // none: no operator's credential is asked
	Operations []string
}

// Table returns the groups.
func Table() []Group { return slices.Clone(table) }

var table = []Group{
	{
		Name: "public", Does: "answers any caller",
		Operations: []string{
			"list-logins", "result-jwks", "list-receipt-keys", "receipt-log-checkpoint", "receipt-log-proof", "receipt-log-consistency", "receipt-log-tile",
		},
	},
	{
		Name: "agent", Does: "is for agents of hosts, which prove themselves",
		Operations: []string{"open-session", "submit-evidence", "submit-seal", "renew-seal", "attest-status", "order-locks", "report-locks"},
	},
	{
		Name: "see-hosts", Does: "shows tenants, clusters and hosts, and how they differ from what is wanted",
		Roles:      []Role{Viewer, Tenant, Scheduler, Operator, SecurityAdmin, Approver, Auditor},
		Operations: []string{"list-tenants", "get-tenant", "list-clusters", "get-cluster", "list-hosts", "get-host", "watch-host", "make-plan", "get-tenant-labels", "get-cluster-labels"},
	},
	{
		Name: "see-site", Does: "shows inventory, topology, fabric, locks, reference values, events and the state of the service",
		Roles: []Role{Viewer, Scheduler, Operator, SecurityAdmin, Approver, Auditor},
		Operations: []string{
			"list-quarantined-pkeys", "list-events", "watch-events", "list-webhooks", "list-dead-letters",
			"get-host-labels", "get-brakes", "get-clock", Metrics, Conditions, UFM,
			"list-racks", "get-rack", "list-switches", "get-switch", "list-cables", "list-spares", "list-repairs", "get-repair",
			"list-denied-eks", "check-inventory", "export-inventory",
			"get-topospec", "list-topospec-revisions", "get-topospec-revision", "get-topospec-content", "list-rma", "get-rma",
			"get-fabric", "get-sm", "get-progress", "get-overview", "list-differing", "list-health", "list-violations",
			"list-nodes", "list-ports", "list-links", "list-load", "get-routes", "get-history", "get-past", "list-changes", "list-tables", "get-table", "dump-fabric",
			"get-sa", "list-groups", "list-members", "list-services", "list-subscriptions", "list-aliases",
			"get-keys", "list-keys", "list-locks", "get-lock", "list-references", "get-reference", "diff-reference",
			"list-host-authorities", "list-result-keys",
		},
	},
	{
		Name: "see-itself", Does: "shows the credential of the request itself",
		Roles:      []Role{Viewer, Tenant, Scheduler, Operator, SecurityAdmin, Approver, Auditor},
		Operations: []string{"whoami"},
	},
	{
		Name: "vouch", Does: "signs for others where a host stands",
		Roles:      []Role{Viewer, Tenant, Scheduler, Operator, SecurityAdmin, Approver, Auditor},
		Operations: []string{"attestation-result"},
	},
	{
		Name: "see-audit", Does: "shows the audit log and where it is broken",
		Roles:      []Role{Viewer, Operator, SecurityAdmin, Auditor},
		Operations: []string{"list-audit", "get-audit-head", "list-audit-breaks"},
	},
	{
		Name: "see-recovery", Does: "shows which backups there are, and how a restored state differs from the fabric",
		Roles:      []Role{Viewer, Operator, SecurityAdmin, Approver, Auditor},
		Operations: []string{"list-backups", "get-review"},
	},
	{
		Name: "see-adoptions", Does: "shows which memberships are kept though nothing is proven of their hosts",
		Roles:      []Role{Viewer, Operator, SecurityAdmin, Approver, Auditor},
		Operations: []string{"list-adoptions", "get-adoption"},
	},
	{
		Name: "see-profile", Does: "compares the installation with security profiles",
		Roles:      []Role{Viewer, Operator, SecurityAdmin, Approver, Auditor},
		Operations: []string{"get-profile"},
	},
	{
		Name: "tenants", Does: "creates and deletes tenants",
		Roles:      []Role{Scheduler, Operator},
		Operations: []string{"create-tenant", "delete-tenant"},
	},
	{
		Name: "quotas", Does: "bounds how many hosts, clusters and P_Keys a tenant may have",
		Roles:      []Role{Operator},
		Operations: []string{"set-tenant-quota"},
	},
	{
		Name: "clusters", Does: "creates and deletes clusters; the role tenant those of its tenants' own names, within their quotas",
		Roles:      []Role{Tenant, Scheduler, Operator},
		Operations: []string{"create-cluster", "delete-cluster"},
	},
	{
		Name: "sharing", Does: "has clusters use shared ones",
		Roles:      []Role{Scheduler, Operator},
		Operations: []string{"use-cluster", "stop-using-cluster"},
	},
	{
		Name: "labels", Does: "labels tenants, clusters and hosts",
		Roles:      []Role{Scheduler, Operator},
		Operations: []string{"label-tenant", "label-cluster", "label-host"},
	},
	{
		Name: "placement", Does: "assigns hosts to clusters",
		Roles:      []Role{Scheduler, Operator},
		Operations: []string{"assign-host", "assign-hosts"},
	},
	{
		Name: "release", Does: "releases hosts from their clusters",
		Roles:      []Role{Tenant, Scheduler, Operator},
		Operations: []string{"release-host", "release-hosts"},
	},
	{
		Name: "inventory", Does: "changes the inventory, and starts and cancels repairs and replacements",
		Roles:      []Role{Operator},
		Operations: []string{"import-inventory", "remove-equipment", "remove-host", "cancel-repair", "start-rma", "cancel-rma"},
	},
	{
		Name: "topology", Does: "drafts, tests, activates and rolls back the declared topology",
		Roles: []Role{Operator},
		Operations: []string{
			"draft-topospec-revision", "draft-topospec-from-inventory", "validate-topospec-revision", "simulate-topospec-revision",
			"activate-topospec-revision", "rollback-topospec",
		},
	},
	{
		Name: "fabric", Does: "runs the fabric: fences, health, nodes out of sight, the brake, the leader, adapters that leave",
		Roles:      []Role{Operator},
		Operations: []string{"fence-host", "mark-health", "forget-unseen", "release-brake", "step-down", "release-lock", "retain-lock"},
	},
	{
		Name: "approve", Does: "decides as the second person: topology, repairs, replacements, reference values, a restored state, adoptions",
		Roles: []Role{Operator, Approver},
		Operations: []string{
			"approve-topospec-revision", "reject-topospec-revision", "confirm-repair", "confirm-rma", "approve-reference",
			"approve-review", "reject-review", "confirm-adoption",
		},
	},
	{
		Name: "adopt", Does: "lists memberships to be kept before their hosts are proven, and ends that",
		Roles:      []Role{Operator, SecurityAdmin},
		Operations: []string{"start-adoption", "end-adoption"},
	},
	{
		Name: "recovery", Does: "ends the review of a restored state",
		Roles:      []Role{Operator},
		Operations: []string{"end-review"},
	},
	{
		Name: "trust", Does: "decides which boots and TPMs are trusted, and which host has a GUID",
		Roles:      []Role{Operator, SecurityAdmin},
		Operations: []string{"learn-reference", "waive-reference", "expire-reference", "acknowledge-tpm-clear", "resolve-guid-conflict"},
	},
	{
		Name: "keys", Does: "changes, lends, moves and hands out keys of devices and of the service",
		Roles: []Role{Operator, SecurityAdmin},
		Operations: []string{
			"rotate-host-authority", "rotate-result-key", "rotate-receipt-key", "release-keys", "move-key", "get-sealed-keys", "lend-key", "lend-sa-key", "retire-keys", "record-rehearsal",
		},
	},
	{
		Name: "inquiry", Does: "has diagnostic tools read devices, for a while and with the keys of these, which the tools do not see",
		Roles:      []Role{Operator, SecurityAdmin},
		Operations: []string{"begin-inquiry", "ask-inquiry", "end-inquiry"},
	},
	{
		Name: "evidence", Does: "sets the clock, and accepts a break of the audit log",
		Roles:      []Role{Operator, SecurityAdmin},
		Operations: []string{"set-clock", "accept-audit-break"},
	},
	{
		Name: "backups", Does: "makes and fetches backups, which are encrypted",
		Roles:      []Role{Operator, SecurityAdmin},
		Operations: []string{"create-backup", "stream-backup", "get-backup"},
	},
	{
		Name: "verify-isolation", Does: "has the isolation of tenants proven from the tables of devices, and reads what was found last",
		Roles:      []Role{Operator, SecurityAdmin, Auditor},
		Operations: []string{"verify-isolation", "get-isolation", "list-drift"},
	},
	{
		Name: "see-isolation", Does: "shows what was proven last of each port; the role tenant sees the ports of its own tenants",
		Roles:      []Role{Tenant, Operator, SecurityAdmin, Auditor},
		Operations: []string{"list-isolation-ports"},
	},
	{
		Name: "receipts", Does: "has the isolation of tenants proven and signed; the role tenant gets that of its own tenants",
		Roles:      []Role{Tenant, Operator, SecurityAdmin, Auditor},
		Operations: []string{"issue-receipt"},
	},
	{
		Name: "webhooks", Does: "tests webhooks, and has dead letters sent once more",
		Roles:      []Role{Operator, SecurityAdmin},
		Operations: []string{"replay-dead-letters", "test-webhook"},
	},
	{
		Name: "verify-backups", Does: "verifies backups",
		Roles:      []Role{Operator, SecurityAdmin, Auditor},
		Operations: []string{"verify-backup"},
	},
}
