package drill

import (
	"math"

	"portcullis/fabricsm/drill/weak"
	"portcullis/fabricsm/sa"
)

// Controls of registrations by hosts.
const (
	GroupPKey   Control = "group_pkey"
	GroupParams Control = "group_params"
	IPoIBParams Control = "ipoib_params"
	FixedGroups Control = "fixed_groups"
	MLIDQuota   Control = "mlid_quota"
	SNMSharing  Control = "snm_sharing"
	GroupLimits Control = "registration_limits"
	ProxyRule   Control = "proxy_rule"
	NameKeys    Control = "service_keys"
	LeaseCap    Control = "lease_cap"
	OwnRecords  Control = "own_records"
	AliasRule   Control = "alias_inventory"
)

func registrationControls() []Carried {
	return []Carried{
		{
			GroupPKey, "a multicast group takes, and is known to, ports that have its P_Key",
			[]string{"T78"},
			weakSA(func(c *sa.Config) { c.Groups.Policy = weak.AnyPKey{} }),
		},
		{
			GroupParams, "a port whose link has less than a multicast group is refused",
			[]string{"T81"},
			weakSA(func(c *sa.Config) { c.Groups.Policy = weak.AnyLink{} }),
		},
		{
			IPoIBParams, "groups of IP are as the broadcast group of their partition",
			[]string{"T80"},
			weakSA(func(c *sa.Config) { c.Groups.NoIPoIBValidation = true }),
		},
		{
			FixedGroups, "broadcast groups are there from the beginning, and stay without members",
			[]string{"T80", "T82"},
			weakSA(func(c *sa.Config) { c.Fixed = nil }),
		},
		{
			MLIDQuota, "a partition has so many multicast groups and no more",
			[]string{"T79"},
			weakSA(func(c *sa.Config) { c.Groups.Quota = nil }),
		},
		{
			SNMSharing, "groups of IPv6 addresses share multicast LIDs",
			[]string{"T83"},
			weakSA(func(c *sa.Config) { c.Groups.ShareSNM = false }),
		},
		{
			GroupLimits, "a port registers so many groups, services and subscriptions and no more",
			[]string{"T65", "T83", "T86"},
			weakSA(func(c *sa.Config) { c.Trust.MaxGroups, c.Trust.MaxServices, c.Trust.MaxSubscriptions = 0, 0, 0 }),
		},
		{
			ProxyRule, "who is not trusted acts for its own port and for no other",
			[]string{"T75", "T82", "T85"},
			weakSA(func(c *sa.Config) { c.Trust.ProxyUntrusted, c.Groups.Policy = true, weak.AnyMembership{} }),
		},
		{
			NameKeys, "who registers a name that has a key shows it, and who replaces a record with a key shows that",
			[]string{"T12", "T84", "T85"},
			weakSA(func(c *sa.Config) { c.ServiceKeys, c.Trust.ReservedNames, c.Services.IgnoreKeys = nil, nil, true }),
		},
		{
			LeaseCap, "no host is given a lease that does not end",
			[]string{"T86"},
			weakSA(func(c *sa.Config) { c.Services.MaxLease = math.MaxInt64 }),
		},
		{
			OwnRecords, "clients that are not trusted get groups and services of their own partitions, and not of their members",
			[]string{"T71"},
			weakSA(func(c *sa.Config) { c.Policy = weak.Trusting{About: sa.Registrations} }),
		},
		{
			AliasRule, "a port gets the aliases that inventory has for it, if hosts may ask at all",
			[]string{"T77"},
			weakSA(func(c *sa.Config) { c.Trust.AliasesUntrusted, c.Aliases.Inventory = true, weak.AnyAlias{} }),
		},
	}
}
