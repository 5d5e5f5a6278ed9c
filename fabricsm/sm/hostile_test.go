package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestGarbledWire flips bytes of what is received, at every stage of a
// bring-up: the core may be misled for a while, but neither crash nor wedge.
func TestGarbledWire(t *testing.T) {
	for seed := range uint64(40) {
		e := newEnv(t, tree(t, 8, 8), sim.Options{Seed: seed, LoseSilently: true}, sm.Config{}, seed)
		e.bad = chaos{garble: 0.2, twice: 0.05}
		e.start()
		e.run(3 * time.Second)
		e.bad = chaos{}
		e.start()
		e.mustSettle(3 * time.Minute)
		if bad := inactive(e.view); len(bad) > 0 {
			t.Errorf("seed %d: not Active: %v", seed, bad)
		}
	}
}

// FuzzReceived steps any bytes in as a MAD that nobody asked for, and as the
// answer to the first request, on a fabric that is settled.
func FuzzReceived(f *testing.F) {
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice}, nil, ib.MKey{})
	f.Add(m[:], uint16(1), uint32(0))
	mad.NewSMP(&m, mad.Header{Method: mad.MethodSet, Attr: mad.AttrSMInfo, Mod: 1}, &mad.Route{}, ib.MKey{})
	f.Add(m[:], uint16(7), uint32(0))
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGetResp, Attr: mad.AttrNodeInfo}, &mad.Route{}, ib.MKey{})
	f.Add(m[:], uint16(0xFFFF), uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, lid uint16, qp uint32) {
		e := newEnv(t, tree(t, 4, 4), sim.Options{}, sm.Config{}, 1)
		e.start()
		var m mad.MAD
		copy(m[:], b)
		for id := range e.out {
			r := m
			e.core.Step(e.now, &sm.Reply{ID: id, MAD: r})
		}
		e.start()
		e.mustSettle(time.Minute)
		e.core.Step(e.now, &sm.Received{MAD: m, LID: ib.LID(lid), QP: qp})
		if n := e.sets(); n == 0 {
			t.Error("nothing was ever set")
		}
	})
}

// TestTrapStorm: however many traps a source sends, it costs a bounded number
// of requests, and each trap is repressed.
func TestTrapStorm(t *testing.T) {
	e := newEnv(t, tree(t, 8, 8), sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	sw := e.view.Fabric.Switches()[0]
	lid := e.view.Fabric.Port(e.view.Fabric.Node(sw).FirstPort).LID
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: 0x77}, nil, ib.MKey{})
	if err := mad.Encode(m.Data(), &mad.Trap128{NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: mad.TrapLinkStateChange}, SwitchLID: lid}); err != nil {
		t.Fatal(err)
	}
	before, answers := e.smps["Get SwitchInfo"], 0
	for range 1000 {
		out := e.core.Step(e.now, &sm.Received{MAD: m, LID: lid})
		for _, a := range out.Answer {
			if a.MAD.Method() != mad.MethodTrapRepress || a.MAD.TID() != 0x77 || a.LID != lid {
				t.Fatalf("answer to a trap: %v %v to LID %v", a.MAD.Method(), a.MAD.TID(), a.LID)
			}
			answers++
		}
		e.smps["Get SwitchInfo"] += len(out.Send)
		e.now = e.now.Add(time.Microsecond)
	}
	if answers != 1000 {
		t.Errorf("%d of 1000 traps repressed", answers)
	}
	if n := e.smps["Get SwitchInfo"] - before; n > 2 {
		t.Errorf("1000 traps in a millisecond caused %d requests", n)
	}
}

// TestSMInfoIsGuarded: anybody may ask, nobody may command without the SM_Key.
func TestSMInfoIsGuarded(t *testing.T) {
	e := newEnv(t, tree(t, 4, 4), sim.Options{}, sm.Config{Priority: 5, SMKey: ib.NewSMKey(0x1234)}, 1)
	e.start()
	e.mustSettle(10 * time.Second)
	ask := func(method mad.Method, mod uint32, key uint64) (out sm.Output) {
		var m mad.MAD
		mad.NewSMP(&m, mad.Header{Method: method, Attr: mad.AttrSMInfo, Mod: mod}, nil, ib.MKey{})
		if err := mad.Encode(m.Data(), &mad.SMInfo{GUID: 0x99, SMKey: ib.NewSMKey(key), SMState: ib.SMMaster}); err != nil {
			t.Fatal(err)
		}
		return e.core.Step(e.now, &sm.Received{MAD: m, LID: 3})
	}
	out := ask(mad.MethodGet, 0, 0)
	if len(out.Answer) != 1 {
		t.Fatalf("Get SMInfo: %d answers", len(out.Answer))
	}
	var si mad.SMInfo
	if err := mad.Decode(out.Answer[0].MAD.Data(), &si); err != nil {
		t.Fatal(err)
	}
	if si.GUID != e.cfg.PortGUID || si.Priority != 5 || si.SMState != ib.SMMaster || !si.SMKey.IsZero() {
		t.Errorf("SMInfo: %+v", si)
	}
	out = ask(mad.MethodSet, uint32(mad.SMInfoHandover), 0x9999)
	if len(out.Answer) != 0 || len(out.Events) != 1 {
		t.Errorf("HANDOVER with a wrong SM_Key: %d answers, events %v", len(out.Answer), out.Events)
	}
}
