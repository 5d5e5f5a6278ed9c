package route

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Graph is a fabric as routing sees it: switches numbered in the order of
// their GUIDs, the directed links (edges) between them, and the LIDs behind
// each. It is read-only once made.
type Graph struct {
	IDs []topo.NodeID // by switch number
	Num []int32       // by topo.NodeID: the switch number, -1

	// Edges of switch s are Row[s] up to Row[s+1], in the order of ports.
	Row  []int32
	To   []int32      // by edge: the switch at the other end
	Port []ib.PortNum // by edge: the egress port

	Hosts   []int64    // by switch: CA and router ports with a LID cabled to it
	Targets [][]Target // by switch: the LIDs behind it
	MaxLID  ib.LID     // of all targets

	f       *topo.Fabric
	slot    []portRange // by switch
	portOut []int32     // by topo.PortID: the edge that leaves there, -1
	claims  []claim     // by LID, while targets are read
}

// portRange is where the ports of a switch lie.
type portRange struct {
	first topo.PortID
	last  ib.PortNum
}

// Target is one LID at the switch it is behind.
type Target struct {
	LID ib.LID
	// Out is the port that the home switch sends it to: 0 for its own LIDs,
	// NoPort while the LID's owner is away. Routes to a LID whose owner has
	// gone are kept, so that a reboot does not rewrite every switch.
	Out ib.PortNum
	// Path counts the LIDs of one port, from 0 for its base LID up to 2^LMC-1: engines use a separate way for each of them
	// where there is one. It is 0 while the owner is away.
	Path uint8
}

// NewGraph reads the switches, usable links and LIDs of a fabric; LIDs that
// only prev knows (it may be nil) stay targets while their home switch lives.
// Errors, all of them together: a LID that two ports claim, a LID outside the
// unicast range or not aligned to its LMC, a LID above the LinearFDBCap of a
// switch.
func NewGraph(f *topo.Fabric, prev *Tables) (*Graph, error) {
	g := &Graph{f: f, IDs: f.Switches(), Num: make([]int32, f.NumNodes()), portOut: make([]int32, f.NumPorts())}
	for i := range g.Num {
		g.Num[i] = -1
	}
	for s, id := range g.IDs {
		g.Num[id] = int32(s)
	}
	g.readLinks()
	return g, g.readTargets(prev)
}

func (g *Graph) readLinks() {
	for i := range g.portOut {
		g.portOut[i] = -1
	}
	g.Row = make([]int32, 1, len(g.IDs)+1)
	g.slot = make([]portRange, len(g.IDs))
	for s, id := range g.IDs {
		n := g.f.Node(id)
		g.slot[s] = portRange{first: n.FirstPort, last: ib.PortNum(n.NumPorts)}
		for i := 1; i <= int(n.NumPorts); i++ {
			out := n.FirstPort + topo.PortID(i)
			peer := g.f.LinkUp(out)
			if peer == topo.None {
				continue
			}
			to := g.Num[g.f.Port(peer).Node]
			if to < 0 || to == int32(s) {
				continue
			}
			g.portOut[out] = int32(len(g.To))
			g.To = append(g.To, to)
			g.Port = append(g.Port, ib.PortNum(i))
		}
		g.Row = append(g.Row, int32(len(g.To)))
	}
}

// PeersOf returns the other end of every link between switches, by topo.PortID.
func PeersOf(g *Graph) []topo.PortID {
	peers := make([]topo.PortID, len(g.portOut))
	for i, e := range g.portOut {
		peers[i] = topo.None
		if e >= 0 {
			peers[i] = g.f.LinkUp(topo.PortID(i))
		}
	}
	return peers
}

// PortAt returns the id of a port of a switch, None if it has no such port.
func (g *Graph) PortAt(s int32, port ib.PortNum) topo.PortID {
	if r := g.slot[s]; port <= r.last {
		return r.first + topo.PortID(port)
	}
	return topo.None
}

// GUID returns the node GUID of a switch by its number.
func (g *Graph) GUID(s int32) ib.GUID { return g.f.Node(g.IDs[s]).GUID }

