//go:build vm

package cards_test

import (
	"os"
	"testing"
)

// TestLockdown checks that fwctl reads all facts under lockdown, and that without fwctl every fact of the firmware is
// unknown for that reason. It is the last test, and in the last file: a lockdown lasts until the next boot.
func TestLockdown(t *testing.T) {
	b := plug(t, true)
	if err := os.WriteFile("/sys/kernel/security/lockdown", []byte("integrity"), 0); err != nil {
		t.Fatal(err)
	}
	h, kernel := b.facts()
	if !h.Lockdown || kernel["life_cycle"].Reason != "" || kernel["mlock"].Reason != "" {
		t.Errorf("by fwctl: %+v, %+v", kernel["life_cycle"], kernel["mlock"])
	}
	_, tools := b.facts(noFWCTL...)
	for _, name := range []string{"life_cycle", "secure_boot", "mlock", "base_guid", "attributes"} {
		if tools[name].Reason != "lockdown" {
			t.Errorf("%s by the tools: %+v, want lockdown", name, tools[name])
		}
	}
	b.says(b.older("mstflint", "q"), 1, "Cannot open Device")
}
