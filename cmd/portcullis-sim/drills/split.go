package drills

import (
	"maps"
	"slices"
	"strings"
	"time"

	"portcullis/api/admission"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// splitFabric is T143: whatever part of the fabric is cut off, and whether the service restarts meanwhile, no port that was
// not cut loses a packet, and all tables and LIDs are as before when the cables are back.
func splitFabric(s *drill.Scene) {
	v := newSite(s, options{
		credentials: []account{{name: "ann"}},
		rails:       map[string]string{"h8": "h7"},
		fabric:      drill.SiteOptions{SM: sm.Config{IntentWait: 30 * time.Second}},
		admission: func(o *admission.Options) {
			if s.Off(SightRule) {
				o.Judge = withdrawing{}
			}
		},
	})
	byLeaf := map[string][]string{}
	for _, h := range hosts {
		leaf := v.SwitchPort(h, 1).Node
		byLeaf[leaf] = append(byLeaf[leaf], h)
	}
	near := v.SwitchPort("sm", 1).Node
	red := v.cluster("ann", "red", "h1", "h2", "h3", "h4", "h5", "h6", "h7")
	pairs := 0
	for _, leaf := range slices.Sorted(maps.Keys(byLeaf)) {
		// The rail that flaps is no victim, and the way over a spine switch is cut.
		list := slices.DeleteFunc(slices.Clone(byLeaf[leaf]), func(h string) bool { return h == "h7" })
		for i := range max(0, len(list)-1) {
			v.VictimOf(list[i], list[i+1], red)
			pairs++
		}
	}
	other := byLeaf[v.SwitchPort("h8", 1).Node][0]
	if !s.Check(len(byLeaf) > 2 && pairs > 2 && other != "h7" && v.SwitchPort("h8", 1).Node != near, "the hosts behind leaf switches are %v", byLeaf) {
		return
	}
	before := v.tables()
	holds := func(when string) {
		now := v.tables()
		s.Check(maps.Equal(now, before), "%s, ports have other LIDs or P_Keys: %v, before %v", when, now, before)
		for _, h := range hosts {
			if v.rails[h] == "" {
				host, err := v.admission.Host(v.ctx(), h)
				s.Must(err)
				s.Check(host.Status.Phase == v1.PhaseAdmitted, "%s, host %s is %s: %+v", when, h, host.Status.Phase, host.Status.Guards)
			}
		}
	}

	s.Tried("one rail of a host with two flaps")
	v.Attack()
	for range 3 {
		v.unplug("h7")
		v.sync()
		s.Check(v.delivered("h8", other, red), "while the rail of h7 is down, its other rail does not reach %s", other)
		v.plug("h7")
		v.sync()
	}
	v.Reported(time.Minute, "that the port of h7 is not seen", portGone(v.GUID("h7", 1)))
	holds("after a rail flapped")

	var spines []string
	for _, n := range v.List.Nodes {
		if n.Type == ib.NodeSwitch && byLeaf[n.Name] == nil && n.Name != near {
			spines = append(spines, n.Name)
		}
	}
	s.Tried("the spine switches %v lose power, one after the other, until the fabric is split", spines)
	for _, spine := range spines {
		s.Must(v.Fabric.PowerOff(spine))
		v.notice()
		v.blind()
		holds("without spine " + spine)
	}
	v.wantSight(v1.SightPartly)

	s.Tried("the service is restarted in the split fabric")
	v.Start()
	v.restartService()
	v.Run(10 * time.Second)
	v.blind()
	holds("restarted in the split fabric")
	v.wantSight(v1.SightPartly)

	s.Tried("the spine switches have power again")
	for _, spine := range spines {
		s.Must(v.Fabric.PowerOn(spine))
		v.notice()
	}
	v.blind()
	v.sync()
	holds("with all spine switches")
	v.wantSight(v1.SightClear)
	told, err := (events.Book{Store: v.store}).List(v.ctx(), v1.EventQuery{})
	s.Must(err)
	for _, want := range []string{events.FabricBlind, events.FabricSeen} {
		s.Check(slices.ContainsFunc(told.Items, func(e v1.Event) bool { return e.Type == want }), "no event %s", want)
	}
	s.Stopped("what is cut off keeps what it has: the Subnet Manager is partly blind and freezes, also when it is started into a split fabric")
}

// tables lists LID and P_Keys of each host's adapter and of its switch port, by host.
func (v *site) tables() map[string]string {
	out := map[string]string{}
	for _, h := range hosts {
		var b strings.Builder
		b.WriteString(v.LID(h).String())
		for _, keys := range [][]ib.PKey{v.Fabric.PKeys(h, 1), v.TenantKeys(v.SwitchPort(h, 1))} {
			b.WriteString(" /")
			for _, k := range keys {
				b.WriteString(" " + k.String())
			}
		}
		out[h] = b.String()
	}
	return out
}

// wantSight fails the drill unless the sight is recorded as so.
func (v *site) wantSight(state string) {
	rec, err := records.Sights().Get(v.ctx(), v.store, records.Master)
	v.scene.Must(err)
	v.scene.Check(rec.Value.State == state, "the Subnet Manager is %q, want %q: %+v", rec.Value.State, state, rec.Value)
}
