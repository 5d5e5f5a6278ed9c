package events

import (
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// Kind is a type of event, as the catalogue has it.
type Kind struct {
	Type, Severity string
	What           string   // what happened
	Causes         []string // which there are
	Cure           string   // what to do; empty: nothing, it is good news or a record
	Page           string   // of the documentation, which has more; empty: none has
	// Often: hosts cause it, so the audit log and the journal record the 1st, 2nd, 5th, 10th, 20th and so on, and the first
	// after a day.
	Often bool
	// About names what it is about, where that is no host.
	About string
}

// Kinds is the catalogue: all types there are. docs/reference/events.md is made of it.
func Kinds() []Kind {
	return []Kind{
		{
			Type: GUIDConflict, Severity: Critical, Causes: []string{"claims", "claimed"},
			What: "evidence of a host has a GUID that inventory has for another one; claims: of the host that shows it; claimed: of the other one",
			Cure: "find out which host has the GUID, then portcullis host guid-resolved: both hosts are held until then",
			Page: "operate/when.md",
		},
		{
			Type: AdoptionBegan, Severity: Warning, Causes: []string{"confirmed"},
			What: "memberships that the fabric had are kept, though nothing is proven of their hosts",
			Cure: "have each host attest before the deadline; portcullis adopt show",
			Page: "operate/move-in.md#adopt-what-runs", About: "adoption",
		},
		{
			Type: AdoptionFound, Severity: Warning, Causes: []string{"takeover"},
			What: "a takeover found memberships that no record explains: they are kept until a person decides",
			Cure: "decide: portcullis adopt list, then adopt confirm --within, or adopt end",
			Page: "operate/move-in.md#p_keys-that-are-not-listed", About: "adoption",
		},
		{
			Type: AdoptionDue, Severity: Warning, Causes: []string{"deadline"},
			What: "the deadline of an adoption is near, and hosts have not attested",
			Cure: "have them attest; portcullis adopt show",
			Page: "operate/move-in.md#adopt-what-runs", About: "adoption",
		},
		{
			Type: AdoptionEnded, Severity: Notice, Causes: []string{"proven", "deadline", "ended", "taken"},
			What: "adopted memberships ended; proven: the host was admitted; deadline: it did not attest in time, and they are withdrawn; ended: an operator ended them; taken: their host was released or fenced or left inventory, or the review of a restored state did not find them in the fabric",
			Page: "operate/move-in.md#adopt-what-runs", About: "adoption",
		},
		{
			Type: BrakeEngaged, Severity: Critical, Causes: []string{"adoption", "drift", "evidence", "place"},
			What: "many hosts would lose memberships by themselves, and keep them until an operator decides",
			Cure: "portcullis admission brake show, then repair the cause or release the brake",
			Page: "operate/availability.md#the-brake", About: "admission",
		},
		{
			Type: BrakeEnded, Severity: Notice, Causes: []string{"adoption", "drift", "evidence", "place"},
			What: "no host keeps memberships any more that this class of causes would take, or an operator released its brake",
			Page: "operate/availability.md#the-brake", About: "admission",
		},
		{
			Type: AnchorsFailing, Severity: Warning, Causes: []string{"file", "syslog", "webhook"},
			What: "a place outside of the store has lacked the head of the audit log for audit.tell_after",
			Cure: "repair the place: the service tries again every 5 min at most",
			Page: "operate/audit.md#anchors", About: "anchors",
		},
		{
			Type: AnchorsWritten, Severity: Notice, Causes: []string{"file", "syslog", "webhook"},
			What: "no place of the kind that the cause names lacks the head of the audit log any more, or it is not configured any more",
			Page: "operate/audit.md#anchors", About: "anchors",
		},
		{
			Type: AuditBroken, Severity: Critical, Causes: []string{"altered", "cut", "rolled-back"},
			What: "the audit log is not what was written, or not what was verified before",
			Cure: "portcullis audit breaks, and find out which program or person changed the store",
			Page: "operate/audit.md#verification", About: "audit",
		},
		{
			Type: AuditWhole, Severity: Notice, Causes: []string{"verified"},
			What: "the audit log is whole again, or its breaks were accepted",
			Page: "operate/audit.md#verification", About: "audit",
		},
		{
			Type: CertificateEnds, Severity: Warning, Causes: []string{"soon", "ended"},
			What:  "the TLS certificate of the API ends within 30 days, or a third of a shorter life is left; or it has ended, and clients refuse the service",
			Cure:  "portcullisd certificate renew, or have its authority issue the next one, and reload",
			About: "certificate",
		},
		{
			Type: ClockJump, Severity: Critical, Causes: []string{"back", "ahead"},
			What: "the clock of a machine was set, or is not that of the other instances: while it is behind the highest time seen, or contradicted, nothing new is granted",
			Cure: "set the clock right, or the recorded time with portcullis clock set",
			Page: "operate/availability.md#the-clock", Often: true, About: "clock",
		},
		{
			Type: ClockSteady, Severity: Notice, Causes: []string{"caught-up", "set"},
			What: "the clock is believed again, or an operator set the recorded time",
			Page: "operate/availability.md#the-clock", Often: true, About: "clock",
		},
		{
			Type: DriftFound, Severity: Warning, Causes: driftKinds(),
			What: "the table of a port of the host, or the setting of the switch port in front of it, was read and is not as its memberships want it; the cause is the kind of drift",
			Cure: "find out which program wrote to the device, and with which M_Key; portcullis fabric diff --wanted --host HOST shows whether it is corrected",
			Page: "operate/verify.md#what-is-done-about-drift", Often: true,
		},
		{
			Type: DriftElsewhere, Severity: Warning, Causes: []string{"stray"},
			What: "a port that belongs to no host has a P_Key of a tenant, by its table or that of the switch port in front of it",
			Cure: "find out what is attached there; portcullis verify shows whether a packet passes",
			Page: "operate/verify.md#what-is-done-about-drift", Often: true, About: "fabric",
		},
		{
			Type: DriftEnded, Severity: Notice, Causes: driftKinds(),
			What: "drift at a port of the host that was reported was not found any more",
			Page: "operate/verify.md#what-is-done-about-drift", Often: true,
		},
		{
			Type: DriftFenced, Severity: Critical, Causes: driftKinds(),
			What: "drift at a port of the host stayed although the Subnet Manager was to correct it, and by verify.drift the host was fenced",
			Cure: "find out why the device does not keep what is written to it, then mark its switch ports as healthy and assign the host again",
			Page: "operate/verify.md#what-is-done-about-drift",
		},
		{
			Type: FabricBlind, Severity: Critical, Causes: []string{"own-port", "adapter", "alone", "nodes"},
			What: "the Subnet Manager does not see nodes that it knew",
			Cure: "repair the link or the switch; portcullis sm forget if the nodes are gone permanently",
			Page: "operate/availability.md#when-the-subnet-manager-is-blind", About: "fabric",
		},
		{
			Type: FabricSeen, Severity: Notice, Causes: []string{"back", "accepted"},
			What: "the Subnet Manager sees what it knew again, or an operator declared the rest as gone",
			Page: "operate/availability.md#when-the-subnet-manager-is-blind", About: "fabric",
		},
		{
			Type: FabricForeign, Severity: Warning, Causes: []string{"removed"},
			What: "the Subnet Manager removed P_Keys of tenants that no membership explains: another subnet manager, or another program, made ports members",
			Cure: "after a takeover, see which jobs need them; otherwise find out which program set them",
			Page: "operate/move-in.md#p_keys-that-are-not-listed", Often: true, About: "fabric",
		},
		{
			Type: EvidenceCurrent, Severity: Info, Causes: attest.LapseCauses(),
			What: "what accepted evidence was judged by has changed back: it meets policy again; or that evidence counts no more, because newer evidence was accepted or the host has to attest again",
			Page: "operate/availability.md#evidence-that-no-longer-meets-policy",
		},
		{
			Type: EvidenceOutdated, Severity: Warning, Causes: attest.LapseCauses(),
			What: "the policy that accepted the evidence of a host has changed, and the evidence no longer meets it",
			Cure: "change the policy back, or have the host attest again",
			Page: "operate/availability.md#evidence-that-no-longer-meets-policy",
		},
		{
			Type: IsolationLost, Severity: Critical, Causes: []string{"leak"},
			What: "an examination found a packet that passes between tenants. It names the first one with its way, and how many pairs of tenants there are",
			Cure: "portcullis verify shows each packet and the smallest change that stops it",
			Page: "operate/verify.md#events", About: "isolation",
		},
		{
			Type: IsolationUnproven, Severity: Warning, Causes: []string{"old", "unknown"},
			What: "it is not proven any more that tenants are isolated; unknown: the newest examination did not read everything or did not find a port; old: it began longer ago than it counts for",
			Cure: "portcullis verify lists what was not read and what is missing; portcullis verify --last says why there is no newer result",
			Page: "operate/verify.md#events", About: "isolation",
		},
		{
			Type: IsolationRegained, Severity: Notice, Causes: []string{"no-tenants", "proven"},
			What: "all tenants are proven to be isolated again, or (no-tenants) no host belongs to a tenant any more",
			Page: "operate/verify.md#events", About: "isolation",
		},
		{
			Type: IsolationDisclosed, Severity: Critical, Causes: []string{"key", "name"},
			What: "subnet administration named, to a port without the SA_Key, a port or a partition of another party with which that port shares no P_Key (name), or showed it a key (key)",
			Cure: "portcullis verify shows each disclosure and its cure; set sa_enhanced_trust_model and sa_check_sgid_spoofing of fabric.sa to true, and report the disclosure if they are",
			Page: "operate/verify.md#subnet-administration", About: "isolation",
		},
		{
			Type: LockChanged, Severity: Critical, Causes: []string{"unlocked", "epoch", "method", "file", "value"},
			What: "an adapter comes back open, or with another key, method, settings file or value than was proven, without an order of ours; by host: settings that its agent found once it had opened the lock",
			Cure: "find out which person or system had access to the adapter: a management controller, a jumper, other firmware. The host is admitted again once provisioning has locked the adapter",
			Page: "understand/lock.md", Often: true,
		},
		{
			Type: LockEpochSkipped, Severity: Notice, Causes: []string{"skipped", "repeated"},
			What: "a key was issued and no evidence of it came before the next one; repeated: 32 are in doubt, and the last is issued again",
			Cure: "if it goes on, find out why the agent ends",
			Page: "understand/lock.md", Often: true,
		},
		{
			Type: LockFailed, Severity: Warning, Causes: []string{"unreadable", "refused", "not-compliant", "reset", "firewall", "not-held", "challenge", "order"},
			What: "the agent could not lock an adapter at a step, which the cause names",
			Cure: "read the journal of the agent on the host",
			Page: "understand/lock.md", Often: true,
		},
		{
			Type: LockRelocked, Severity: Info, Causes: []string{"proven"},
			What: "evidence showed the next lock of an adapter that had one",
			Page: "understand/lock.md", Often: true,
		},
		{
			Type: LockUnlockFailed, Severity: Warning, Causes: []string{"foreign", "out-of-band", "not-ours"},
			What: "the agent reports that an adapter does not open with the keys that the service has for it: it has another site's lock, that of a management controller, or the store was restored",
			Cure: "portcullis lock rehearse",
			Page: "understand/lock.md", Often: true,
		},
		{
			Type: LockUnlockGiven, Severity: Notice, Causes: []string{"release"},
			What: "an agent received the keys to open an adapter permanently, as portcullis lock release decided",
			Cure: "remove the adapter",
			Page: "understand/lock.md",
		},
		{
			Type: StateRolledBack, Severity: Critical, Causes: []string{"shorter", "differs", "branch"},
			What: "the audit log contradicts its anchors: it ends before one (shorter), has another entry there (differs), or lacks the decision about an earlier roll-back (branch). An older state was put in place of a newer one, and is in review",
			Cure: "portcullis restore review, then portcullis restore end",
			Page: "operate/when.md", About: "state",
		},
		{
			Type: StoreRoom, Severity: Notice, Causes: []string{"room"},
			What: "the store has room again",
			Page: "operate/store.md#the-stores-database-grows", About: "store",
		},
		{
			Type: StoreShort, Severity: Warning, Causes: []string{"soon", "removals"},
			What: "the store runs short of room; soon: records take 70 % of store_quota; removals: they take 80 %, or the disk has little space, and only removals are accepted",
			Cure: "remove what is not needed, free space, or raise store_quota",
			Page: "operate/store.md#the-stores-database-grows", About: "store",
		},
		{
			Type: TokenEnds, Severity: Warning, Causes: []string{"soon", "ended"},
			What:  "operator tokens, which it names, end within 30 days, or a third of a shorter life is left; or they have ended and are refused",
			Cure:  "portcullisd token makes another one",
			About: "tokens",
		},
		{
			Type: WebhookFailing, Severity: Warning, Causes: []string{"webhook", "syslog", "alertmanager"},
			What: "a webhook or another exit, which it names, has had no event for an hour although the service tried",
			Cure: "portcullis webhook test, and repair the server: the service tries again every 15 min at most",
			Page: "operate/webhooks.md", About: "webhooks",
		},
		{
			Type: WebhookDelivers, Severity: Notice, Causes: []string{"webhook", "syslog", "alertmanager"},
			What: "no webhook, or no other exit of the kind that the cause names, lacks events any more: they have events again, or are not configured any more",
			Page: "operate/webhooks.md", About: "webhooks",
		},
	}
}

// driftKinds are the kinds of drift that are reported.
func driftKinds() []string {
	return []string{v1.DriftLeaving, v1.DriftMembership, v1.DriftMissing, v1.DriftNotEnforced, v1.DriftStray}
}
