//go:build flood

package driver_test

import (
	"crypto/rand"
	"runtime"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// TestFloodsOfSMPsBlindNobody: two hosts send packets to the manager as fast as the
// simulator's socket takes them, by ways and with bytes of their choice. The standby stays
// standby, no device is lost from sight, a membership is granted to another host, little
// memory is used, and the event names the place of the flooder. It takes all CPUs that there are, so
// it runs alone: make floods.
func TestFloodsOfSMPsBlindNobody(t *testing.T) {
	for _, kind := range []string{"SMInfo", "traps", "communication management"} {
		t.Run(kind, func(t *testing.T) { floodOf(t, kind) })
	}
}

const smFloodTime = 8 * time.Second

func floodOf(t *testing.T, kind string) {
	l, err := floodFabric()
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, list: l, sock: "portcullis-" + rand.Text()}
	t.Cleanup(startOther(t, "simulator", simulatorEnv+"="+p.sock))
	first := p.run("sm", 9, "h20", &driver.Memory{})
	v := first.until("a settled fabric", rested)
	second := p.run("h20", 5, "sm", &driver.Memory{})
	second.until("a standby", func(v *sm.View) bool { return v.State == ib.SMStandby })
	before := heap()
	for _, m := range []*contender{first, second} {
		for len(m.events) > 0 {
			<-m.events // of the start
		}
	}

	flooders := []string{"h1", "h30"}
	for _, h := range flooders {
		stop := startFlooder(t, &floodOrder{
			Socket: p.sock, Node: h, Kind: kind, To: v.LID, Routes: wanderings(t, l, h, "sm", 400),
		})
		defer stop()
	}
	began := time.Now()
	guid := l.Find("h7").PortGUID(1)
	move := sm.Grant{GUID: guid, PKey: 0x8002, Place: v.Fabric.PlaceOf(v.Fabric.PortByGUID(guid))}
	first.intents <- sm.Intent{Revision: 2, Grants: []sm.Grant{move}}

	var granted time.Duration
	named := make(map[ib.Place]bool)
	var most uint64
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < smFloodTime {
		select {
		case e := <-first.events:
			switch e := e.(type) {
			case *sm.StateChanged, *sm.NodeUnreachable, *sm.PortGone:
				t.Errorf("after %v: %v", time.Since(began), e)
			case *sm.MembershipApplied:
				if e.GUID == guid {
					granted = time.Since(began)
				}
			case *sa.Violation:
				if e.Verdict == trust.Flood {
					named[e.Place] = true
				}
			}
		case e := <-second.events:
			if e, ok := e.(*sm.StateChanged); ok && e.State != ib.SMStandby {
				t.Errorf("after %v the standby: %v", time.Since(began), e)
			}
		case <-tick.C:
			most = max(most, heap())
		}
	}
	if granted == 0 || granted > 2*time.Second {
		t.Errorf("a membership was granted after %v, want at most 2s", granted)
	}
	for _, h := range flooders {
		id := v.Fabric.PortByGUID(l.Find(h).PortGUID(1))
		if id == topo.None || !named[v.Fabric.PlaceOf(id)] {
			t.Errorf("no flood is told of at the place of %s: %v", h, named)
		}
	}
	if most > before+60<<20 {
		t.Errorf("%d MiB of memory are used, before the flood %d", most>>20, before>>20)
	}
	t.Logf("granted after %v; %d MiB, before %d MiB", granted, most>>20, before>>20)
}

// heap is how much memory is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
