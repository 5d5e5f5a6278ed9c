package credential

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"portcullis/api/clustername"
	"portcullis/api/roles"
)

// MaxTenants bounds the tenants of one credential.
const MaxTenants = 64

// CheckTenants returns what is wrong with the tenants of a credential.
func CheckTenants(names []string) error {
	if len(names) == 0 || len(names) > MaxTenants {
		return fmt.Errorf("%d tenants: want 1 to %d, each by its name", len(names), MaxTenants)
	}
	for _, n := range names {
		if !clustername.IsLabel(n) {
			return fmt.Errorf("%.64q is no name of a tenant: want "+clustername.LabelForm, n)
		}
	}
	return nil
}

// tenants reads the tenants of a token. The role tenant needs some, and no other role has any.
func (p *Principal) tenants(n *yaml.Node) error {
	switch {
	case n.IsZero() && p.Role == roles.Tenant:
		return errors.New("tenants is missing: the role tenant needs a list of names, such as [acme]")
	case n.IsZero():
		return nil
	case p.Role != roles.Tenant:
		return errors.New("tenants is for the role tenant alone: the other roles are about more than the objects of tenants")
	case p.PKeys != nil || len(p.Hosts) > 0:
		return errors.New("tenants says what the token has to do with: leave p_keys and hosts out")
	}
	if err := n.Decode(&p.Tenants); err != nil {
		return fmt.Errorf("tenants: %w", err)
	}
	slices.Sort(p.Tenants)
	p.Tenants = slices.Compact(p.Tenants)
	if err := CheckTenants(p.Tenants); err != nil {
		return fmt.Errorf("tenants: %w", err)
	}
	return nil
}
