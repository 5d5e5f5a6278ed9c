package main

import (
	"fmt"
	"testing"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestProfile compares a real service with the strictest profile, on a real simulated fabric whose switch enforces no partitions and
// whose devices keep no M_Keys.
func TestProfile(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	dir, address := install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm", "--profile", "secured-bare-metal-cloud")
	start(t, dir)
	c := operator(t, dir, address)
	want := map[string]string{
		"default-partition-limited": v1.RuleHolds, "enforced-in": v1.RuleFails, "enforced-out": v1.RuleFails, "m-key": v1.RuleFails, "topology-enforced": v1.RuleFails,
		"sm-key": v1.RuleHolds, "allowed-sms": v1.RuleHolds, "cc-key": v1.RuleHolds, "vs-key": v1.RuleHolds, "n2n-key": v1.RuleHolds, "mad-limiter": v1.RuleHolds, "sa-limits": v1.RuleHolds, "attested": v1.RuleFails, "audit-anchored": v1.RuleFails,
		"signed-firmware": v1.RuleUnknown, "smp-firewall": v1.RuleUnknown, "escrow-rehearsed": v1.RuleFails,
		"isolation-proven": v1.RuleUnknown,
	}
	eventually(t, "a profile of the settled fabric", func() (bool, string) {
		r, err := c.Profile(t.Context(), v1.ProfileQuery{})
		if err != nil {
			return false, err.Error()
		}
		ok := r.Name == "secured-bare-metal-cloud" && !r.Holds && r.Count.Holds+r.Count.Fails+r.Count.Unknown == len(r.Rules)
		said := ""
		for i := range r.Rules {
			f := &r.Rules[i]
			said += fmt.Sprintf("%s %s: %s\n", f.Rule, f.State, f.Detail)
			if w, known := want[f.Rule]; known && f.State != w || f.State == v1.RuleHolds && (f.Source == "" || f.At == nil) {
				ok = false
				said += "  this is wrong\n"
			}
		}
		return ok, said
	})
	if r, err := c.Profile(t.Context(), v1.ProfileQuery{Name: "general"}); err != nil || r.Name != "general" || len(r.Rules) >= 19 {
		t.Errorf("general: %+v, %v", r, err)
	}
}
