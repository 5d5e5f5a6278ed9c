package threats

import "portcullis/fabricsm/drill"

// evidenceDrills are about what hosts say of themselves, which only a service judges.
func evidenceDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T88", Threat: "run unsigned firmware", Needs: drill.NeedsService},
		{ID: "T89", Threat: "run firmware that is signed, and old enough to have holes", Needs: drill.NeedsService},
		{ID: "T90", Threat: "open the adapter to a debugger, by a token or by debug firmware", Needs: drill.NeedsService},
		{ID: "T91", Threat: "keep the settings of the adapter as the host wants them", Needs: drill.NeedsService},
		{ID: "T92", Threat: "have the adapter not locked when the host is handed over", Needs: drill.NeedsService},
		{ID: "T93", Threat: "open the lock of the adapter, and send subnet management packets", Needs: drill.NeedsService},
		{ID: "T94", Threat: "open an adapter with a key that leaked", Needs: drill.NeedsService},
		{ID: "T95", Threat: "lose the keys of locks, so that adapters are locked for ever", Needs: drill.NeedsService},
		{ID: "T96", Threat: "have the agent see nothing of the adapter", Needs: drill.NeedsService},
		{ID: "T97", Threat: "own the processor on a DPU, beside the host", Needs: drill.NeedsService},
		{ID: "T98", Threat: "send evidence that was recorded, from a host that runs something else by now", Needs: drill.NeedsService},
		{ID: "T99", Threat: "have the TPM of another machine answer", Needs: drill.NeedsService},
		{ID: "T100", Threat: "have a TPM in software answer", Needs: drill.NeedsService},
		{ID: "T101", Threat: "show the event log of a good boot over registers of another", Needs: drill.NeedsService},
		{ID: "T102", Threat: "attest, and boot something else without the TPM noticing", Needs: drill.NeedsService},
		{ID: "T103", Threat: "speak for a host with keys that were copied from its agent", Needs: drill.NeedsService},
		{ID: "T104", Threat: "have the agent lie about the adapters of the host", Needs: drill.NeedsService},
		{ID: "T105", Threat: "flood attestation, to keep a host from being admitted", Needs: drill.NeedsService},
		{ID: "T106", Threat: "boot what is not approved, when the waiver for it has ended", Needs: drill.NeedsService},
		{ID: "T107", Threat: "be admitted on evidence of long ago", Needs: drill.NeedsService},
	}
}
