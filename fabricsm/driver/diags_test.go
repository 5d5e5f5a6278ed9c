package driver_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestDiagnosticsAgree lets unchanged infiniband-diags judge a fabric that this
// subnet manager runs.
func TestDiagnosticsAgree(t *testing.T) {
	ibsimtest.Need(t, "ibnetdiscover", "iblinkinfo", "ibtracert", "smpquery", "sminfo", "perfquery")
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 16, Radix: 8})
	lab := ibsimtest.Start(t, text(t, l, err))
	m := manage(t, lab, &driver.Memory{}, false)
	v := m.until("a settled fabric", settled)

	t.Run("ibnetdiscover", func(t *testing.T) {
		got := cablesOf(ibsimtest.Diag(t, lab, "sm", "ibnetdiscover"))
		if want := netlistCables(l); !slices.Equal(got, want) {
			t.Errorf("ibnetdiscover finds %d cable ends, the netlist has %d:\n%v\n%v", len(got), len(want), got, want)
		}
	})
	t.Run("iblinkinfo", func(t *testing.T) {
		out := ibsimtest.Diag(t, lab, "sm", "iblinkinfo", "-l")
		active := strings.Count(out, "Active/")
		for _, bad := range []string{"Initialize/", "Armed/"} {
			if strings.Contains(out, bad) {
				t.Errorf("iblinkinfo shows %s", bad)
			}
		}
		if want := len(netlistCables(l)); active < want {
			t.Errorf("iblinkinfo shows %d active ports, want %d:\n%s", active, want, out)
		}
	})
	t.Run("ibtracert", func(t *testing.T) {
		f := v.Fabric
		rng := rand.New(rand.NewPCG(1, 2))
		for range 12 {
			a, b := f.EndPorts()[rng.IntN(len(f.EndPorts()))], f.EndPorts()[rng.IntN(len(f.EndPorts()))]
			from, to := f.Port(a).LID, f.Port(b).LID
			out := ibsimtest.Diag(t, lab, "sm", "ibtracert", from.String(), to.String())
			if !strings.Contains(out, "To ") || strings.Contains(out, "Unreachable") {
				t.Errorf("ibtracert %v %v:\n%s", from, to, out)
			}
		}
	})
	t.Run("smpquery", func(t *testing.T) { queries(t, lab, v) })
	t.Run("sminfo", func(t *testing.T) {
		out := ibsimtest.Diag(t, lab, "h1", "sminfo")
		want := fmt.Sprintf("sm lid %v sm guid 0x%x", v.LID, uint64(v.GUID))
		if !strings.Contains(out, want) || !strings.Contains(out, "SMINFO_MASTER") {
			t.Errorf("sminfo: %s want %q", out, want)
		}
	})
	t.Run("perfquery", func(t *testing.T) {
		h := lidOf(t, v, l, "h3")
		if out := ibsimtest.Diag(t, lab, "sm", "perfquery", h.String(), "1"); !strings.Contains(out, "PortXmitData") {
			t.Errorf("perfquery: %s", out)
		}
	})
}

func queries(t *testing.T, lab *ibsimlab.Lab, v *sm.View) {
	f := v.Fabric
	for _, p := range f.EndPorts() {
		port := f.Port(p)
		out := ibsimtest.Diag(t, lab, "sm", "smpquery", "portinfo", port.LID.String(), fmt.Sprint(port.Num))
		for _, want := range []string{
			fmt.Sprintf(`\nLid:\.+%d\n`, port.LID), fmt.Sprintf(`\nSMLid:\.+%d\n`, v.LID),
			`\nLinkState:\.+Active\n`,
		} {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("portinfo of LID %v does not match %q:\n%s", port.LID, want, out)
			}
		}
		if port.Num == 0 {
			continue
		}
		def := ib.DefaultPKeyLimited
		if port.GUID == v.GUID {
			def = ib.DefaultPKeyFull
		}
		sp := f.Port(f.SwitchPortOf(p))
		swLID := f.Port(f.Node(sp.Node).FirstPort).LID
		for what, out := range map[string]string{
			"HCA":         ibsimtest.Diag(t, lab, "sm", "smpquery", "pkeys", port.LID.String(), "1"),
			"switch port": ibsimtest.Diag(t, lab, "sm", "smpquery", "pkeys", swLID.String(), fmt.Sprint(sp.Num)),
		} {
			if got := pkeysOf(out); !slices.Equal(got, []string{def.String()}) {
				t.Errorf("%s of port %v holds %v, want %v alone", what, port.GUID, got, def)
			}
		}
	}
	sw := f.Port(f.Node(f.Switches()[0]).FirstPort).LID
	out := ibsimtest.Diag(t, lab, "sm", "smpquery", "switchinfo", sw.String())
	if want := fmt.Sprintf(`LinearFdbTop:\.+%d\n`, v.Tables.MaxLID); !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("switchinfo does not match %q:\n%s", want, out)
	}
}

var pkeyWord = regexp.MustCompile(`0x[0-9a-f]{4}\b`)

