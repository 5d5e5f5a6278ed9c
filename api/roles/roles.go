// Package roles is the table of what each role of a credential may do at the API.
//
// Every operation is in one group, and a group names its roles. What is not in the table is refused. Which objects a credential
// reaches within its role is its scope, about which this package knows nothing.
package roles

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what a credential was made for.
type Role string

// Roles.
const (
	Viewer        Role = "viewer"         // reads everything
	Tenant        Role = "tenant"         // sees what tenants of its own have, and releases its hosts
	Scheduler     Role = "scheduler"      // makes tenants and clusters, assigns and releases hosts
	Operator      Role = "operator"       // does everything
	SecurityAdmin Role = "security-admin" // decides about keys, reference values and what hosts claim
	Approver      Role = "approver"       // is the second person
	Auditor       Role = "auditor"        // reads everything, and verifies backups
)

// All returns the roles, in the order of the documents.
func All() []Role {
	return []Role{Viewer, Tenant, Scheduler, Operator, SecurityAdmin, Approver, Auditor}
}

// UnmarshalText accepts the known roles only.
func (r *Role) UnmarshalText(b []byte) error {
	if got := Role(b); slices.Contains(All(), got) {
		*r = got
		return nil
	}
	return fmt.Errorf("role %q: want %s", b, OneOf(All()))
}

// OneOf lists roles as a sentence does: "viewer, scheduler or operator".
func OneOf(list []Role) string {
	var out strings.Builder
	for i, r := range list {
		switch {
		case i == 0:
		case i == len(list)-1:
			out.WriteString(" or ")
		default:
			out.WriteString(", ")
		}
		out.WriteString(string(r))
	}
	return out.String()
}

// Allows reports whether a credential of role r may use an operation, which is named by its id in the OpenAPI document or by
// Metrics, Conditions or UFM.
func Allows(r Role, operation string) bool { return slices.Contains(Of(operation), r) }

// Of returns the roles that may use an operation, none for one that is not in the table or asks for no operator's credential.
func Of(operation string) []Role {
	if g := byOperation[operation]; g != nil {
		return g.Roles
	}
	return nil
}

// byOperation has the group of each operation.
var byOperation = index()

func index() map[string]*Group {
	out := map[string]*Group{}
	for i := range table {
		for _, operation := range table[i].Operations {
			out[operation] = &table[i]
		}
	}
	return out
}
