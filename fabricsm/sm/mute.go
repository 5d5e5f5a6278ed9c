package sm

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// A switch whose external port refuses a packet for its P_Key sends trap 259, if its
// CapabilityMask has IsPKeySwitchExternalPortTrapSupported. A switch without the bit is
// mute: it only counts, in PortRcvConstraintErrors, which package counterwatch reads.

// PacketsRefused is the input by which package counterwatch reports that the external
// port of a mute switch has refused packets of the adapter behind it.
type PacketsRefused struct {
	Switch ib.GUID    // port GUID of port 0
	Port   ib.PortNum // the external port
	Peer   ib.GUID    // port GUID of the adapter there, since the counter was last read; 0: another one came
	Count  uint32     // at least so many: the counter has 8 bits
}

func (*PacketsRefused) input() {}

// SwitchesMute warns, once in the life of a core, of switches that send no trap 259.
type SwitchesMute struct {
	Switches []ib.GUID // node GUIDs, in order
	All      int       // switches in the fabric
	Read     bool      // CountersConfig.Mute has their counters read
}

func (*SwitchesMute) FabricEvent() {}

func (e *SwitchesMute) String() string {
	const shown = 8
	names := ""
	for i, g := range e.Switches {
		if i == shown {
			names += fmt.Sprintf(" and %d more", len(e.Switches)-shown)
			break
		}
		names += " " + g.String()
	}
	text := fmt.Sprintf("%d of %d switches send no trap 259 when they refuse a P_Key:%s", len(e.Switches), e.All, names)
	if e.Read {
		return text + "; PortRcvConstraintErrors of their ports are read instead, which show neither P_Key nor destination"
	}
	return text + "; nothing reports P_Key violations at their ports: set the period in which their counters are read"
}

// muteSwitches returns the warning of mute switches, nil if there are none.
func muteSwitches(c *Core) *SwitchesMute {
	e := &SwitchesMute{Read: c.cfg.Counters.Mute > 0}
	for i := range c.nodes {
		id := topo.NodeID(i)
		if !c.nodes[id].alive || c.topo.Node(id).Type != ib.NodeSwitch {
			continue
		}
		e.All++
		if p := c.topo.Node(id).FirstPort; c.ports[p].known && mute(&c.ports[p].info) {
			e.Switches = append(e.Switches, c.topo.NodeGUID(id))
		}
	}
	if len(e.Switches) == 0 {
		return nil
	}
	slices.Sort(e.Switches)
	return e
}

// mute reports whether PortInfo of port 0 is that of a switch that sends no trap 259.
func mute(pi *mad.PortInfo) bool {
	return !pi.CapabilityMask.Has(mad.IsPKeySwitchExternalPortTrapSupported)
}

// Mute reports whether a switch sends no trap 259. It is false for other nodes, and for
// a switch that was not read.
func (v *View) Mute(id topo.NodeID) bool {
	n := v.Fabric.Node(id)
	info := v.PortInfo(n.FirstPort)
	if n.Type != ib.NodeSwitch || info == nil {
		return false
	}
	var pi mad.PortInfo
	return mad.Decode(info[:], &pi) == nil && mute(&pi)
}

// MuteSwitches returns the switches that send no trap 259.
func (v *View) MuteSwitches() (out []topo.NodeID) {
	for _, id := range v.Fabric.Switches() {
		if v.Mute(id) {
			out = append(out, id)
		}
	}
	return out
}
