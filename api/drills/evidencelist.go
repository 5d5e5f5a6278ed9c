package drills

import (
	"slices"

	"portcullis/fabricsm/drill"
)

// Controls of attestation.
const (
	SessionRandomness drill.Control = "session_randomness"
	EKPin             drill.Control = "ek_pin"
	EKChain           drill.Control = "ek_chain"
	LogReplay         drill.Control = "log_replay"
	HandOver          drill.Control = "hand_over"
	InventoryMatch    drill.Control = "inventory_match"
	AttestationLimits drill.Control = "attestation_limits"
	WaiverEnd         drill.Control = "waiver_end"
	EvidenceAge       drill.Control = "evidence_age"
)

func evidenceControls() []drill.Carried {
	return []drill.Carried{
		{Name: SessionRandomness, What: "nonce and secret of a session can be guessed by nobody", Drills: []string{"T98", "T103"}},
		{Name: EKPin, What: "inventory has the EK of the TPM in each host, and takes it from nobody else", Drills: []string{"T99"}},
		{Name: EKChain, What: "an EK has a certificate of a maker of TPMs", Drills: []string{"T100"}},
		{Name: LogReplay, What: "the event log leads to what the TPM quotes", Drills: []string{"T101"}},
		{Name: HandOver, What: "a host is admitted when it can attest nothing more in this boot", Drills: []string{"T102"}},
		{Name: InventoryMatch, What: "a host shows the adapters that inventory has for it, and no others", Drills: []string{"T104"}},
		{Name: AttestationLimits, What: "an address opens so many sessions, and so many for one host", Drills: []string{"T105"}},
		{Name: WaiverEnd, What: "a waiver has an end", Drills: []string{"T106"}},
		{Name: EvidenceAge, What: "evidence leads to an admission soon, or not at all", Drills: []string{"T107"}},
	}
}

// evidenceDrills are those of the fabric's list that need a service, played.
func evidenceDrills() []drill.Drill {
	plays := map[string]func(*drill.Scene){
		"T98": recordedEvidence, "T99": relayedEvidence, "T100": softwareTPM, "T101": otherLog, "T102": bootedAfter,
		"T103": copiedKeys, "T104": lyingAgent, "T105": attestationFlood, "T106": endedWaiver, "T107": oldEvidence,
	}
	list := slices.Clone(drill.All())
	for i := range list {
		if play := plays[list[i].ID]; play != nil {
			list[i].Needs, list[i].Play = "", play
		}
	}
	return list
}
