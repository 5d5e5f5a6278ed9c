package drill

// evidenceDrills are about what hosts say of themselves, which only a service judges.
func evidenceDrills() []Drill {
	return []Drill{
		{ID: "T98", Threat: "send evidence that was recorded, from a host that runs something else by now", Needs: needsService},
		{ID: "T99", Threat: "have the TPM of another machine answer", Needs: needsService},
		{ID: "T100", Threat: "have a TPM in software answer", Needs: needsService},
		{ID: "T101", Threat: "show the event log of a good boot over registers of another", Needs: needsService},
		{ID: "T102", Threat: "attest, and boot something else without the TPM noticing", Needs: needsService},
		{ID: "T103", Threat: "speak for a host with keys that were copied from its agent", Needs: needsService},
		{ID: "T104", Threat: "have the agent lie about the adapters of the host", Needs: needsService},
		{ID: "T105", Threat: "flood attestation, to keep a host from being admitted", Needs: needsService},
		{ID: "T106", Threat: "boot what nobody approved, when the waiver for it has ended", Needs: needsService},
		{ID: "T107", Threat: "be admitted on evidence of long ago", Needs: needsService},
	}
}
