package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/ibsimserver"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

const (
	// seats are at how many hosts instances run.
	seats = 3
	// mostFlows are how many flows there are between hosts, at most.
	mostFlows = 100
)

// ground is a served fabric: the hosts that run a subnet manager on it, the flows between the others, and the simulator's
// own record of them.
type ground struct {
	*fabric
	dir    string
	client ibsimlab.Client
	sim    *sim.Fabric // nil: ibsim, which counts neither Sets nor packets
	stop   func() error

	seats   []int // hosts that run a subnet manager
	members []int // all others
	tenants int   // partitions
	apart   bool  // each partition is of a tenant of its own, and all that is in the fabric is declared
	flows   []*sim.Flow
}

// serveOwn serves a fabric by our simulator, in this process.
func (f *fabric) serveOwn(ctx context.Context) (*ground, error) {
	g, err := f.newGround()
	if err != nil {
		return nil, err
	}
	g.sim = sim.NewWith(f.list, sim.Options{})
	server, err := ibsim.Listen(filepath.Base(g.dir))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(g.dir))
	}
	ctx, halt := context.WithCancel(ctx)
	serving := new(errgroup.Group)
	serving.Go(func() error { return ibsimserver.Serve(ctx, server, g.sim) })
	g.client = ibsimlab.Client{Socket: server.Socket(), Dir: g.dir}
	g.stop = func() error {
		halt()
		return errors.Join(serving.Wait(), os.RemoveAll(g.dir))
	}
	return g, nil
}

// serveIbsim serves a fabric by ibsim.
func (f *fabric) serveIbsim(ctx context.Context) (*ground, error) {
	g, err := f.newGround()
	if err != nil {
		return nil, err
	}
	lab, err := ibsimlab.Start(ctx, ibsimlab.Options{Netlist: f.file, Dir: g.dir})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(g.dir))
	}
	g.client = lab.Client()
	g.stop = func() error { return errors.Join(lab.Stop(), os.RemoveAll(g.dir)) }
	return g, nil
}

func (f *fabric) newGround() (*ground, error) {
	dir, err := os.MkdirTemp("", "failover-")
	if err != nil {
		return nil, err
	}
	g := &ground{fabric: f, dir: dir, tenants: max(1, min(tenants, f.hosts/18))}
	for i := range seats {
		g.seats = append(g.seats, i*f.hosts/seats)
	}
	for h := range f.hosts {
		if !slices.Contains(g.seats, h) {
			g.members = append(g.members, h)
		}
	}
	return g, nil
}

// node returns the name of the node of a host.
func (g *ground) node(host int) string { return g.list.Nodes[g.hostAt(host)].Name }

// guid returns the GUID of the port of a host.
func (g *ground) guid(host int) ib.GUID { return g.list.Nodes[g.hostAt(host)].PortGUID(1) }

// place returns where a host is cabled to.
func (g *ground) place(host int) ib.Place {
	p := g.list.Nodes[g.hostAt(host)].Ports[1]
	return ib.Place{Switch: g.list.Find(p.Peer).GUID, Port: p.PeerPort}
}

// tenantOf returns the tenant of a host.
func (g *ground) tenantOf(host int) int { return host * g.tenants / g.hosts }

// asks are the hosts that ask for paths and that they ask for: the last of the last tenant.
func (g *ground) asks() (asker, target int) {
	n := len(g.members)
	return g.members[n-1], g.members[n-2]
}

// partitions writes the file of partitions that OpenSM reads. A line per member: it reads
// 4 KiB at a time.
func (g *ground) partitions() (string, error) {
	var b bytes.Buffer
	b.WriteString("Default=0x7fff, ipoib: ALL=limited, SELF=full;\n")
	for t := range g.tenants {
		fmt.Fprintf(&b, "tenant%d=0x%04x: ", t, uint16(pkeyOf(t)))
		first := true
		for _, h := range g.members {
			if g.tenantOf(h) != t {
				continue
			}
			if !first {
				b.WriteString(",\n ")
			}
			first = false
			fmt.Fprintf(&b, "0x%016x=full", uint64(g.guid(h)))
		}
		b.WriteString(";\n")
	}
	file := filepath.Join(g.dir, "partitions.conf")
	return file, os.WriteFile(file, b.Bytes(), 0o600)
}

