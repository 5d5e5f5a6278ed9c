package drills

import "portcullis/fabricsm/drill"

// Controls of adapters and of attestation.
const (
	Assurance         drill.Control = "assurance"
	FirmwareFloors    drill.Control = "firmware_floors"
	NoDPU             drill.Control = "no_dpu"
	RequireLock       drill.Control = "require_lock"
	AdapterLock       drill.Control = "adapter_lock"
	LockEpochs        drill.Control = "lock_epochs"
	LockDerivation    drill.Control = "lock_derivation"
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
		{Name: Assurance, What: "adapters say of themselves what only genuine firmware in a closed chip says, and all of it is known", Drills: []string{"T88", "T90", "T96"}},
		{Name: FirmwareFloors, What: "each board has a lowest version of firmware", Drills: []string{"T89"}},
		{Name: NoDPU, What: "no adapter has a processor of its own, which no evidence speaks for", Drills: []string{"T97"}},
		{Name: RequireLock, What: "no host is admitted whose adapters were not seen to be locked, with the settings of the site", Drills: []string{"T91", "T92"}},
		{Name: AdapterLock, What: "an adapter that is locked takes no settings without its key, also after a reset", Drills: []string{"T93"}},
		{Name: LockEpochs, What: "an adapter is locked with another key each time", Drills: []string{"T94"}},
		{Name: LockDerivation, What: "keys of locks are derived, and kept in no store that could be lost", Drills: []string{"T95"}},
		{Name: SessionRandomness, What: "nonce and secret of a session cannot be guessed", Drills: []string{"T98", "T103"}},
		{Name: EKPin, What: "inventory has the EK of the TPM in each host, and takes it from no other source", Drills: []string{"T99"}},
		{Name: EKChain, What: "an EK has a certificate of a maker of TPMs", Drills: []string{"T100"}},
		{Name: LogReplay, What: "the event log leads to what the TPM quotes", Drills: []string{"T101"}},
		{Name: HandOver, What: "a host is admitted when it can attest nothing more in this boot", Drills: []string{"T102", "T108"}},
		{Name: InventoryMatch, What: "a host shows the adapters that inventory has for it, and no others", Drills: []string{"T104"}},
		{Name: AttestationLimits, What: "an address opens so many sessions, and so many for one host", Drills: []string{"T105"}},
		{Name: WaiverEnd, What: "a waiver has an end", Drills: []string{"T106"}},
		{Name: EvidenceAge, What: "evidence leads to an admission soon, or not at all", Drills: []string{"T107"}},
	}
}

// evidenceDrills are those of the fabric's list that need a service, played.
func evidenceDrills() []drill.Drill {
	return played(map[string]func(*drill.Scene){
		"T88": customFirmware, "T89": oldFirmware, "T90": debugTokens, "T91": driftedSettings, "T92": skippedLock,
		"T93": brokenLock, "T94": leakedKey, "T95": lostKeys, "T96": blindAgent, "T97": foreignProcessor,
		"T98": recordedEvidence, "T99": relayedEvidence, "T100": softwareTPM, "T101": otherLog, "T102": bootedAfter,
		"T103": copiedKeys, "T104": lyingAgent, "T105": attestationFlood, "T106": endedWaiver, "T107": oldEvidence,
	})
}
