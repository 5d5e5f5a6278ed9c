package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
)

func (c *console) insert(args []string) error {
	types := map[string]ib.NodeType{"switch": ib.NodeSwitch, "ca": ib.NodeCA, "router": ib.NodeRouter}
	t, ok := types[args[0]]
	if !ok {
		return fmt.Errorf("node type %q: want switch, ca or router", args[0])
	}
	guid, err := ib.ParseGUID(args[2])
	if err != nil {
		return err
	}
	ports, err := strconv.ParseUint(args[3], 10, 8)
	if err != nil {
		return fmt.Errorf("%q ports: want a number up to 254", args[3])
	}
	n := netlist.NewNode(t, args[1], guid, int(ports))
	for i := range n.Ports {
		n.Ports[i].Link = insertedLink
	}
	return c.fabric.Insert(n)
}

// insertedLink is what the ports of inserted nodes can do: 4xNDR.
var insertedLink = netlist.Link{Width: 3, Speed: 7, SpeedExt: 15}

func (c *console) guid(args []string) error {
	guid, err := ib.ParseGUID(args[1])
	if err != nil {
		return err
	}
	system := guid
	if len(args) == 3 {
		if system, err = ib.ParseGUID(args[2]); err != nil {
			return err
		}
	}
	return c.fabric.SetGUIDs(args[0], guid, system)
}

func (c *console) baselid(args []string) error {
	at, err := end(args)
	if err != nil {
		return err
	}
	lid, err := ib.ParseLID(args[2])
	if err != nil {
		return err
	}
	var lmc uint64
	if len(args) == 4 {
		if lmc, err = strconv.ParseUint(args[3], 10, 3); err != nil {
			return fmt.Errorf("LMC %q: want 0 to 7", args[3])
		}
	}
	return c.fabric.SetLID(at.Node, at.Port, lid, ib.LMC(lmc))
}

func (c *console) rogue(args []string) error {
	priority, err := strconv.ParseUint(args[1], 10, 4)
	if err != nil {
		return fmt.Errorf("priority %q: want 0 to 15", args[1])
	}
	// Its port 1 or, of a switch, port 0: SMs are known by the GUID of this port.
	guids := c.fabric.GUIDs(args[0], 1)
	if c.fabric.SwitchInfo(args[0]).LinearFDBCap != 0 {
		guids = c.fabric.GUIDs(args[0], 0)
	}
	claim := mad.SMInfo{Priority: uint8(priority), SMState: ib.SMMaster}
	if len(guids) > 0 {
		claim.GUID = guids[0]
	}
	return c.fabric.RogueSM(args[0], &claim)
}

// traffic reads two ends and a P_Key.
func traffic(args []string) (from, to sim.Endpoint, key ib.PKey, err error) {
	if from, to, err = ends(args); err != nil {
		return from, to, 0, err
	}
	key, err = ib.ParsePKey(args[4])
	return from, to, key, err
}

func (c *console) send(args []string) error {
	from, to, key, err := traffic(args)
	if err != nil {
		return err
	}
	d := sim.Data{
		SLID: c.fabric.PortInfo(from.Node, from.Port).LID,
		DLID: c.fabric.PortInfo(to.Node, to.Port).LID, PKey: key, Payload: 256,
	}
	r, err := c.fabric.Inject(from, d)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s port %d: %v\n", r.At.Node, r.At.Port, r.Fate)
	return nil
}

// runningFlow is traffic and the arguments of its command.
type runningFlow struct {
	name string
	*sim.Flow
}

func (c *console) flow(args []string) error {
	const most = 1000
	from, to, key, err := traffic(args)
	if err != nil {
		return err
	}
	if len(c.flows) >= most {
		return fmt.Errorf("there are %d flows, which is the limit", most)
	}
	f, err := c.fabric.Flow(from, to, key, sim.FlowOptions{})
	if err != nil {
		return err
	}
	c.flows = append(c.flows, runningFlow{fmt.Sprintf("%s to %s with %v", from.Node, to.Node, key), f})
	return nil
}

func (c *console) flowCounts([]string) error {
	fmt.Fprintf(c.out, "%d flows\n", len(c.flows))
	for _, f := range c.flows {
		n := f.Counts()
		fmt.Fprintf(c.out, "%s: %d sent, %d delivered, %d strayed, %d lost", f.name, n.Sent, n.Delivered, n.Strayed, n.Lost)
		if n.Strayed+n.Lost > 0 {
			fmt.Fprintf(c.out, ", the last at %s port %d: %v", n.Last.At.Node, n.Last.At.Port, n.Last.Fate)
		}
		fmt.Fprintln(c.out)
	}
	return nil
}

func (c *console) route(args []string) error {
	from, err := ib.ParseLID(args[0])
	if err != nil {
		return err
	}
	to, err := ib.ParseLID(args[1])
	if err != nil {
		return err
	}
	way, err := c.fabric.Route(from, to)
	for _, at := range way {
		fmt.Fprintf(c.out, "%q[%d]\n", at.Node, at.Port)
	}
	return err
}

func (c *console) attached([]string) error {
	all := c.fabric.Attached()
	fmt.Fprintf(c.out, "%d attached\n", len(all))
	for _, line := range all {
		fmt.Fprintln(c.out, line)
	}
	return nil
}

func (c *console) sets([]string) error {
	all := c.fabric.Sets()
	fmt.Fprintf(c.out, "%d senders\n", len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		fmt.Fprintf(c.out, "%s: LIDs=%d Renewals=%d", name, s.LIDs, s.Renewals)
		for _, attr := range slices.Sorted(maps.Keys(s.ByAttr)) {
			fmt.Fprintf(c.out, " %v=%d", attr, s.ByAttr[attr])
		}
		fmt.Fprintln(c.out)
	}
	return nil
}

func (c *console) stats([]string) error {
	fmt.Fprintf(c.out, "%+v\n", c.fabric.Stats())
	return nil
}
