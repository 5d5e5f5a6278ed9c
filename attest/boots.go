package attest

// BootHistory is what is known of the boots of one TPM.
type BootHistory struct {
	Seen   *Boot `json:"seen,omitempty"`   // of the last evidence accepted
	Sealed *Boot `json:"sealed,omitempty"` // the last in which the host was handed over
	// Cleared is set by an operator who knows why the TPM was cleared: the counts of the next evidence may be lower.
	Cleared bool `json:"cleared,omitempty"`
}

// Check refuses evidence of a boot in which the host was handed over before, counts that went back without an
// acknowledgement, and a clock that went back within one boot. A clock that is not safe is no reason to refuse.
func (h BootHistory) Check(b Boot) *Refusal {
	switch {
	case h.wentBack(b) && !h.Cleared:
		return refuse(ReasonCleared, "the TPM counts %v, but counted %v before: it was cleared; if that was on purpose, acknowledge it", b, *h.Seen)
	case h.wentBack(b):
		return nil
	case h.Sealed != nil && b.Same(*h.Sealed):
		return refuse(ReasonReplayBoot, "the host was handed over in this boot (%v): reboot it into the provisioning image", b)
	case h.Seen != nil && b.Same(*h.Seen) && b.Safe && b.Clock < h.Seen.Clock:
		return refuse(ReasonClock, "the TPM's clock is at %d ms in a boot in which it was at %d ms", b.Clock, h.Seen.Clock)
	default:
		return nil
	}
}

func (h BootHistory) wentBack(b Boot) bool {
	return h.Seen != nil && (b.Reset < h.Seen.Reset || b.Reset == h.Seen.Reset && b.Restart < h.Seen.Restart)
}

// Accept records a boot that Check let pass. After a clear of the TPM the older records mean nothing, and an
// acknowledgement is used up.
func (h BootHistory) Accept(b Boot) BootHistory {
	if h.wentBack(b) {
		return BootHistory{Seen: &b}
	}
	return BootHistory{Seen: &b, Sealed: h.Sealed}
}

// Seal notes the boot in which the host was handed over.
func (h BootHistory) Seal(b Boot) BootHistory {
	return BootHistory{Seen: &b, Sealed: &b, Cleared: h.Cleared}
}
