package drills

import (
	"fmt"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/sm"
)

// crashedBetween is T114: service and Subnet Manager end at any moment between the commit of a change and its last write to
// the fabric.
func crashedBetween(s *drill.Scene) {
	v := newSite(s, options{fabric: drill.SiteOptions{SM: sm.Config{IntentWait: 30 * time.Second}}, credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	v.mark()
	crashes := 0
	for _, at := range []int{0, 1, 2, 3, 5, 8, 13} {
		s.Tried("h4 is admitted, and after %d requests of the Subnet Manager that follow the commit everything is killed; then the same with its release", at)
		v.must("ann", "POST", "/v1/hosts/h4/assign", `{"cluster":"red"}`)
		v.attested("h4")
		s.Must(v.admission.Settle(v.ctx()))
		crashes += crashAfter(v, at)
		v.sync()
		s.Check(v.delivered("h4", "h1", red), "h4, whose admission was committed before a crash, does not reach h1")

		v.must("ann", "POST", "/v1/hosts/h4/release", "")
		s.Must(v.admission.Settle(v.ctx()))
		v.deaf = s.Off(WholeIntent)
		crashes += crashAfter(v, at)
		v.sync()
		s.Check(!v.delivered("h4", "h1", red), "h4, whose release was committed before a crash, reaches h1")
		held := v.TenantKeys(v.SwitchPort("h4", 1))
		if !s.Check(len(held) == 0, "h4, whose release was committed before a crash, has %v in its switch port", held) {
			return
		}
	}
	s.Check(crashes > 5, "there were %d crashes, so nothing is proven", crashes)
	s.Stopped("what is wanted is in the store and what is there is read from the devices: after %d crashes the difference was written", crashes)
	v.phase("h4", "quarantined")

	s.Tried("the store refuses the commit, and nothing of it reaches the fabric")
	v.outage.away = true
	v.refused("store_unavailable", "ann", "POST", "/v1/hosts/h4/assign", `{"cluster":"red"}`)
	v.Run(time.Minute)
	s.Check(len(v.TenantKeys(v.SwitchPort("h4", 1))) == 0, "h4 has %v of a commit that failed", v.TenantKeys(v.SwitchPort("h4", 1)))
	v.outage.away = false
	v.sync()
}

// crashAfter has the Subnet Manager hear what is wanted, and kills it and the service after some of its requests that follow;
// then both are started. It returns 1 if there was a crash.
func crashAfter(v *site, requests int) (crashed int) {
	in, err := v.turn.Intent(v.ctx())
	v.scene.Must(err)
	sent := 0
	v.OnSend = func(*sm.Request) bool {
		if sent++; sent > requests && v.Running() {
			crashed = 1
			v.Crash()
		}
		return crashed > 0
	}
	if requests == 0 {
		crashed = 1
		v.Crash()
	}
	v.pass(in)
	v.Run(5 * time.Second)
	v.OnSend = nil
	v.scene.Check(crashed == 1 || sent <= requests, "%s", fmt.Sprintf("after %d requests there was no crash", sent))
	if crashed == 1 {
		v.restartService()
		v.Start()
	}
	return crashed
}
