package attest_test

import (
	"testing"

	"portcullis/attest"
)

func TestBootHistory(t *testing.T) {
	t.Parallel()
	boot := func(reset, restart uint32, clock uint64) attest.Boot {
		return attest.Boot{Reset: reset, Restart: restart, Clock: clock, Safe: true}
	}
	five, sealed := boot(5, 0, 1000), boot(4, 0, 900)
	known := attest.BootHistory{Seen: &five, Sealed: &sealed}
	unsafe := boot(5, 0, 999)
	unsafe.Safe = false
	acknowledged := known
	acknowledged.Cleared = true
	for _, tc := range []struct {
		name string
		h    attest.BootHistory
		b    attest.Boot
		want attest.Reason // "": accepted
	}{
		{"first evidence ever", attest.BootHistory{}, boot(0, 0, 1), ""},
		{"next boot", known, boot(6, 0, 1), ""},
		{"same boot, later", known, boot(5, 0, 1001), ""},
		{"TPM restart is a boot of its own", known, boot(5, 1, 2000), ""},
		{"boot in which the host was handed over", attest.BootHistory{Seen: &five, Sealed: &five}, boot(5, 0, 2000), attest.ReasonReplayBoot},
		{"TPM restart after the host was handed over", attest.BootHistory{Seen: &five, Sealed: &five}, boot(5, 1, 2000), ""},
		{"fewer resets than seen", known, boot(4, 7, 2000), attest.ReasonCleared},
		{"fewer resets, that of the sealed boot", known, boot(4, 0, 2000), attest.ReasonCleared},
		{"fewer restarts in the same reset", attest.BootHistory{Seen: new(boot(5, 2, 1))}, boot(5, 1, 2000), attest.ReasonCleared},
		{"TPM cleared", known, boot(0, 0, 5), attest.ReasonCleared},
		{"TPM cleared, acknowledged", acknowledged, boot(0, 0, 5), ""},
		{"acknowledged, but the boot of a hand-over", attest.BootHistory{Seen: &five, Sealed: &five, Cleared: true}, boot(5, 0, 2000), attest.ReasonReplayBoot},
		{"clock back in one boot", known, boot(5, 0, 999), attest.ReasonClock},
		{"clock back in one boot, not safe", known, unsafe, ""},
		{"clock back over a power cycle", known, boot(6, 0, 1), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			no := tc.h.Check(tc.b)
			if got := reasonOf(no); got != tc.want {
				t.Errorf("got %v, want reason %q", no, tc.want)
			}
		})
	}
}

func reasonOf(no *attest.Refusal) attest.Reason {
	if no == nil {
		return ""
	}
	return no.Code
}

// TestBootHistoryGoesOn checks that an acknowledgement is valid for one clear, and that records from before a clear mean
// nothing after it.
func TestBootHistoryGoesOn(t *testing.T) {
	t.Parallel()
	var h attest.BootHistory
	step := func(b attest.Boot, want attest.Reason) {
		t.Helper()
		if got := reasonOf(h.Check(b)); got != want {
			t.Errorf("boot %v: got %q, want %q", b, got, want)
		}
	}
	accept := func(b attest.Boot) { t.Helper(); step(b, ""); h = h.Accept(b) }
	accept(attest.Boot{Reset: 3})
	h = h.Seal(attest.Boot{Reset: 3, Clock: 10})
	step(attest.Boot{Reset: 3, Clock: 20}, attest.ReasonReplayBoot)
	accept(attest.Boot{Reset: 4})
	step(attest.Boot{}, attest.ReasonCleared)
	h.Cleared = true
	accept(attest.Boot{Reset: 3}) // cleared, and counted up to the number of the sealed boot
	step(attest.Boot{Reset: 1}, attest.ReasonCleared)
	h.Cleared = true
	accept(attest.Boot{Reset: 4})
	step(attest.Boot{Reset: 1}, attest.ReasonCleared) // the acknowledgement was used up
}