// EdgeAt returns the edge that leaves a switch by a port, -1 if the port does not exist or does not lead to another switch.
func (g *Graph) EdgeAt(s int32, port ib.PortNum) int32 {
	r := g.slot[s]
	if port > r.last {
		return -1
	}
	return g.portOut[r.first+topo.PortID(port)]
}

// alone reports whether a switch has no link to another.
func (g *Graph) alone(s int32) bool { return g.Row[s] == g.Row[s+1] }

// claim is a LID with its owner, to find LIDs that two ports claim.
type claim struct {
	home  int32
	owner topo.PortID
}

func (g *Graph) readTargets(prev *Tables) error {
	g.Hosts = make([]int64, len(g.IDs))
	g.Targets = make([][]Target, len(g.IDs))
	var errs []error
	g.claims = make([]claim, 0, 1<<10)
	for _, id := range g.f.EndPorts() {
		if err := g.readEndPort(id); err != nil {
			errs = append(errs, err)
		}
	}
	if prev != nil {
		g.keepAway(prev)
	}
	g.claims = nil
	for s := range g.Targets {
		slices.SortFunc(g.Targets[s], byUse)
	}
	errs = append(errs, g.checkCaps())
	return errors.Join(errs...)
}

// byUse puts the LIDs of CAs before those of the switch: engines spread what
// carries traffic first.
func byUse(a, b Target) int {
	own := func(t Target) int {
		if t.Out == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(own(a), own(b)), cmp.Compare(a.LID, b.LID))
}

func (g *Graph) readEndPort(id topo.PortID) error {
	p := g.f.Port(id)
	home, out := g.Num[p.Node], ib.PortNum(0)
	if home < 0 {
		if sw := g.f.SwitchPortOf(id); sw != topo.None && g.f.LinkUp(id) != topo.None {
			home, out = g.Num[g.f.Port(sw).Node], g.f.Port(sw).Num
		}
	}
	if p.LID == 0 {
		return nil
	}
	size := 1 << p.LMC
	last := int(p.LID) + size - 1
	if p.LMC > 7 || !p.LID.IsUnicast() || last > int(ib.MaxUnicastLID) || int(p.LID)%size != 0 {
		return fmt.Errorf("route to port %v: LID %v with LMC %d is no aligned range of unicast LIDs", p.GUID, p.LID, p.LMC)
	}
	for len(g.claims) <= last {
		g.claims = append(g.claims, claim{home: -1, owner: topo.None})
	}
	for l := int(p.LID); l <= last; l++ {
		if other := g.claims[l].owner; other != topo.None {
			return fmt.Errorf("route to LID %d: claimed by port %v and by port %v; assign another LID to one of them", l, g.f.Port(other).GUID, p.GUID)
		}
		g.claims[l] = claim{home: home, owner: id}
		if home >= 0 {
			g.addTarget(home, Target{LID: ib.LID(l), Out: out, Path: uint8(l - int(p.LID))})
		}
	}
	if home >= 0 && out != 0 {
		g.Hosts[home]++
	}
	return nil
}

func (g *Graph) addTarget(home int32, t Target) {
	g.Targets[home] = append(g.Targets[home], t)
	g.MaxLID = max(g.MaxLID, t.LID)
}

// keepAway adds the LIDs whose owners are away.
func (g *Graph) keepAway(prev *Tables) {
	for l, id := range prev.home {
		if id == topo.None || l < len(g.claims) && g.claims[l].home >= 0 || int(id) >= len(g.Num) || g.Num[id] < 0 {
			continue
		}
		if s := g.Num[id]; prev.rows[id].guid == g.GUID(s) {
			g.addTarget(s, Target{LID: ib.LID(l), Out: ib.NoPort})
		}
	}
}

func (g *Graph) checkCaps() error {
	var errs []error
	for _, id := range g.IDs {
		n := g.f.Node(id)
		if g.MaxLID != 0 && n.LinearFDBCap <= uint16(g.MaxLID) {
			errs = append(errs, fmt.Errorf("route on switch %v (%s): its forwarding table holds %d entries, LID %v does not fit; use lower LIDs or a smaller LMC",
				n.GUID, n.Description, n.LinearFDBCap, g.MaxLID))
		}
	}
	return errors.Join(errs...)
}
