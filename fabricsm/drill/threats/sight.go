package threats

import "portcullis/fabricsm/drill"

// sightDrills are about what the Subnet Manager does not see, or has forgotten.
func sightDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T117", Threat: "have what the Subnet Manager does not see count as gone, so that one leaf switch takes every tenant down", Needs: drill.NeedsService},
		{ID: "T143", Threat: "split the fabric, or have a rail flap, and have the Subnet Manager restarted meanwhile, so that tenants lose ports that were not cut", Needs: drill.NeedsService},
		{ID: "T134", Threat: "change what the audit log says, in the files of the store", Needs: drill.NeedsService},
		{ID: "T146", Threat: "set the clock of the service back, so that what was over counts again", Needs: drill.NeedsService},
		{ID: "T144", Threat: "have a host that was released come back by restoring an old backup", Needs: drill.NeedsService},
		{ID: "T145", Threat: "stop the store, so that no operator can take a host off the fabric", Needs: drill.NeedsService},
	}
}
