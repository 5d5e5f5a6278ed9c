package drills

import (
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/threats"
)

// Controls of the life of hosts in tenants.
const (
	ReadBack         drill.Control = "read_back"
	WholeIntent      drill.Control = "whole_intent"
	ObjectVersions   drill.Control = "object_versions"
	WholeHosts       drill.Control = "whole_hosts"
	TenantScopes     drill.Control = "tenant_scopes"
	RequestNames     drill.Control = "request_names"
	PinnedAuthority  drill.Control = "pinned_authority"
	RemovalBrake     drill.Control = "removal_brake"
	WebhookAddresses drill.Control = "webhook_addresses"
	FourEyes         drill.Control = "four_eyes"
	TopologyGuards   drill.Control = "topology_guards"
	LeaseFence       drill.Control = "lease_fence"
	OwnIntent        drill.Control = "no_own_intent"
	KeyCheck         drill.Control = "key_check"
	BackupRecipients drill.Control = "backup_recipients"
	ReferenceValues  drill.Control = "reference_values"
	TokenEnd         drill.Control = "token_end"
	FactsInUse       drill.Control = "facts_in_use"
	AdoptionEnd      drill.Control = "adoption_end"
	RecordVersions   drill.Control = "record_versions"
)

func serviceControls() []drill.Carried {
	return []drill.Carried{
		{Name: ReadBack, What: "a P_Key counts as removed when it was read to be gone, and a host is assigned again after that", Drills: []string{"T109"}},
		{Name: WholeIntent, What: "the Subnet Manager gets all that is wanted, whatever it missed, and compares it with what devices have", Drills: []string{"T110", "T111", "T114"}},
		{Name: ObjectVersions, What: "an order names the version of the object, such as the assignment of a host, that it rests on", Drills: []string{"T112", "T119", "T130"}},
		{Name: WholeHosts, What: "a host is granted a P_Key at all of its ports together", Drills: []string{"T113"}},
		{Name: TenantScopes, What: "for a credential of a tenant there is only what that tenant has", Drills: []string{"T120"}},
		{Name: RequestNames, What: "a request names itself, and is carried out once", Drills: []string{"T124"}},
		{Name: PinnedAuthority, What: "a client believes one authority, and sends nothing before it has seen a certificate of it", Drills: []string{"T122"}},
		{Name: RemovalBrake, What: "few hosts lose memberships by automatic causes, and an operator decides about more", Drills: []string{"T125"}},
		{Name: WebhookAddresses, What: "events are sent to no address of the machine itself, and to none where clouds keep credentials", Drills: []string{"T128"}},
		{Name: FourEyes, What: "the author of a declared topology is none of those who approve it", Drills: []string{"T131"}},
		{Name: TopologyGuards, What: "no topology is enforced that most of the fabric is not in", Drills: []string{"T132"}},
		{Name: BackupRecipients, What: "a backup is encrypted to identities that are kept elsewhere, and to no others", Drills: []string{"T136"}},
		{Name: ReferenceValues, What: "a host boots what was approved, and no other system, before it is handed over", Drills: []string{"T115"}},
		{Name: TokenEnd, What: "a token has an end", Drills: []string{"T121"}},
		{Name: FactsInUse, What: "a security profile is compared with what is in use now", Drills: []string{"T133"}},
		{Name: AdoptionEnd, What: "memberships without proof have an end that is near", Drills: []string{"T138"}},
		{Name: LeaseFence, What: "a leader whose lease may have ended writes nothing", Drills: []string{"T139"}},
		{Name: OwnIntent, What: "a Subnet Manager that begins wants nothing of its own, and waits for what the store wants", Drills: []string{"T140"}},
		{Name: KeyCheck, What: "an instance that cannot open the keys of devices does not lead", Drills: []string{"T141"}},
		{Name: RecordVersions, What: "a record says its version, and one that is too new is not read", Drills: []string{"T147"}},
	}
}

// serviceDrills are those of the fabric's list about tenants, clients, insiders and failures, played.
func serviceDrills() []drill.Drill {
	return played(map[string]func(*drill.Scene){
		"T108": earlyAdmission, "T109": unverifiedRelease, "T110": ghostMember, "T111": streamedOn, "T112": lateCommands,
		"T113": halfAdmitted, "T114": crashedBetween, "T115": earlyBoot, "T116": sharedPool, "T118": foreignCleanUp, "T119": delayedRelease, "T120": enumerated, "T121": weakCredentials, "T122": interposed, "T123": formatGames,
		"T124": replayedOrder, "T125": massRemoval, "T126": printedSecrets, "T127": shownKeys, "T128": misledWebhooks, "T129": hostileClient,
		"T130": staleDecision, "T131": rogueLink, "T132": cutTopology, "T133": loweredProtection, "T135": stolenDisk, "T136": stolenBackup, "T138": leftOn, "T139": pausedLeader, "T140": lateStandby,
		"T141": keylessStandby, "T147": mixedVersions,
	})
}

// played returns the drills of the fabric's list that need a service, with their plays.
func played(plays map[string]func(*drill.Scene)) (list []drill.Drill) {
	for _, d := range threats.All() {
		if play := plays[d.ID]; play != nil {
			d.Needs, d.Play = "", play
			list = append(list, d)
		}
	}
	return list
}
