package testbed_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// keyed is a fabric with keys of classes that was brought up.
func keyed(t *testing.T, seed uint64) *testbed.Stage {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	m, err := keys.DrawMaster(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	on := sm.ClassKeyConfig{Enable: sm.KeyEnabled, Lease: 60}
	s, err := testbed.New(testbed.Options{
		Netlist: l, Manager: "sm", Fabric: sim.Options{LoseSilently: true, Device: sim.Modern()}, Seed: seed,
		SM: sm.Config{MKey: mkeys.Config{Places: keyplace.Seen}, ClassKeys: sm.ClassKeysConfig{Source: keys.Derived{Master: m}, CC: on, VS: on, N2N: on}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Want(sm.Intent{Revision: 1})
	if err := s.Settle(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKeysOfClasses: in a settled stage all keys are distributed. A restart finds them again and writes nothing, and the
// same seed produces the same events.
func TestKeysOfClasses(t *testing.T) {
	s, again := keyed(t, 5), keyed(t, 5)
	for _, c := range s.KeyStatus().Classes {
		if c.Settled != len(s.List.Nodes) || c.Working+c.Absent+c.Failing > 0 {
			t.Errorf("%+v, want all %d devices settled", c, len(s.List.Nodes))
		}
	}
	sets := 0
	for _, x := range []*testbed.Stage{s, again} {
		x.Crash()
		if x.KeyStatus() != nil {
			t.Error("something is left of the manager of keys")
		}
		x.OnSend = func(r *sm.Request) bool {
			if r.MAD.Method() == mad.MethodSet {
				sets++
			}
			return false
		}
		in := x.Intent()
		x.SM.IntentWait = time.Minute
		x.Start()
		x.Want(in)
		if err := x.Settle(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		x.Run(10 * time.Minute)
	}
	if sets != 0 {
		t.Errorf("%d Sets after a restart on a settled fabric", sets)
	}
	if d := cmp.Diff(told(s), told(again)); d != "" {
		t.Errorf("the same seed differs (-once +again):\n%s", d)
	}
}

// TestKeysOfClassesListed: the manager of keys reports a wrong key, and the core lists it with its verdict. Duplicate
// answers count once.
func TestKeysOfClassesListed(t *testing.T) {
	s := keyed(t, 1)
	s.Delays = func(*transport.Packet) []time.Duration { return []time.Duration{0, time.Millisecond} }
	rogue, err := s.Fabric.Station("h1", false)
	if err != nil {
		t.Fatal(err)
	}
	p := transport.Packet{LID: s.Fabric.PortInfo("sm", 1).LID, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassVendorVS, ClassVersion: 1, Method: mad.MethodGet, Attr: mad.VSAttrKeyInfo, TID: 1})
	if got := rogue.Exchange([]transport.Packet{p}, nil); len(got) != 0 {
		t.Fatal("a request without the key was answered")
	}
	mark := s.Mark()
	s.Run(5 * time.Second)
	var counted, listed bool
	for _, h := range s.Since(mark) {
		switch e := h.Event.(type) {
		case *sm.ClassKeyViolation:
			counted = counted || e.Kind == keys.VSKey && e.GUID == s.GUID("sm", 1) && e.Count == 1
		case *violation.Violation:
			listed = listed || e.Kind == violation.BadVSKey && e.GUID == s.GUID("h1", 1) && e.Verdict == violation.Confirmed
		}
	}
	if !counted || !listed {
		t.Errorf("counted %v, listed with its verdict %v: %q", counted, listed, told(s))
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}
