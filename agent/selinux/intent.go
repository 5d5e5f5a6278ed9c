package selinux

import (
	"errors"
	"fmt"
	"net/netip"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/strictyaml"
)

// Intent is what the operator of a host decides: names that the service does not know. In YAML:
//
//	subnet_prefix: fe80::/64
//	manager: opensm_t          # may send subnet management packets; none: no domain may
//	users: [container_t]       # may use partitions whose categories they have
//	common: []                 # may use the default partition
//	kernel: kernel_t
//	loaders: [udev_t, kmod_t]  # load adapters' drivers; without it those of DefaultLoaders
//	tenants:
//	  blue: [10, 27]           # categories of the tenant's processes
//	partitions:                # beside those of the host's own cluster
//	- {p_key: 0x0012, tenant: blue}
type Intent struct {
	Prefix     netip.Prefix          `yaml:"subnet_prefix"`
	Manager    Domain                `yaml:"manager"`
	Users      []Domain              `yaml:"users"`
	Common     []Domain              `yaml:"common"`
	Kernel     Domain                `yaml:"kernel"`
	Loaders    []Domain              `yaml:"loaders"`
	Tenants    map[string][]Category `yaml:"tenants"`
	Partitions []TenantPartition     `yaml:"partitions"`
}

// TenantPartition is a P_Key of a tenant.
type TenantPartition struct {
	PKey   ib.PKey `yaml:"p_key"`
	Tenant string  `yaml:"tenant"`
}

// maxIntent bounds the file in bytes.
const maxIntent = 4 << 20

// ParseIntent reads the file. Settings that it omits have the defaults of [DefaultIntent]. Unknown settings are refused.
func ParseIntent(name string, data []byte) (*Intent, error) {
	in := DefaultIntent()
	if err := strictyaml.LoadOptional(name, data, maxIntent, in); err != nil {
		return nil, err
	}
	return in, nil
}

// DefaultIntent labels for the default subnet prefix and lets containers use
// partitions: those of [DefaultUsers].
func DefaultIntent() *Intent {
	return &Intent{
		Prefix: netip.PrefixFrom(netip.MustParseAddr("fe80::"), 64),
		Kernel: "kernel_t",
	}
}

// Policy joins the intent with the partitions of the host's own clusters and its
// ports. A partition whose tenant has no categories is refused where others have:
// every user domain could use it. The same P_Key of the same tenant may be named
// in both places.
func (in *Intent) Policy(own []TenantPartition, ports []EndPort) (*Policy, error) {
	p := &Policy{
		Prefix: in.Prefix, Manager: in.Manager, Users: in.Users, Common: in.Common, Kernel: in.Kernel, Loaders: in.Loaders, EndPorts: ports,
	}
	var errs []error
	taken := map[ib.PKey]string{}
	for _, t := range append(append([]TenantPartition(nil), own...), in.Partitions...) {
		if tenant, ok := taken[t.PKey.Base()]; ok && tenant == t.Tenant {
			continue
		} else if ok {
			errs = append(errs, fmt.Errorf("P_Key %v belongs to tenant %q and to tenant %q", t.PKey, clip(tenant), clip(t.Tenant)))
			continue
		}
		taken[t.PKey.Base()] = t.Tenant
		categories, ok := in.Tenants[t.Tenant]
		if !ok {
			errs = append(errs, fmt.Errorf("P_Key %v: tenant %q has no categories; name them under tenants, or [] to allow every user domain", t.PKey, clip(t.Tenant)))
			continue
		}
		p.Partitions = append(p.Partitions, Partition{t.PKey, categories})
	}
	return p, errors.Join(append(errs, in.checkTenants(), p.Check())...)
}

// checkTenants refuses two tenants whose processes could use each other's
// partitions: categories of one that are all among those of the other.
func (in *Intent) checkTenants() error {
	var errs []error
	for a, first := range in.Tenants {
		for b, second := range in.Tenants {
			if a != b && len(first) > 0 && within(first, second) && (len(first) < len(second) || a < b) {
				errs = append(errs, fmt.Errorf("tenant %q has all categories of tenant %q, so its processes could use the partitions of that tenant", clip(b), clip(a)))
			}
		}
	}
	return joined(errs)
}

func within(a, b []Category) bool {
	has := make(map[Category]bool, len(b))
	for _, c := range b {
		has[c] = true
	}
	for _, c := range a {
		if !has[c] {
			return false
		}
	}
	return true
}
