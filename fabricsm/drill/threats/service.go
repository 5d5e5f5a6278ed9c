package threats

import "portcullis/fabricsm/drill"

// serviceDrills are about the life of hosts in tenants, what clients and insiders ask of the service, and how it outlives
// failures.
func serviceDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T108", Threat: "be admitted before all was verified, by having the conditions met in another order", Needs: drill.NeedsService},
		{ID: "T109", Threat: "be given to the next tenant while a switch port still has the P_Key of the one before", Needs: drill.NeedsService},
		{ID: "T110", Threat: "remain a member after a release that came while no Subnet Manager ran", Needs: drill.NeedsService},
		{ID: "T111", Threat: "go on sending over an open connection after the P_Key was removed", Needs: drill.NeedsService},
		{ID: "T112", Threat: "have what two controllers order about one host arrive in another order", Needs: drill.NeedsService},
		{ID: "T113", Threat: "be admitted with some of the adapters of a host", Needs: drill.NeedsService},
		{ID: "T114", Threat: "crash the service between its commit and the write to the fabric, so that they differ", Needs: drill.NeedsService},
		{ID: "T115", Threat: "boot the tenant's system before the adapters are locked", Needs: drill.NeedsService},
		{ID: "T116", Threat: "have two controllers assign the same GUIDs to virtual functions, or leak GUIDs until none is left", Needs: drill.NeedsService},
		{ID: "T118", Threat: "clean up partitions that another controller made", Needs: drill.NeedsService},
		{ID: "T119", Threat: "have a delayed order to release a host hit the next tenant of it", Needs: drill.NeedsService},
		{ID: "T120", Threat: "read and change what another tenant has, by trying names", Needs: drill.NeedsService},
		{ID: "T121", Threat: "use credentials that products ship, or that have ended", Needs: drill.NeedsService},
		{ID: "T122", Threat: "answer in the place of the service to a client that does not look at certificates", Needs: drill.NeedsService},
		{ID: "T123", Threat: "write P_Keys and GUIDs in forms that two readers take for different ones", Needs: drill.NeedsService},
		{ID: "T124", Threat: "send a request again whose answer was lost, so that it is carried out twice", Needs: drill.NeedsService},
		{ID: "T125", Threat: "remove all hosts at once, by mistake or by intent", Needs: drill.NeedsService},
		{ID: "T126", Threat: "find secrets in logs, answers and metrics", Needs: drill.NeedsService},
		{ID: "T127", Threat: "read keys through an endpoint that shows the configuration", Needs: drill.NeedsService},
		{ID: "T128", Threat: "have webhooks lead to the inside, and forge what they bring", Needs: drill.NeedsService},
		{ID: "T129", Threat: "send the service what is too long, ambiguous or without end", Needs: drill.NeedsService},
		{ID: "T130", Threat: "undo a newer change, by a decision that rests on an older state", Needs: drill.NeedsService},
		{ID: "T131", Threat: "declare a link that is not part of the fabric, to have it enabled", Needs: drill.NeedsService},
		{ID: "T132", Threat: "put an empty or truncated topology into force, so that the fabric is disabled", Needs: drill.NeedsService},
		{ID: "T133", Threat: "lower the protection of an installation, one setting at a time", Needs: drill.NeedsService},
		{ID: "T135", Threat: "steal the disk of the service, or all that its machine knows", Needs: drill.NeedsService},
		{ID: "T136", Threat: "steal a backup", Needs: drill.NeedsService},
		{ID: "T138", Threat: "leave on what was switched off for an hour", Needs: drill.NeedsService},
		{ID: "T139", Threat: "have two instances manage the fabric, one of them after its lease has ended", Needs: drill.NeedsService},
		{ID: "T140", Threat: "have an instance take over that has not heard of a release", Needs: drill.NeedsService},
		{ID: "T141", Threat: "have an instance take over that cannot open the keys of devices", Needs: drill.NeedsService},
		{ID: "T147", Threat: "have instances of two versions read the same record differently", Needs: drill.NeedsService},
	}
}
