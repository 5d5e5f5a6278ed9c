package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
)

// CountersConfig is about the counters of performance management. The core reads none
// of them; package counterwatch does, beside it.
type CountersConfig struct {
	// Period is how often the counters of each end port are looked at; 0, the default,
	// is never.
	Period time.Duration
	// Mute is how often the packets are read that external ports of mute switches, which
	// send no trap 259, have refused; 0, the default, is never. It takes longer where
	// there are more than 200 such ports to read in a second.
	Mute time.Duration
}

// minCountersPeriod keeps the requests of a fabric few.
const minCountersPeriod = time.Second

func (k *configChecker) counters(c *CountersConfig) {
	for _, p := range []time.Duration{c.Period, c.Mute} {
		if p != 0 && p < minCountersPeriod {
			k.wrong("period of counters %v: want 0 for never, or %v and more", p, minCountersPeriod)
		}
	}
}

// CountersReset says that the counters of a device went backwards although it was not restarted: another manager or a tool
// has reset them. Any sender that reaches the device may do that, for the class has no key.
type CountersReset struct {
	GUID  ib.GUID  // port GUID, of a switch that of port 0
	Place ib.Place // zero for a switch
	What  string   // the first counter that did: "packets sent"
	Was   uint64   // when it was looked at last; of a switch the sum over its ports
	Is    uint64
	Times uint64 // so many such events there were of this device, this one included
}

func (*CountersReset) FabricEvent() {}

func (e *CountersReset) String() string {
	return fmt.Sprintf("somebody reset the counters of port %v%s: %s was %d and is %d; number %d", e.GUID, atPlace(e.Place), e.What, e.Was, e.Is, e.Times)
}
