package threats

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/topospec/verify"
)

// breaches are what the drills of identity and cables do where the topology is declared, by the threat.
func breaches(threat string) []breach {
	switch threat {
	case "T17":
		return []breach{
			{
				tried:   "h7 boots with the GUIDs of h1 of tenant A",
				do:      func(t *drill.Site) { t.Replug("h7", t.List.Find("h1").GUID) },
				at:      at7,
				verdict: verify.Spoof,
			},
			{
				tried:   "h7 takes the GUIDs of h1 without a boot, and keeps its M_Key",
				do:      func(t *drill.Site) { t.Rename("h7", t.List.Find("h1").GUID) },
				at:      at7,
				verdict: verify.Spoof,
			},
			{
				tried:   "h7 boots with the GUID of the leaf switch of h1",
				do:      func(t *drill.Site) { t.Replug("h7", t.List.Find("leaf1").GUID) },
				at:      at7,
				verdict: verify.Spoof,
			},
		}
	case "T18":
		return []breach{{
			tried: "h2 of tenant B is switched off, and h7 boots with its GUIDs",
			before: func(t *drill.Site) {
				t.Scene.Must(t.Fabric.PowerOff("h2"))
				t.Collect()
			},
			do:      func(t *drill.Site) { t.Replug("h7", t.List.Find("h2").GUID) },
			at:      at7,
			verdict: verify.Spoof,
		}}
	case "T19":
		return []breach{{
			tried:   "h7 boots with an unknown GUID",
			do:      func(t *drill.Site) { t.Replug("h7", 0x00BAD00000000001) },
			at:      at7,
			verdict: verify.Unknown,
		}}
	case "T20":
		return []breach{{
			tried:   "h7 boots with the GUID of the manager",
			do:      func(t *drill.Site) { t.Replug("h7", t.List.Find("sm").GUID) },
			at:      at7,
			verdict: verify.Spoof,
		}}
	case "T21":
		return []breach{
			{
				tried:   "h7 shows a switch with the GUID of its adapter, and three hosts behind it",
				do:      func(t *drill.Site) { replace(t, "h7", t.List.Find("h7").GUID, ghosts(t)) },
				at:      at7,
				verdict: verify.TypeMismatch,
				after:   gotNothing(sim.Endpoint{Node: "fake"}, drill.Port("ghost1"), drill.Port("ghost2"), drill.Port("ghost3")),
			},
			{
				tried:   "h7 shows a tree of 600 switches",
				do:      func(t *drill.Site) { tree(t, "h7", 600) },
				at:      at7,
				verdict: verify.TypeMismatch,
				after:   gotNothing(sim.Endpoint{Node: treeName(0)}, sim.Endpoint{Node: treeName(1)}, sim.Endpoint{Node: treeName(599)}),
			},
		}
	case "T22":
		return []breach{{
			tried:   "h7 takes the GUIDs of h1 while its link is up",
			do:      func(t *drill.Site) { t.Must(t.Fabric.SetGUIDs("h7", t.List.Find("h1").GUID, t.List.Find("h1").GUID)) },
			at:      at7,
			verdict: verify.Spoof,
			within:  25 * time.Minute,
		}}
	case "T23":
		return []breach{{
			tried:   "h7 shows the GUIDs of h1 for 50 s of every 90 s",
			do:      func(t *drill.Site) { alternate(t, 80, func() bool { return isOff(t, t.Place("h7", 1)) }) },
			at:      at7,
			verdict: verify.Spoof,
			after: func(t *drill.Site, _ []ib.Place) {
				alternate(t, 10, func() bool { return false })
				t.Scene.Check(isOff(t, t.Place("h7", 1)), "the port is on again after it showed its own GUID")
			},
		}}
	case "T24":
		return []breach{{
			tried: "h4 and h7 swap their GUIDs",
			do: func(t *drill.Site) {
				four, seven := t.List.Find("h4").GUID, t.List.Find("h7").GUID
				t.Replug("h4", seven)
				t.Replug("h7", four)
			},
			at:      func(t *drill.Site) []ib.Place { return []ib.Place{t.Place("h4", 1), t.Place("h7", 1)} },
			verdict: verify.Swapped,
		}}
	case "T26":
		var all []breach
		for _, odd := range []struct {
			what    string
			guid    ib.GUID
			verdict verify.Verdict
		}{
			{"a GUID of a group of devices", 0x0100_0000_0000_0001, verify.Malformed},
			{"a GUID that begins as a subnet prefix does", 0xFE80_0000_0000_0001, verify.Malformed},
			{"its GUID with the bytes in the other order", 0, verify.Unknown},
		} {
			all = append(all, breach{
				tried: "h7 boots with " + odd.what,
				do: func(t *drill.Site) {
					guid := odd.guid
					if guid == 0 {
						guid = swapped(t.List.Find("h7").GUID)
					}
					t.Replug("h7", guid)
				},
				at: at7, verdict: odd.verdict,
			})
		}
		return all
	default:
		return cableBreaches(threat)
	}
}

