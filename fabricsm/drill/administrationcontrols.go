package drill

import (
	"portcullis/fabricsm/drill/weak"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sm"
)

// Controls of subnet administration.
const (
	MADLimiter     Control = "mad_limiter"
	TenantShare    Control = "tenant_share"
	SAETM          Control = "saetm"
	QueryBudget    Control = "query_budget"
	RMPPBounds     Control = "rmpp_bounds"
	Registrations  Control = "durable_registrations"
	PathPartitions Control = "path_partitions"
	SAKeyCheck     Control = "sa_key"
	SARotation     Control = "sa_rotation"
	SAKeySources   Control = "sa_key_sources"
	SGIDCheck      Control = "sgid_check"
	InformFilter   Control = "inform_filter"
)

func administrationControls() []Carried {
	return []Carried{
		{
			MADLimiter, "a port may send so much of each class, and what is more is dropped before it is looked at",
			[]string{"T61", "T67", "T142", "T160"},
			weakSA(func(c *sa.Config) { c.Limiter = limiter.Config{Work: c.Limiter.Work} }),
		},
		{
			TenantShare, "where there is not enough for all, tenants share it, however many ports they have",
			[]string{"T62"},
			weakSA(func(c *sa.Config) { c.Tenant = nil }),
		},
		{
			SAETM, "the enhanced trust model: who is not trusted may ask and register what stands in a short table",
			[]string{"T63", "T68", "T70", "T71", "T75", "T77"},
			weakSA(func(c *sa.Config) { c.Trust.Model = false }),
		},
		{
			QueryBudget, "a question, and all of a host together, may cost so many steps",
			[]string{"T63"},
			weakSA(func(c *sa.Config) { c.Limiter.Work = limiter.WorkConfig{} }),
		},
		{
			RMPPBounds, "so many tables of a port are under way at once",
			[]string{"T64"},
			weakSA(func(c *sa.Config) { c.RMPP.PerPort = 1024 }),
		},
		{
			Registrations, "what hosts register is durable before it is confirmed",
			[]string{"T66"},
			func(o *SiteOptions) {
				if o.SA != nil {
					o.Forgets = func(f *sm.Fact) bool { return f.Kind.OfSA() }
				}
			},
		},
		{
			PathPartitions, "a path is returned to ports that share a partition with both of its ends; to others it does not exist",
			[]string{"T69"},
			weakSA(func(c *sa.Config) { c.Policy = weak.Trusting{About: sa.Paths} }),
		},
		{
			SAKeyCheck, "who shows an SA_Key that is none of ours is not answered",
			[]string{"T68", "T72"},
			weakSA(func(c *sa.Config) { c.Policy = weak.AnyKey{} }),
		},
		{
			SARotation, "the SA_Key changes from time to time, and the one before is taken for a while",
			[]string{"T73"},
			weakSA(func(c *sa.Config) { c.Trust.KeyPeriod = 0 }),
		},
		{
			SAKeySources, "the SA_Key is taken from the ports of those who may have it",
			[]string{"T73"},
			weakSA(func(c *sa.Config) { c.Trust.TrustedSources = nil }),
		},
		{
			InformFilter, "notices go to who may know of the port, the group or the attack",
			[]string{"T70", "T76"},
			weakSA(func(c *sa.Config) { c.Policy = weak.Trusting{About: sa.Notices} }),
		},
		{
			SGIDCheck, "a source GID that is not that of the port with the source LID is dropped",
			[]string{"T27", "T74"},
			weakSA(func(c *sa.Config) { c.Trust.CheckSGID = false }),
		},
	}
}

// weakSA switches a control off that subnet administration has.
func weakSA(change func(*sa.Config)) func(*SiteOptions) {
	return func(o *SiteOptions) {
		if o.SA != nil {
			change(o.SA)
		}
	}
}
