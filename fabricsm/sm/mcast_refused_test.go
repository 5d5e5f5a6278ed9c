package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
)

// TestRefusedMulticastTables has a switch that takes no block of its multicast table. It is asked again after ever longer
// pauses and reported once. It has the wanted table once it takes blocks again.
func TestRefusedMulticastTables(t *testing.T) {
	for name, how := range map[string]func(m *mad.MAD){
		"with an error":       func(m *mad.MAD) { m.SetStatus(mad.StatusInvalidField) },
		"by not keeping them": func(m *mad.MAD) { clear(m.Data()) }, // nor does it show them later
	} {
		t.Run(name, func(t *testing.T) {
			e := multicastEnv(t, sim.Options{})
			far := e.list.Find(hosts(e.list)[0].node.Name)
			sw := far.Ports[1].Peer
			refuses, refused := true, 0
			outOf := map[ib.TID]bool{}
			e.logSend = func(r *sm.Request) {
				outOf[r.MAD.TID()] = r.MAD.Attr() == mad.AttrMulticastForwardingTable && leadsTo(e, &r.MAD, sw)
			}
			e.meddle = func(set bool, m *mad.MAD) {
				if !outOf[ib.TID(uint32(m.TID()))] || !refuses {
					return
				}
				if set {
					refused++
				}
				how(m)
			}
			w := make(wanted)
			const blocks = 12 // more than are asked for at once
			for i := range blocks {
				w.join(e, ib.MinMulticastLID+ib.LID(i*mad.MLIDsPerBlock), far.Name, mcast.FullMember)
				w.join(e, ib.MinMulticastLID+ib.LID(i*mad.MLIDsPerBlock), hosts(e.list)[1].node.Name, mcast.FullMember)
			}
			e.takeEvents()
			e.run(10 * time.Minute)
			// Pauses double from 1 s to 1 min: some 15 in ten minutes.
			if most := 18 * 2 * blocks; refused > most || refused < blocks {
				t.Errorf("%d Sets were refused, want %d to %d", refused, blocks, most)
			}
			told := 0
			for _, ev := range e.takeEvents() {
				if b, ok := ev.(*sm.BadAnswer); ok && b.GUID == e.list.Find(sw).GUID {
					told++
				}
			}
			if told != 1 {
				t.Errorf("told %d times", told)
			}
			refuses = false
			e.run(90 * time.Second)
			w.judge(e)
		})
	}
}