// pkeysOf reads the non-empty entries of a P_Key table as smpquery prints it.
func pkeysOf(out string) (keys []string) {
	for _, k := range pkeyWord.FindAllString(out, -1) {
		if k != "0x0000" {
			keys = append(keys, k)
		}
	}
	return keys
}

var (
	discNode = regexp.MustCompile(`^(?:Switch|Ca|Rt)\s+\d+\s+"([SHR])-([0-9a-f]{16})"`)
	discPort = regexp.MustCompile(`^\[(\d+)\](?:\([0-9a-f]+\))?\s+"[SHR]-([0-9a-f]{16})"\[(\d+)\]`)
)

// cablesOf reads the cable ends that ibnetdiscover prints, sorted.
func cablesOf(out string) (ends []string) {
	node := ""
	for line := range strings.Lines(out) {
		if m := discNode.FindStringSubmatch(line); m != nil {
			node = m[2]
		} else if m := discPort.FindStringSubmatch(line); m != nil {
			ends = append(ends, fmt.Sprintf("%s/%s-%s/%s", node, m[1], m[2], m[3]))
		}
	}
	slices.Sort(ends)
	return ends
}

func netlistCables(l *netlist.Netlist) (ends []string) {
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for num := 1; num < len(n.Ports); num++ {
			if p := n.Ports[num]; p.Peer != "" {
				ends = append(ends, fmt.Sprintf("%016x/%d-%016x/%d", uint64(n.GUID), num, uint64(l.Find(p.Peer).GUID), p.PeerPort))
			}
		}
	}
	slices.Sort(ends)
	return ends
}

func lidOf(t *testing.T, v *sm.View, l *netlist.Netlist, name string) ib.LID {
	t.Helper()
	p := v.Fabric.PortByGUID(l.Find(name).PortGUID(1))
	if p == topo.None {
		t.Fatalf("host %s is not seen", name)
	}
	return v.Fabric.Port(p).LID
}

func grantOf(l *netlist.Netlist, name string, k ib.PKey) sm.Grant {
	n := l.Find(name)
	p := n.Ports[1]
	return sm.Grant{GUID: n.PortGUID(1), PKey: k, Place: ib.Place{Switch: l.Find(p.Peer).GUID, Port: p.PeerPort}}
}

// TestEventsCostLittle changes one thing at a time on a running fabric, and
// counts the SMPs each change takes. The periodic reads of LIDs are off, since
// they would be counted too.
func TestEventsCostLittle(t *testing.T) {
	ibsimtest.Need(t)
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 72, Radix: 36})
	lab := ibsimtest.Start(t, text(t, l, err))
	m := manageAs(t, lab, &driver.Memory{}, sm.Config{Enforcement: sm.Accepted, IntentWait: time.Minute, LIDPeriod: -1})
	m.intents <- sm.Intent{Revision: 1}
	v := m.until("a fabric at rest", rested)
	before := total(v)
	cost := func(what string, most uint64) {
		t.Helper()
		v = m.until(what, func(v *sm.View) bool { return v.Settled && total(v) > before })
		n := total(v) - before
		t.Logf("%s: %d SMPs, Sets so far %v", what, n, sets(v))
		if n > most {
			t.Errorf("%s took %d SMPs, want at most %d", what, n, most)
		}
		before = total(v)
	}
	g := grantOf(l, "h5", 0x8001)
	begin := time.Now()
	m.intents <- sm.Intent{Revision: 2, Grants: []sm.Grant{g}}
	a := event(m, func(e *sm.MembershipApplied) bool { return e.GUID == g.GUID })
	t.Logf("%v after %v", a, time.Since(begin).Round(10*time.Microsecond))
	cost("grant", 8)

	g2 := g
	g2.PKey = 0x8002
	begin = time.Now()
	m.intents <- sm.Intent{Revision: 3, Grants: []sm.Grant{g2}}
	event(m, func(e *sm.MembershipApplied) bool { return e.PKey == 0x8002 })
	t.Logf("moved after %v", time.Since(begin).Round(10*time.Microsecond))
	cost("tenant move", 8)

	ibsimtest.Console(t, lab, `unlink "h5"[1]`)
	event(m, func(e *sm.PortGone) bool { return e.GUID == g.GUID })
	cost("host down", 30)

	begin = time.Now()
	ibsimtest.Console(t, lab, `relink "h5"[1]`)
	event(m, func(e *sm.PortPlaced) bool { return e.GUID == g.GUID })
	event(m, func(e *sm.MembershipApplied) bool { return e.GUID == g.GUID })
	t.Logf("host up and admitted after %v", time.Since(begin).Round(10*time.Microsecond))
	cost("host up", 40)

	m.intents <- sm.Intent{Revision: 4}
	r := event(m, func(e *sm.MembershipRemoved) bool { return e.GUID == g.GUID && e.PKey == 0x8002 })
	if !r.HCAProven {
		t.Errorf("%v: the HCA was there to be asked", r)
	}
	cost("release", 8)
}