// startFlows starts traffic between hosts of one tenant, all tenants in turn.
func (g *ground) startFlows() error {
	if g.sim == nil {
		return nil
	}
	by := make([][]int, g.tenants)
	for _, h := range g.members {
		by[g.tenantOf(h)] = append(by[g.tenantOf(h)], h)
	}
	for i := 0; len(g.flows) < mostFlows; i++ {
		before := len(g.flows)
		for t, hosts := range by {
			half := len(hosts) / 2
			if i >= half || len(g.flows) == mostFlows {
				continue
			}
			w, err := g.sim.Flow(sim.Endpoint{Node: g.node(hosts[i]), Port: 1}, sim.Endpoint{Node: g.node(hosts[i+half]), Port: 1}, pkeyOf(t).Full(), sim.FlowOptions{})
			if err != nil {
				return err
			}
			g.flows = append(g.flows, w)
		}
		if len(g.flows) == before {
			break
		}
	}
	return nil
}

func (g *ground) stopFlows() {
	for _, w := range g.flows {
		w.Stop()
	}
	g.flows = nil
}

// packets returns how many packets of flows were sent and how many did not arrive.
func (g *ground) packets() (sent, lost uint64) {
	for _, w := range g.flows {
		c := w.Counts()
		sent, lost = sent+c.Sent, lost+c.Sent-c.Delivered
	}
	return sent, lost
}

// written is what subnet managers wrote.
type written struct {
	lids, renewals, portInfo                uint64 // of Sets of PortInfo: that changed a LID, that asked to register again, and all
	routes, groups, pkeys, election, others uint64
}

// all is how many Sets there were.
func (w *written) all() uint64 {
	return w.portInfo + w.routes + w.groups + w.pkeys + w.election + w.others
}

// sets returns what was written so far by the nodes; without any: by all.
func (g *ground) sets(nodes ...string) (w written) {
	if g.sim == nil {
		return w
	}
	for name, s := range g.sim.Sets() {
		if len(nodes) > 0 && !slices.Contains(nodes, name) {
			continue
		}
		w.lids, w.renewals = w.lids+s.LIDs, w.renewals+s.Renewals
		for attr, n := range s.ByAttr {
			*w.of(attr) += n
		}
	}
	return w
}

// of returns the count that an attribute belongs to.
func (w *written) of(attr mad.AttrID) *uint64 {
	switch attr {
	case mad.AttrPortInfo:
		return &w.portInfo
	case mad.AttrLinearForwardingTable:
		return &w.routes
	case mad.AttrMulticastForwardingTable:
		return &w.groups
	case mad.AttrPKeyTable:
		return &w.pkeys
	case mad.AttrSMInfo:
		return &w.election
	default:
		return &w.others
	}
}

// since returns what was written after an earlier count.
func (w written) since(old written) written {
	return written{
		lids: w.lids - old.lids, renewals: w.renewals - old.renewals, portInfo: w.portInfo - old.portInfo,
		routes: w.routes - old.routes, groups: w.groups - old.groups, pkeys: w.pkeys - old.pkeys,
		election: w.election - old.election, others: w.others - old.others,
	}
}

// held is what the simulator has at a member's cable: its LID and both P_Key tables.
type held struct {
	lid          ib.LID
	adapter, own []ib.PKey
}

// holds reads that of every member.
func (g *ground) holds() map[int]held {
	if g.sim == nil {
		return nil
	}
	out := make(map[int]held, len(g.members))
	for _, h := range g.members {
		p := g.list.Nodes[g.hostAt(h)].Ports[1]
		out[h] = held{
			lid: g.sim.PortInfo(g.node(h), 1).LID, adapter: g.sim.PKeys(g.node(h), 1),
			own: g.sim.PKeys(p.Peer, p.PeerPort),
		}
	}
	return out
}

// differ counts the members at which something changed.
func differ(before, after map[int]held) (n int) {
	for h, was := range before {
		now := after[h]
		if was.lid != now.lid || !slices.Equal(was.adapter, now.adapter) || !slices.Equal(was.own, now.own) {
			n++
		}
	}
	return n
}

// judgeTenants wants every member to hold the P_Key of its tenant, in the adapter and at the
// switch port, as the simulator has it.
func (g *ground) judgeTenants() error {
	for h, has := range g.holds() {
		want := pkeyOf(g.tenantOf(h)).Full()
		if !slices.Contains(has.adapter, want) || !slices.Contains(has.own, want) {
			return fmt.Errorf("%s holds %v and its switch port %v: want %v in both", g.node(h), has.adapter, has.own, want)
		}
	}
	return nil
}
