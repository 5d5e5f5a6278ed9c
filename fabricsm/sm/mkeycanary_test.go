package sm_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyimport"
)

// TestCoreShowsNoKey: keys that are given out, changed, given back and given out
// again are in no event, no view, no problem and no fact as it is written down.
func TestCoreShowsNoKey(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 4})
	e := newEnv(t, list(t, l, err), dual, rotating(t), 1)
	scan := keystest.New(theirKey)
	plant := func() {
		for g, k := range e.mkeysNow() {
			var b [8]byte
			for i := range b {
				b[i] = byte(k.Reveal() >> (56 - 8*i))
			}
			scan.Bytes(g.String(), b[:])
		}
	}
	e.start()
	e.mustSettle(time.Minute)
	plant()
	e.run(80 * time.Second) // a rotation, and its end
	plant()
	e.give(hosts(l)[0].node.Name, theirKey, 1) // by root on that host
	e.run(5 * time.Second)
	e.step(&sm.ReleaseKeys{})
	e.run(5 * time.Second)
	e.step(&sm.ResumeKeys{})
	e.run(5 * time.Second)
	plant()
	events := e.takeEvents()
	if len(events) < 10 {
		t.Fatalf("%d events, want more to scan", len(events))
	}
	for _, ev := range events {
		scan.Clean(t, fmt.Sprintf("%T", ev), fmt.Appendf(nil, "%v %+v %#v", ev, ev, ev))
	}
	view := fmt.Appendf(nil, "%+v %+v", e.view, e.view.MKeys)
	for i := range e.view.Fabric.Ports() {
		view = fmt.Appendf(view, "%+v", e.view.MKey(i))
	}
	scan.Clean(t, "view", view)
	scan.Clean(t, "problems", fmt.Appendf(nil, "%q", e.problems()))
	for i := range e.facts {
		line, err := json.Marshal(e.facts[i])
		if err != nil {
			t.Fatal(err)
		}
		scan.Clean(t, string(e.facts[i].Kind), line)
	}
	scan.CleanValue(t, mkeys.Config{Import: &keyimport.Keys{Keys: imported(e.mkeysNow())}})
}
