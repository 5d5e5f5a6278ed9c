package testbed_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

const key ib.PKey = 0x8001

// settled is a fabric with a tenant at h1 and h5 that was brought up.
func settled(t *testing.T, seed uint64) *testbed.Stage {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	s, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm", Fabric: sim.Options{LoseSilently: true}, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Want(sm.Intent{Revision: 1, Grants: []sm.Grant{s.GrantOf("h1", 1, key), s.GrantOf("h5", 1, key)}})
	if err := s.Settle(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	return s
}

func told(s *testbed.Stage) (out []string) {
	for _, h := range s.Events() {
		out = append(out, h.At.String()+" "+h.Event.String())
	}
	return out
}

// TestSame: the same seed produces the same events, and virtual time passes as requested.
func TestSame(t *testing.T) {
	a, b := settled(t, 3), settled(t, 3)
	for _, s := range []*testbed.Stage{a, b} {
		before := s.Now()
		if err := s.Fabric.Bounce("leaf1", 2); err != nil {
			t.Fatal(err)
		}
		s.Run(time.Hour)
		if took := s.Now() - before; took != time.Hour || s.Err() != nil {
			t.Fatalf("an hour took %v, %v", took, s.Err())
		}
	}
	if d := cmp.Diff(told(a), told(b)); d != "" {
		t.Errorf("the same seed differs (-a +b):\n%s", d)
	}
}

// TestCrash: a manager that starts again on a settled fabric knows the saved facts, and writes nothing.
func TestCrash(t *testing.T) {
	s := settled(t, 1)
	s.Crash()
	if s.Running() || s.View() != nil {
		t.Error("something is left of the manager")
	}
	s.Run(time.Minute)
	sets := 0
	s.OnSend = func(r *sm.Request) bool {
		if r.MAD.Method() == mad.MethodSet {
			sets++
		}
		return false
	}
	in := s.Intent()
	s.SM.IntentWait = time.Minute
	s.Start()
	s.Want(in)
	if err := s.Settle(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if sets != 0 {
		t.Errorf("%d Sets after a restart on a settled fabric, want none", sets)
	}
}

// TestAnswers: the answer to a request has its transaction id, attribute, modifier and origin. Any other answer is
// unsolicited.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		forge func(p *transport.Packet)
		stray bool
	}{
		{"true", func(*transport.Packet) {}, false},
		{"transaction", func(p *transport.Packet) { p.MAD.SetTID(p.MAD.TID() ^ 1) }, true},
		{"attribute", func(p *transport.Packet) { p.MAD.SetAttr(mad.AttrSMInfo) }, true},
		{"modifier", func(p *transport.Packet) { p.MAD.SetMod(p.MAD.Mod() + 1) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := settled(t, 1)
			mark := s.Mark()
			s.OnAnswer = func(p *transport.Packet) bool {
				if p.MAD.Method() == mad.MethodGetResp {
					tt.forge(p)
				}
				return false
			}
			if err := s.Fabric.Bounce("leaf1", 2); err != nil {
				t.Fatal(err)
			}
			s.Collect()
			s.Run(time.Second)
			stray := false
			for _, h := range s.Since(mark) {
				if _, ok := h.Event.(*sm.StrayAnswer); ok {
					stray = true
				}
			}
			if stray != tt.stray {
				t.Errorf("told of answers that nobody asked for: %v, want %v; %q", stray, tt.stray, told(s))
			}
		})
	}
}

// TestUntil: the condition is checked after every event, and Grant and Withdraw change the intent.
func TestUntil(t *testing.T) {
	s := settled(t, 1)
	g := s.GrantOf("h3", 1, key)
	if g.GUID == 0 || g.Place.IsZero() || s.GUID("h3", 9) != 0 || !s.Place("nobody", 1).IsZero() {
		t.Fatalf("grant %+v", g)
	}
	holds := func() bool { return s.Fabric.PKeyAt("h3", 1, 1) == key }
	s.Grant(g)
	if !s.Until(time.Second, holds) {
		t.Fatal("a grant is not applied")
	}
	at := s.SwitchPort("h3", 1)
	s.Withdraw(g)
	if err := s.Settle(10 * time.Second); err != nil || holds() || len(s.Fabric.PKeys(at.Node, at.Port)) != 1 {
		t.Errorf("after the withdrawal: %v, h3 holds the P_Key: %v, its switch port has %v", err, holds(), s.Fabric.PKeys(at.Node, at.Port))
	}
	before := s.Now()
	if s.Until(time.Second, func() bool { return false }) || s.Now()-before != time.Second {
		t.Errorf("waited %v for what never holds", s.Now()-before)
	}
}
