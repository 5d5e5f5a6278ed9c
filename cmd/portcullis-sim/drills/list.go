package drills

import (
	"slices"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/threats"
)

// All lists all drills, in the order of their threats.
func All() []drill.Drill {
	return threats.Replace(threats.Replace(threats.All(), slices.Concat(evidenceDrills(), serviceDrills())), []drill.Drill{
		{ID: "T3", Threat: "ask for full membership of the default partition", Play: inTurn(ofFabric("T3"), reservedKeys)},
		{ID: "T5", Threat: "choose a P_Key by arithmetic that another tenant has", Play: chosenPKey},
		{ID: "T15", Threat: "use a storage partition as a bridge to other tenants", Play: inTurn(ofFabric("T15"), fullUse)},
		{ID: "T16", Threat: "have a partition deleted and created again while members remain", Play: deletedPartition},
		{ID: "T46", Threat: "read keys from files, backups, logs or answers", Play: readKeys},
		{ID: "T134", Threat: "change what the audit log says, in the files of the store", Play: alteredLog},
		{ID: "T146", Threat: "set the clock of the service back, so that what was over counts again", Play: jumpingClock},
		{ID: "T144", Threat: "have a host that was released come back by restoring an old backup", Play: restoredBackup},
		{ID: "T117", Threat: "have what the Subnet Manager does not see count as gone, so that one leaf switch takes every tenant down", Play: outOfSight},
		{ID: "T143", Threat: "split the fabric, or have a rail flap, and have the Subnet Manager restarted meanwhile, so that tenants lose ports that were not cut", Play: splitFabric},
		{ID: "T145", Threat: "stop the store, so that no operator can take a host off the fabric", Play: storeAway},
	})
}

// ofFabric returns the play of a drill of the fabric alone.
func ofFabric(id string) func(*drill.Scene) {
	list := threats.All()
	return list[slices.IndexFunc(list, func(d drill.Drill) bool { return d.ID == id })].Play
}

// inTurn plays one after the other.
func inTurn(plays ...func(*drill.Scene)) func(*drill.Scene) {
	return func(s *drill.Scene) {
		for _, play := range plays {
			play(s)
		}
	}
}

// Controls of the service.
const (
	PKeyScopes     drill.Control = "p_key_scopes"
	DeleteGuard    drill.Control = "delete_guard"
	PKeyQuarantine drill.Control = "p_key_quarantine"
	SealedStore    drill.Control = "sealed_store"
	SightRule      drill.Control = "sight_rule"
	RestoreReview  drill.Control = "restore_review"
	AuditChain     drill.Control = "audit_chain"
	HighestTime    drill.Control = "highest_time"
	OrderJournal   drill.Control = "order_journal"
)

// Controls lists all controls.
func Controls() []drill.Carried {
	return slices.Concat(drill.Controls(), []drill.Carried{
		{Name: PKeyScopes, What: "a credential with a range of P_Keys has to do with those alone", Drills: []string{"T5", "T118"}},
		{Name: DeleteGuard, What: "no cluster is deleted that has hosts", Drills: []string{"T16"}},
		{Name: PKeyQuarantine, What: "a P_Key is given to another cluster only after it was proven absent everywhere", Drills: []string{"T16"}},
		{Name: SealedStore, What: "keys are sealed before they are stored", Drills: []string{"T46", "T135"}},
		{Name: SightRule, What: "a port that is not seen keeps its P_Keys", Drills: []string{"T117", "T143"}},
		{Name: AuditChain, What: "entries of the audit log are chained, and verified against what was verified before", Drills: []string{"T134"}},
		{Name: HighestTime, What: "the highest time that was seen is kept, and nothing goes by an earlier one", Drills: []string{"T146"}},
		{Name: RestoreReview, What: "a restored state grants nothing that the fabric does not have, and takes nothing away that it does not know, before a person has decided", Drills: []string{"T144"}},
		{Name: OrderJournal, What: "what an operator orders to be removed while the store is away is in force at once, and in a journal until the store has it", Drills: []string{"T145"}},
	}, serviceControls(), evidenceControls())
}
