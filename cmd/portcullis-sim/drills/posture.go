package drills

import (
	"encoding/json"
	"fmt"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/adoptions"
	"portcullis/api/audit/anchor"
	"portcullis/api/isolation/standing"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/posture"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/topospec"
)

// knobs are the settings of an installation that an insider turns.
type knobs struct {
	core    sm.Config
	sa      sa.Config
	anchors []anchor.State
	blind   error // why the view of the Subnet Manager is not shown
}

// withProfiles has the API compare the installation with profiles. The facts are those of what is in use.
func (k *knobs) withProfiles(v *site, o *api.Options) {
	o.Profiler = posture.New(posture.Options{
		Store: v.store, Now: v.clock, Anchors: func() []anchor.State { return k.anchors },
		Manager: &posture.Manager{
			Core: func() sm.Config { return k.core }, View: func() (*sm.View, error) { return v.View(), k.blind },
			Administration: func() (sa.Config, bool) { return k.sa, true }, SAKey: func() (bool, error) { return true, nil },
			Standing: func() (standing.Standing, bool) { return standing.Standing{}, false },
		},
	})
}

// rules returns the states of the rules of the strictest profile, by name, and whether it holds.
func (v *site) rules() (states map[string]string, holds bool, score int) {
	var p v1.SecurityProfile
	a := v.call("ann", "GET", "/v1/profile?name=secured-bare-metal-cloud", "")
	v.scene.Check(a.good(), "the profile is answered with %d %s", a.status, &a.body)
	v.scene.Must(json.Unmarshal(a.body.Bytes(), &p))
	states = map[string]string{}
	for _, r := range p.Rules {
		states[r.Rule] = r.State
	}
	return states, p.Holds, p.Score
}

