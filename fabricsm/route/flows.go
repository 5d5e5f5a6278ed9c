package route

import (
	"math/bits"

	"portcullis/fabricsm/ib"
)

// flowLIDs is how many LIDs of one home have their flows counted at a time.
const flowLIDs = 32

// flows counts the routes on each link to LIDs that are not odd.
type flows struct {
	v     *survey
	all   []int32 // switches, by depth: those that are not connected, then the farthest from the home
	order []int32 // all but those that are not connected
	first [farDepth + 2]int32
	flow  []int32 // by switch, then LID of the chunk: CA ports whose packets come in over links
	busy  []bool  // by switch: some flow is not 0
	load  []int64 // by edge
	deps  *dependencies
}

// countFlows adds up the loads of all LIDs that are neither leads nor odd, and
// the links that packets to switches use one after the other.
func (v *survey) countFlows(judges []*judge) {
	n := len(v.g.IDs)
	forCores(n, func(core, from, to int) {
		f := &flows{
			v: v, all: make([]int32, n), flow: make([]int32, n*flowLIDs), busy: make([]bool, n),
			load: judges[core].load, deps: judges[core].deps[0],
		}
		lids := make([]Target, 0, flowLIDs)
		for home := int32(from); home < int32(to); home++ {
			sorted := false
			for i, t := range v.g.Targets[home] {
				if int32(i) != v.lead[home] && !v.odd[t.LID] {
					lids = append(lids, t)
				}
				if len(lids) == flowLIDs || len(lids) > 0 && i == len(v.g.Targets[home])-1 {
					if !sorted {
						f.sort(home)
						sorted = true
					}
					f.count(home, lids)
					lids = lids[:0]
				}
			}
		}
	})
}

// sort puts the switches that reach a home into order by depth.
func (f *flows) sort(home int32) {
	n := len(f.v.g.IDs)
	clear(f.first[:])
	at := func(s int) uint8 { return farDepth - f.v.depth[s*n+int(home)] } // 0: not connected
	for s := range n {
		f.first[int(at(s))+1]++
	}
	for i := 1; i < len(f.first); i++ {
		f.first[i] += f.first[i-1]
	}
	order := f.all[:n]
	for s := range n {
		d := at(s)
		order[f.first[d]] = int32(s)
		f.first[d]++
	}
	f.order = order[f.first[0]:] // without those that are not connected
}

// count follows the packets of all CA ports to some LIDs behind a switch.
func (f *flows) count(home int32, lids []Target) {
	v, g, w := f.v, f.v.g, len(lids)
	for _, s := range f.order {
		hosts := int32(g.Hosts[s])
		if hosts == 0 && !f.busy[s] {
			continue
		}
		passing := f.flow[int(s)*flowLIDs:][:w]
		f.busy[s] = false
		if s == home {
			clear(passing)
			continue
		}
		row, first := v.rows[s], g.slot[s].first
		for i, t := range lids {
			n := passing[i] + hosts
			passing[i] = 0
			if n == 0 {
				continue
			}
			e := g.portOut[int(first)+int(row[t.LID])]
			to := g.To[e]
			f.flow[int(to)*flowLIDs+i] += n
			f.busy[to] = true
			if t.Out != 0 {
				f.load[e] += int64(n)
			} else if next := g.EdgeAt(to, v.rows[to][t.LID]); to != home && next >= 0 {
				f.deps.set(e, next)
			}
		}
	}
}

// setPorts records that some routes use, right after an edge, those edges that
// leave by the ports from base on whose bits are set.
func (d *dependencies) setPorts(e int32, base ib.PortNum, ports uint64) {
	to := d.g.To[e]
	for ; ports != 0; ports &= ports - 1 {
		if next := d.g.EdgeAt(to, base+ib.PortNum(bits.TrailingZeros64(ports))); next >= 0 {
			d.set(e, next)
		}
	}
}
