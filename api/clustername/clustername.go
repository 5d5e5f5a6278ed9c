// Package clustername reads and prints the names of clusters.
//
// A name is common to all tenants, as "train", or the tenant's own, as "physics.train". No tenant has a "." in its name, so a
// name is read in one way alone.
package clustername

import (
	"errors"
	"regexp"
	"strings"
)

// Bounds of names, in characters.
const (
	MaxLabel = 63             // of a tenant's name, and of each part of a cluster's
	Max      = 2*MaxLabel + 1 // of a cluster's name
	pattern  = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	Pattern  = `^` + pattern + `(\.` + pattern + `)?$` // of a cluster's name, as JSON Schema has it
)

// What is right, for errors.
const (
	LabelForm = "1 to 63 lower-case letters, digits and hyphens"
	Form      = LabelForm + "; a tenant's own name is TENANT.NAME"
)

var label = regexp.MustCompile(`^` + pattern + `$`)

// IsLabel reports whether s is a name without a ".": that of a tenant, of a set or a common one of a cluster.
func IsLabel(s string) bool { return label.MatchString(s) }

// ErrForm is that a text is no name of a cluster. The text may be of any length and is not in it.
var ErrForm = errors.New("not a name of a cluster: want " + Form)

// Name is the name of a cluster. The zero value is none.
type Name struct {
	Tenant string // whose own name it is; "": common to all tenants
	Own    string // the name within the tenant, or the common one
}

// Parse reads a name. The error is ErrForm.
func Parse(s string) (Name, error) {
	if len(s) > Max {
		return Name{}, ErrForm
	}
	tenant, own, dotted := strings.Cut(s, ".")
	if !dotted {
		tenant, own = "", s
	}
	if dotted && !IsLabel(tenant) || !IsLabel(own) {
		return Name{}, ErrForm
	}
	return Name{tenant, own}, nil
}

// String returns the full name, as Parse reads it.
func (n Name) String() string {
	if n.Tenant == "" {
		return n.Own
	}
	return n.Tenant + "." + n.Own
}

// Of returns the tenant's own name for the same cluster.
func (n Name) Of(tenant string) Name { return Name{tenant, n.Own} }

// Twin returns the other name that a credential of the tenant would mean by n.Own: a tenant has a cluster of one of the two alone.
func (n Name) Twin(tenant string) Name {
	if n.Tenant == "" {
		return n.Of(tenant)
	}
	return Name{Own: n.Own}
}