// loweredProtection is T133: an insider lowers one setting after the other.
func loweredProtection(s *drill.Scene) {
	k := &knobs{sa: sa.DefaultConfig()}
	k.sa.Trust.KeyPeriod, k.sa.Source = time.Hour, keys.Derived{Master: s.Master()}
	v := newSite(s, options{
		fabric: drill.SiteOptions{Declared: true, ClassKeys: true, SM: sm.Config{
			SMKey: ib.NewSMKey(0x5EC2E7D2111B0A57), MKey: mkeys.Config{Rotation: keys.RotationConfig{Period: time.Hour, Grace: 5 * time.Minute, Window: 4}},
		}},
		credentials: []account{{name: "ann"}}, api: k.withProfiles,
	})
	red := v.cluster("ann", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	k.core = v.SM
	k.core.Election.Allowed = []sm.AllowedSM{{}}
	if k.core.MKey.Protection == 0 {
		k.core.MKey.Protection = 2 // as the core takes it
	}
	k.anchors = anchored()
	v.Run(time.Minute)
	before, _, best := v.rules()
	spec := v.Options.SM.Topology.Spec

	v.mark()
	turned := 0
	for _, t := range []struct {
		what, rule string
		turn       func(*knobs)
	}{
		{"the declared topology is no longer enforced", "topology-enforced", func(*knobs) {
			v.Step(&sm.TopologySet{Spec: spec, Mode: topospec.Warn, By: "mallory"})
			v.Run(time.Minute)
		}},
		{"the level of protection of M_Keys is 1", "m-key", func(k *knobs) { k.core.MKey.Protection = 1 }},
		{"the SM_Key is that of a product", "sm-key", func(k *knobs) { k.core.SMKey = ib.NewSMKey(1) }},
		{"any Subnet Manager is believed", "allowed-sms", func(k *knobs) { k.core.Election.Allowed = nil }},
		{"the SA_Key never changes", "sa-key", func(k *knobs) { k.sa.Trust.KeyPeriod = 0 }},
		{"every host reads all records", "sa-trust", func(k *knobs) { k.sa.Trust.Model = false }},
		{"source GIDs are not compared", "sa-trust", func(k *knobs) { k.sa.Trust.CheckSGID = false }},
		{"hosts register without bound", "sa-limits", func(k *knobs) { k.sa.Trust.MaxServices = 0 }},
		{"there are no CC_Keys", "cc-key", func(k *knobs) { k.core.ClassKeys.CC.Enable = 0 }},
		{"devices show VS_Keys", "vs-key", func(k *knobs) { k.core.ClassKeys.VS.Readable = true }},
		{"there are no N2N_Keys", "n2n-key", func(k *knobs) { k.core.ClassKeys.N2N.Enable = 0 }},
		{"hosts send MADs without bound", "mad-limiter", func(k *knobs) { k.sa.Limiter = limiter.Config{} }},
		{"the audit log is anchored nowhere", "audit-anchored", func(k *knobs) { k.anchors = nil }},
	} {
		s.Tried("an insider sees to it that %s", t.what)
		was := *k
		s.Check(before[t.rule] == "holds", "rule %s is %q before, so nothing is proven", t.rule, before[t.rule])
		t.turn(k)
		if s.Off(FactsInUse) {
			*k = was // it is the configuration of yesterday that is compared
			v.Step(&sm.TopologySet{Spec: spec, Mode: topospec.Enforce, By: "ann"})
			v.Run(time.Minute)
		}
		now, holds, score := v.rules()
		if s.Check(now[t.rule] == "fails" && !holds && score < best, "%s, and rule %s of the profile is %q, with a score of %d", t.what, t.rule, now[t.rule], score) {
			s.Reported("portcullis service profile: rule %s fails", t.rule)
			turned++
		}
		*k = was
		v.Step(&sm.TopologySet{Spec: spec, Mode: topospec.Enforce, By: "ann"})
		v.Run(time.Minute)
	}
	s.Tried("an insider has the Subnet Manager show nothing, so that nothing can be compared")
	k.blind = fmt.Errorf("the view is not shown")
	now, holds, _ := v.rules()
	s.Check(now["m-key"] == "unknown" && !holds, "what is unknown counts as %q, and the profile holds: %v", now["m-key"], holds)
	k.blind = nil
	after, _, score := v.rules()
	s.Check(score == best && fmt.Sprint(after) == fmt.Sprint(before), "after all was put right the score is %d, before %d: %v, before %v", score, best, after, before)
	s.Stopped("the profile is compared with what is in use, whenever it is asked for: %d of %d settings were noticed, and what is unknown holds nothing", turned, 13)
	s.Check(v.delivered("h1", "h5", red), "h1 and h5 do not reach each other")
}

// anchored is an anchor that has the head of the audit log.
func anchored() []anchor.State {
	return []anchor.State{{Name: "elsewhere", Seq: 1 << 40, Written: 1}}
}

// leftOn is T138: memberships without proof, which were to be for an hour, are left on.
func leftOn(s *drill.Scene) {
	k := &knobs{sa: sa.DefaultConfig()}
	v := newSite(s, options{
		credentials: []account{{name: "ann"}, {name: "bob"}}, api: k.withProfiles,
		admission: func(o *admission.Options) { o.Brake = admission.BrakeLimits{Hosts: admission.MaxBrakeHosts, Share: 1} },
	})
	k.core = v.SM
	red := v.cluster("ann", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	kept := adoptions.New(adoptions.Options{Store: v.store, Log: v.log, PKeys: v.admission.Tenancy(), Brake: v.admission, Now: v.clock})
	before, _, _ := v.rules()
	const old = ib.PKey(0x8222)
	const life = time.Hour + time.Minute
	deadline := v.clock().Add(life)
	if s.Off(AdoptionEnd) {
		deadline = v.clock().Add(80 * 24 * time.Hour)
	}

	s.Tried("ann switches proof off for h4 and h7, which were members of %v under another manager, for an hour; she may not confirm it herself; then it is forgotten", old.Base())
	v.mark()
	in := &v1.NewAdoption{Deadline: deadline, Confirm: 2, Reason: "they attest tonight"}
	for _, h := range []string{"h4", "h7"} {
		in.Ports = append(in.Ports, v1.AdoptedPort{GUID: v.GUID(h, 1), Place: v.Place(h, 1), PKeys: []ib.PKey{old}})
	}
	a, err := kept.Start(v.ctx(), "ann", in)
	s.Must(err)
	confirm := v1.AdoptionConfirm{Digest: a.Digest, Confirm: 2}
	_, err = kept.Confirm(v.ctx(), "ann", a.ID, confirm)
	s.Check(err != nil, "who staged it confirms it")
	_, err = kept.Confirm(v.ctx(), "bob", a.ID, confirm)
	s.Must(err)
	_, err = kept.Settle(v.ctx())
	s.Must(err)
	v.sync()
	s.Check(v.delivered("h4", "h7", old), "h4 and h7 do not reach each other, so nothing is proven")
	during, holds, _ := v.rules()
	v.Counted(before["members-proven"] != "fails" && during["members-proven"] == "fails" && !holds, "portcullis service profile: rule members-proven is %s while it is on", during["members-proven"])

	v.Run(life + time.Minute)
	for range 2 { // the second time, that they are gone was read
		_, err = kept.Settle(v.ctx())
		s.Must(err)
		v.sync()
	}
	s.Check(!v.delivered("h4", "h7", old), "a minute after the end h4 and h7, of which nothing is proven, reach each other")
	for _, h := range []string{"h4", "h7"} {
		s.Check(len(v.TenantKeys(v.SwitchPort(h, 1))) == 0, "a minute after the end the switch port of %s holds %v", h, v.TenantKeys(v.SwitchPort(h, 1)))
	}
	after, _, _ := v.rules()
	if s.Check(after["members-proven"] == before["members-proven"], "rule members-proven is %s after the end", after["members-proven"]) {
		s.Stopped("what is on without proof has an end that two persons agreed on, and ends by itself; the profile fails until then")
	}
	_, err = kept.Start(v.ctx(), "ann", &v1.NewAdoption{Deadline: v.clock().AddDate(1, 0, 0), Confirm: 2, Reason: "for ever", Ports: in.Ports})
	s.Check(err != nil, "proof may be switched off for a year")
}
