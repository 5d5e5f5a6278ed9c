package counterwatch

import (
	"encoding/binary"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// refusingEvery is how often the packets of an adapter are counted that answers under none
// of its M_Keys. They are few: View.Refusing is bounded.
const refusingEvery = 500 * time.Millisecond

// packetsReceived is where PortCountersExtended has that count.
const packetsReceived = attribute + 8 + 8*3

// askRefusing asks the switches in front of such adapters, when it is time.
func (w *Watch) askRefusing() {
	if w.view == nil || len(w.view.Refusing) == 0 {
		w.refusingAt = time.Time{}
		return
	}
	if w.now.Before(w.refusingAt) {
		return
	}
	w.refusingAt = w.now.Add(refusingEvery)
	for _, r := range w.view.Refusing {
		kp, ok := w.fabric.KeyPort(r.Switch)
		if !ok || !kp.Switch || !kp.LID.IsUnicast() || len(w.out) >= 2*window {
			continue
		}
		w.send(kp.LID, asked{port: r.Switch, guid: kp.GUID, doubts: kp.Doubts, of: r.GUID}, mad.MethodGet, attrExtended)[attribute+1] = uint8(r.Place.Port)
	}
}

// counted takes how many packets came from an adapter.
func (w *Watch) counted(of ib.GUID, m *mad.MAD) {
	w.did.Counted = append(w.did.Counted, sm.PortCounted{GUID: of, Packets: binary.BigEndian.Uint64(m[packetsReceived:])})
}
