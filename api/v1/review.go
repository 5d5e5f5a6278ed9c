package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Review is a restored state that is compared with the fabric.
type Review struct {
	Active   bool       `json:"active" doc:"false: the state was not restored, or its review has ended"`
	Since    time.Time  `json:"since,omitzero" doc:"when it was restored or recovered, or found to be rolled back"`
	Taken    time.Time  `json:"taken,omitzero" doc:"when the backup was made; of a state that was rolled back or recovered, the time of its last audit entry"`
	Revision int64      `json:"revision,omitempty" doc:"of the store that the backup is of; 0: there is none"`
	Audit    *AuditHead `json:"audit,omitempty" doc:"last entry of the audit log in the backup"`

	RolledBack *RolledBack `json:"rolled_back,omitempty" doc:"the audit log is not what was anchored of it: an older state was put in place of a newer one"`

	Recovered []string `json:"recovered,omitempty" nullable:"false" doc:"members of the store that were lost permanently, where it was recovered from the one that was left; what they took last may be missing"`

	Agreed      int                `json:"agreed" doc:"memberships that both have; they are in force"`
	Differences []ReviewDifference `json:"differences" nullable:"false" doc:"by switch port"`
}

// RolledBack is an anchor that the audit log does not have.
type RolledBack struct {
	Found    time.Time `json:"found" doc:"when the service found that"`
	Cause    string    `json:"cause" enum:"shorter,differs,branch" doc:"shorter: the log ends before the anchor; differs: it has another entry there; branch: it lacks the decision about an earlier roll-back"`
	Source   string    `json:"source" doc:"where the anchor is"`
	Anchored time.Time `json:"anchored" doc:"when it was written"`
	Anchor   AuditHead `json:"anchor" doc:"the entry that was anchored"`
	Head     AuditHead `json:"head" doc:"last entry of the log when that was found"`
}

// ReviewDifference is a membership on which the restored state and the fabric do not agree.
type ReviewDifference struct {
	Kind       string   `json:"kind" enum:"state-only,fabric-only,other-form,unseen" doc:"state-only: the switch port does not have it, and it is not granted; fabric-only: no record explains it, and it stays; other-form: full here and limited there; unseen: no port is seen at the place"`
	Host       string   `json:"host,omitempty" doc:"none: inventory has no host there"`
	Rack       string   `json:"rack,omitempty"`
	Adapter    string   `json:"adapter,omitempty" doc:"node GUID and port number of the host's port"`
	Node       string   `json:"node,omitempty" doc:"description of the node that is seen behind the switch port"`
	GUID       ib.GUID  `json:"guid,omitzero" doc:"of the port"`
	Place      ib.Place `json:"place" doc:"switch port"`
	Switch     string   `json:"switch,omitempty" doc:"description of the switch"`
	SwitchPort uint8    `json:"switch_port"`
	PKey       ib.PKey  `json:"p_key"`
	Cluster    string   `json:"cluster,omitempty" doc:"that the restored state has for the P_Key"`
	Tenant     string   `json:"tenant,omitempty"`
	Decision   string   `json:"decision,omitempty" enum:"approved,rejected" doc:"about the host"`
}

// ReviewDecision is what an operator decides about hosts of a restored state.
type ReviewDecision struct {
	Hosts  []string `json:"hosts,omitempty" maxItems:"4096" doc:"which ones"`
	All    bool     `json:"all,omitempty" doc:"all hosts with differences that are not decided; not with hosts"`
	Reason string   `json:"reason" minLength:"1" maxLength:"256" doc:"why, for the audit log"`
}

// ReviewEnd ends a review.
type ReviewEnd struct {
	Strip  bool   `json:"strip,omitempty" doc:"P_Keys that no record explains are taken off the switch ports"`
	Reason string `json:"reason" minLength:"1" maxLength:"256" doc:"why, for the audit log"`
}
