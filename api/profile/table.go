package profile

import "time"

var table = []Rule{
	{
		"default-partition-limited", BareMetal, "Full members of the default partition reach every host.",
		"portcullis fabric ports, then release the hosts that are full members",
		on(func(f *Facts) *Seen[Count] { return &f.LimitedDefault }, each("ports of hosts", "are at most limited members")),
	},
	{
		"enforced-in", General, "A host can put any P_Key into a packet, and only the switch can refuse it.",
		"portcullis fabric ports, then replace or close the ports of switches that do not enforce",
		on(func(f *Facts) *Seen[Count] { return &f.EnforcedIn }, each("switch ports", "check packets from the host")),
	},
	{
		"enforced-out", General, "A packet that entered elsewhere unchecked is stopped at the last switch only.",
		"portcullis fabric ports, then replace or close the ports of switches that do not enforce",
		on(func(f *Facts) *Seen[Count] { return &f.EnforcedOut }, each("switch ports", "check packets to the host")),
	},
	{
		"topology-enforced", BareMetal, "A GUID alone proves nothing; the switch port to which a device is cabled does.",
		"portcullis topospec activate REVISION --mode enforce",
		on(func(f *Facts) *Seen[bool] { return &f.TopologyEnforce }, is("no declared topology is enforced")),
	},
	{
		"m-key", General, "Without an M_Key any host with root can rewrite the tables of switches.",
		"fabric.keys.root: keys.root, m_key_enable: enable, m_key_protection_level: 2, rotation_period: 24h",
		on(func(f *Facts) *Seen[DeviceKeys] { return &f.MKeys }, deviceKeys),
	},
	{
		"sm-key", General, "With a known SM_Key a host can pose as a Subnet Manager of higher priority.",
		"fabric.sm_key_file: sm.key",
		on(func(f *Facts) *Seen[bool] { return &f.SMKey }, is("the SM_Key is not set, or is a default of a product")),
	},
	{
		"allowed-sms", BareMetal, "A Subnet Manager that is not listed must not be believed, also with the SM_Key.",
		`fabric.election.allowed_sms: [none], or ["PORT-GUID@SWITCH-GUID/PORT"] for each other one`,
		on(func(f *Facts) *Seen[bool] { return &f.AllowedSMs }, is("Subnet Managers that are not listed are believed")),
	},
	{
		"sa-key", BareMetal, "Requests with the SA_Key are trusted, and a key that leaked must end.",
		"fabric.keys.root: keys.root, fabric.sa.sa_key_update: 24h",
		on(func(f *Facts) *Seen[SAKey] { return &f.SAKey }, saKey),
	},
	{
		"sa-trust", BareMetal, "Without the trust model every host may read the records of every other host.",
		"fabric.sa.sa_enhanced_trust_model: true, sa_check_sgid_spoofing: true",
		on(func(f *Facts) *Seen[SATrust] { return &f.SATrust }, saTrust),
	},
	{
		"sa-limits", General, "A host that registers without bound takes groups and memory from all others.",
		"fabric.sa.sa_etm_max_num_mcgs: 128, sa_etm_max_num_srvcs: 32, sa_etm_max_num_event_subs: 32",
		on(func(f *Facts) *Seen[SALimits] { return &f.SALimits }, saLimits),
	},
	{
		"cc-key", SecuredBareMetal, "Without a key any host can change the congestion control of others.",
		"fabric.keys.cc_key_enable: enable",
		on(func(f *Facts) *Seen[ClassKey] { return &f.CCKey }, classKey),
	},
	{
		"vs-key", SecuredBareMetal, "Without a key any host can send vendor specific MADs that change devices.",
		"fabric.keys.vs_key_enable: enable",
		on(func(f *Facts) *Seen[ClassKey] { return &f.VSKey }, classKey),
	},
	{
		"n2n-key", SecuredBareMetal, "Without a key any host can pose as a switch to other switches.",
		"fabric.keys.n2n_key_enable: enable",
		on(func(f *Facts) *Seen[ClassKey] { return &f.N2NKey }, classKey),
	},
	{
		"mad-limiter", General, "A host that floods the service with MADs must not keep it from others.",
		"fabric.sa.limits.requests: {all: 200000/s burst 20000, node: 5000/s burst 5000}",
		on(func(f *Facts) *Seen[MADLimits] { return &f.MADLimits }, madLimits),
	},
	{
		"signed-firmware", SecuredBareMetal, "An adapter with firmware of a tenant obeys that tenant and no setting.",
		"attestation.assurance: G1",
		on(func(f *Facts) *Seen[Count] { return &f.SignedFirmware }, each("adapters", "take signed firmware only")),
	},
	{
		"smp-firewall", SecuredBareMetal, "With the SMP firewall off or unlocked a host can send SMPs to every device.",
		"attestation.require_lock: true",
		on(func(f *Facts) *Seen[Count] { return &f.SMPFirewall }, each("adapters", "have the SMP firewall on and locked")),
	},
	{
		"attested", SecuredBareMetal, "A host that booted something else can say anything about its adapters.",
		"portcullis reference learn, then portcullis reference approve",
		on(func(f *Facts) *Seen[Attested] { return &f.Attested }, attested),
	},
	{
		"members-proven", BareMetal, "Of a host whose membership was adopted it is not known what it is, and it shares the partition with others.",
		"portcullis adopt list, then have each host attest, or portcullis adopt end",
		on(func(f *Facts) *Seen[Adopted] { return &f.Adopted }, proven),
	},
	{
		"isolation-proven", BareMetal, "Settings say what devices should do; only their tables show whether a packet passes between tenants.",
		"portcullis verify shows the packet and the change that stops it; verify.every: 1h has the service examine the fabric by itself",
		on(func(f *Facts) *Seen[Isolation] { return &f.Isolation }, isolated),
	},
	{
		"audit-anchored", General, "An audit log that is kept in one place can be rewritten there.",
		"audit.anchors, with at least one place outside of the service's machines",
		on(func(f *Facts) *Seen[Anchors] { return &f.Anchors }, anchored),
	},
	{
		"escrow-rehearsed", General, "Devices whose keys are lost need a visit, and only a rehearsal proves that a kit opens.",
		"portcullis keys rehearse KIT --proof FILE where the identity is kept, then portcullis keys rehearsed FILE",
		on(func(f *Facts) *Seen[time.Time] { return &f.Rehearsed }, rehearsed),
	},
}
