package drill

// evidenceDrills are about what hosts say of themselves, which only a service judges.
func evidenceDrills() []Drill {
	return []Drill{
		{ID: "T88", Threat: "run unsigned firmware", Needs: needsService},
		{ID: "T89", Threat: "run firmware that is signed, and old enough to have holes", Needs: needsService},
		{ID: "T90", Threat: "open the adapter to a debugger, by a token or by debug firmware", Needs: needsService},
		{ID: "T91", Threat: "keep the settings of the adapter as the host wants them", Needs: needsService},
		{ID: "T92", Threat: "have the adapter not locked when the host is handed over", Needs: needsService},
		{ID: "T93", Threat: "open the lock of the adapter, and send subnet management packets", Needs: needsService},
		{ID: "T94", Threat: "open an adapter with a key that leaked", Needs: needsService},
		{ID: "T95", Threat: "lose the keys of locks, so that adapters are locked for ever", Needs: needsService},
		{ID: "T96", Threat: "have the agent see nothing of the adapter", Needs: needsService},
		{ID: "T97", Threat: "own the processor on a DPU, beside the host", Needs: needsService},
		{ID: "T98", Threat: "send evidence that was recorded, from a host that runs something else by now", Needs: needsService},
		{ID: "T99", Threat: "have the TPM of another machine answer", Needs: needsService},
		{ID: "T100", Threat: "have a TPM in software answer", Needs: needsService},
		{ID: "T101", Threat: "show the event log of a good boot over registers of another", Needs: needsService},
		{ID: "T102", Threat: "attest, and boot something else without the TPM noticing", Needs: needsService},
		{ID: "T103", Threat: "speak for a host with keys that were copied from its agent", Needs: needsService},
		{ID: "T104", Threat: "have the agent lie about the adapters of the host", Needs: needsService},
		{ID: "T105", Threat: "flood attestation, to keep a host from being admitted", Needs: needsService},
		{ID: "T106", Threat: "boot what is not approved, when the waiver for it has ended", Needs: needsService},
		{ID: "T107", Threat: "be admitted on evidence of long ago", Needs: needsService},
	}
}