// cableBreaches are those of breaches that need hands.
func cableBreaches(threat string) []breach {
	switch threat {
	case "T28":
		return []breach{{
			tried:   "the cables of the two adapters of h3 are crossed while it is switched off",
			netlist: twoRails(),
			do:      func(t *drill.Site) { swap(t, "h3", "h3-2") },
			at:      func(t *drill.Site) []ib.Place { return []ib.Place{t.Place("h3", 1), t.Place("h3-2", 1)} },
			verdict: verify.IntraHostSwap,
		}}
	case "T148":
		return []breach{{
			tried:   "the cables of h4 and h7 are swapped while both are switched off",
			do:      func(t *drill.Site) { swap(t, "h4", "h7") },
			at:      func(t *drill.Site) []ib.Place { return []ib.Place{t.Place("h4", 1), t.Place("h7", 1)} },
			verdict: verify.Swapped,
		}}
	case "T149":
		return []breach{{
			tried: "a free port of a leaf switch is cabled to a switch of another fabric, with a master of its own",
			do: func(t *drill.Site) {
				t.Must(t.Fabric.Insert(foreignSwitch(sim.Endpoint{Node: "leaf3", Port: freePort})))
				other := netlist.NewNode(ib.NodeCA, "theirs", 0x00BAD00000000100, 1)
				other.Ports[1].Peer, other.Ports[1].PeerPort = "foreign", 2
				t.Must(t.Fabric.Insert(other))
			},
			at:      atFree("leaf3"),
			verdict: verify.Unplanned,
			after:   gotNothing(sim.Endpoint{Node: "foreign"}, drill.Port("theirs")),
		}}
	case "T150":
		return []breach{
			{
				tried:   "a switch is put between h7 and its port",
				do:      func(t *drill.Site) { replace(t, "h7", fakeGUID, ghosts(t)) },
				at:      at7,
				verdict: verify.TypeMismatch,
				after:   gotNothing(sim.Endpoint{Node: "fake"}, drill.Port("ghost1")),
			},
			{
				tried: "a switch is plugged into a free port",
				do: func(t *drill.Site) {
					t.Must(t.Fabric.Insert(foreignSwitch(sim.Endpoint{Node: "leaf3", Port: freePort})))
				},
				at:      atFree("leaf3"),
				verdict: verify.Unplanned,
				after:   gotNothing(sim.Endpoint{Node: "foreign"}),
			},
		}
	case "T151":
		return []breach{{
			tried:   "the HCA of h7 is replaced by another one without an announcement",
			do:      func(t *drill.Site) { exchange(t, "h7", 0x00BAD00000000200) },
			at:      at7,
			verdict: verify.Unknown,
			after:   gotNothing(drill.Port("spare")),
		}}
	default:
		return nil
	}
}

// freePort is the port of each leaf that has no cable.
const freePort = 4

func atFree(leaf string) func(*drill.Site) []ib.Place {
	return func(t *drill.Site) []ib.Place { return []ib.Place{{Switch: t.List.Find(leaf).GUID, Port: freePort}} }
}

func foreignSwitch(at sim.Endpoint) netlist.Node {
	n := netlist.NewNode(ib.NodeSwitch, "foreign", fakeGUID, 8)
	n.Ports[1].Peer, n.Ports[1].PeerPort = at.Node, at.Port
	return n
}

// ghosts are three hosts that are not there; the second has the GUID of h1.
func ghosts(t *drill.Site) []netlist.Node {
	return []netlist.Node{fakeHost("ghost1", 0xBAD00010), fakeHost("ghost2", t.List.Find("h1").GUID), fakeHost("ghost3", 0xBAD00030)}
}

// twoRails is a fabric in which each host has two adapters, on different leaves.
func twoRails() *netlist.Netlist {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 7, HCAs: 2, Radix: 12, Leaves: 3, Spines: 2})
	if err != nil {
		panic("drill: " + err.Error()) // the shape is fixed
	}
	return l
}

func swapped(g ib.GUID) (out ib.GUID) {
	for range 8 {
		out, g = out<<8|g&0xFF, g>>8
	}
	return out
}

// swap exchanges the cables of two adapters that are switched off.
func swap(t *drill.Site, a, b string) {
	for _, h := range []string{a, b} {
		t.Must(t.Fabric.PowerOff(h))
	}
	t.Collect()
	t.Run(time.Second)
	t.Must(t.Fabric.Swap(drill.Port(a), drill.Port(b)))
	for _, h := range []string{a, b} {
		t.Must(t.Fabric.PowerOn(h))
	}
	t.Collect()
}

// exchange takes a host off its cable and puts a new adapter there.
func exchange(t *drill.Site, host string, guid ib.GUID) {
	at := t.SwitchPort(host, 1)
	t.Pull(host)
	t.Run(time.Second)
	n := netlist.NewNode(ib.NodeCA, "spare", guid, 1)
	n.Ports[1].Peer, n.Ports[1].PeerPort = at.Node, at.Port
	t.Must(t.Fabric.Insert(n))
	t.Collect()
}

// alternate lets h7 show its own GUIDs and those of h1 in turn.
func alternate(t *drill.Site, times int, done func() bool) {
	own, stolen := t.List.Find("h7").GUID, t.List.Find("h1").GUID
	for range times {
		t.Must(t.Fabric.SetGUIDs("h7", own, own))
		t.Run(40 * time.Second)
		t.Must(t.Fabric.SetGUIDs("h7", stolen, stolen))
		t.Run(50 * time.Second)
		if done() {
			return
		}
	}
}

// playBreaches returns a play that goes through the breaches of a threat.
func playBreaches(threat string, also ...func(*drill.Scene)) func(*drill.Scene) {
	return func(s *drill.Scene) {
		for _, b := range breaches(threat) {
			b.play(s)
		}
		for _, play := range also {
			play(s)
		}
	}
}
