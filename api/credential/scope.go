package credential

import (
	"errors"
	"slices"

	"go.yaml.in/yaml/v4"

	"portcullis/api/roles"
)

// ScopeForm is the scope of a credential as files have it: a list of ranges of P_Keys, patterns of hosts, and names of tenants.
type ScopeForm struct {
	PKeys   yaml.Node // absent is another thing than empty
	Hosts   []string
	Tenants []string
}

// Scope puts a scope into p, whose role is known. An error comes with the key that it is about: p_keys, hosts or tenants.
func (p *Principal) Scope(f *ScopeForm) (key string, err error) {
	ranges, err := pkeyRanges(&f.PKeys)
	if err != nil {
		return "p_keys", err
	}
	if err := hostPatterns(f.Hosts, ranges != nil); err != nil {
		return "hosts", err
	}
	tenants := slices.Sorted(slices.Values(f.Tenants))
	tenants = slices.Compact(tenants)
	switch {
	case p.Role != roles.Tenant && len(tenants) > 0:
		return "tenants", errors.New("is for the role tenant alone")
	case p.Role == roles.Tenant && ranges != nil:
		return "p_keys", errors.New("goes not with the role tenant, whose tenants say what it has to do with")
	case p.Role == roles.Tenant && len(tenants) == 0:
		return "tenants", errors.New("is missing: the role tenant needs a list of names, such as [acme]")
	case p.Role == roles.Tenant:
		if err := CheckTenants(tenants); err != nil {
			return "tenants", err
		}
	}
	p.PKeys, p.Hosts, p.Tenants = ranges, slices.Clone(f.Hosts), tenants
	return "", nil
}
