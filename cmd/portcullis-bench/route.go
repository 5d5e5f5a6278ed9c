package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/topo"
)

// routed is what was measured of one engine on one fabric.
type routed struct {
	who             string
	seconds         []float64 // tables, and for ours the verdict on them
	check           []float64 // of which is the verdict
	lost            []float64 // after one cable was lost, verdict included
	blocks, changed int       // blocks that this changes, and on how many switches
	tables, made    float64   // MiB: of the tables, and of memory asked for in all
	report          route.Report
	note            string
}

// routedFabric is a fabric with the results on it.
type routedFabric struct {
	hosts, radix, switches, lids int
	rows                         []routed
}

// opensmSizes bounds the fabrics that OpenSM is compared on, in hosts: how many it
// may have for the default engine, and for the others.
const opensmSizes, opensmOthers = 5184, 1944

// smallRadix reaches 11,664 hosts on three levels; larger trees are of 64 ports.
const smallRadix, largeRadix, smallHosts = 36, 64, 11664

func routing(ctx context.Context, o *options, progress io.Writer) error {
	host, err := machine(ctx, o.program)
	if err != nil {
		return err
	}
	var all []routedFabric
	for _, hosts := range o.sizes {
		r, err := routeOn(ctx, o, hosts, progress)
		if err != nil {
			return fmt.Errorf("%d hosts: %w", hosts, err)
		}
		all = append(all, *r)
		if err := writeRouting(o, host, all); err != nil {
			return err
		}
	}
	return nil
}

func routeOn(ctx context.Context, o *options, hosts int, progress io.Writer) (*routedFabric, error) {
	r := &routedFabric{hosts: hosts, radix: smallRadix}
	if hosts > smallHosts {
		r.radix = largeRadix
	}
	list, err := netlist.FatTree3(netlist.Shape{Hosts: hosts, Radix: r.radix})
	if err != nil {
		return nil, err
	}
	b := build(list)
	dealLIDs(b, nil)
	f := b.Freeze()
	r.switches, r.lids = len(f.Switches()), len(f.EndPorts())
	for _, e := range []route.Engine{minhop.Engine{}, updn.Engine{}, ftree.Engine{}} {
		row := routed{who: "Portcullis " + e.Name()}
		runs := o.runs
		if hosts > smallHosts && e.Name() != "minhop" {
			runs = 1 // it is the default engine that has a promise to keep there
		}
		for range runs {
			if err := row.once(b, e); err != nil {
				return nil, err
			}
		}
		r.rows = append(r.rows, row)
		fmt.Fprintf(progress, "%d hosts, %s: %.3f s, verdict %.3f s, after a lost cable %.3f s, worst link %d\n",
			hosts, row.who, median(row.seconds), median(row.check), median(row.lost), row.report.WorstLoad)
		if hosts > opensmSizes || e.Name() != "minhop" && hosts > opensmOthers {
			continue
		}
		theirs, err := opensmRoutes(ctx, list, e.Name())
		if err != nil {
			return nil, err
		}
		r.rows = append(r.rows, *theirs)
		fmt.Fprintf(progress, "%d hosts, %s: %.3f s, worst link %d\n", hosts, theirs.who, median(theirs.seconds), theirs.report.WorstLoad)
	}
	return r, nil
}

// once routes and judges, and does so again without one cable.
func (r *routed) once(b *topo.Builder, e route.Engine) error {
	f := b.Freeze()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	c, err := route.First(f, nil, e)
	r.seconds = append(r.seconds, time.Since(began).Seconds())
	runtime.ReadMemStats(&after)
	if err != nil {
		return err
	}
	r.report, r.made = c.Report, mib(after.TotalAlloc-before.TotalAlloc)
	r.tables = mib(uint64(len(f.Switches())) * uint64(len(c.Tables.LFT(f.Switches()[0]))))
	began = time.Now()
	route.Check(f, c.Tables)
	r.check = append(r.check, time.Since(began).Seconds())

	p := someCable(f)
	peer := f.Port(p).Peer
	b.Disconnect(p)
	defer b.Connect(p, peer)
	cut := b.Freeze()
	began = time.Now()
	without, err := route.First(cut, c.Tables, e)
	r.lost = append(r.lost, time.Since(began).Seconds())
	if err != nil {
		return fmt.Errorf("with one cable lost: %w", err)
	}
	r.blocks, r.changed = 0, 0
	for _, id := range cut.Switches() {
		if n := len(route.ChangedBlocks(without.Tables.LFT(id), c.Tables.LFT(id))); n > 0 {
			r.blocks, r.changed = r.blocks+n, r.changed+1
		}
	}
	return nil
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// someCable returns a port in the middle of the fabric that leads from a leaf up.
func someCable(f *topo.Fabric) topo.PortID {
	ends := f.EndPorts()
	for _, end := range ends[len(ends)/2:] {
		sw := f.SwitchPortOf(end)
		if sw == topo.None {
			continue
		}
		n := f.NodeOf(sw)
		for i := int(n.NumPorts); i > 0; i-- {
			p := n.FirstPort + topo.PortID(i)
			if peer := f.LinkUp(p); peer != topo.None && f.NodeOf(peer).Type == ib.NodeSwitch {
				return p
			}
		}
	}
	return topo.None
}

// build makes the fabric that a netlist describes, without LIDs.
func build(list *netlist.Netlist) *topo.Builder {
	b := &topo.Builder{}
	ids := make(map[string]topo.NodeID, len(list.Nodes))
	for i := range list.Nodes {
		n := &list.Nodes[i]
		id := b.AddNode(topo.Node{
			GUID: n.GUID, Type: n.Type, NumPorts: uint8(n.NumPorts()), Description: n.Description,
			LinearFDBCap: uint16(ib.MaxUnicastLID) + 1,
		})
		ids[n.Name] = id
	}
	for i := range list.Nodes {
		n := &list.Nodes[i]
		for num := range n.Ports {
			id := b.PortOf(ids[n.Name], ib.PortNum(num))
			p := b.Port(id)
			p.State = ib.PortActive
			if (num == 0) == (n.Type == ib.NodeSwitch) {
				p.GUID = n.PortGUID(ib.PortNum(num))
			}
			b.SetPort(id, p)
			if peer := n.Ports[num].Peer; peer != "" {
				b.Connect(id, b.PortOf(ids[peer], n.Ports[num].PeerPort))
			}
		}
	}
	return b
}

// dealLIDs assigns end ports the LIDs that are known, or LIDs from 1 on if none are known.
func dealLIDs(b *topo.Builder, known map[ib.GUID]ib.LID) {
	next := ib.LID(1)
	for i := range b.NumPorts() {
		id := topo.PortID(i)
		p := b.Port(id)
		if p.GUID == 0 {
			continue
		}
		p.LID = next
		if known != nil {
			p.LID = known[p.GUID]
		}
		next++
		b.SetPort(id, p)
	}
}

var errNoTables = errors.New("opensm's dump has no tables")
