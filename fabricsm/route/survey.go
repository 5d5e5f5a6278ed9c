package route

import (
	"runtime"
	"sync"

	"portcullis/fabricsm/ib"
)

// farDepth is the depth of a switch that the lead of a home is not routed from.
const farDepth = 255

// survey is the quick part of judging tables with one layer. The LIDs behind one switch mostly have routes of equal length
// from everywhere. So one of them, the lead, is walked from every switch, which sets the depth of every switch. If each
// entry of another LID leads one link nearer by that depth, the LID is reached from everywhere and has no loop. Rows are
// then read once, in the order of memory. A LID that does not fit is odd, and walked like a lead.
type survey struct {
	g      *Graph
	t      *Tables
	rows   [][]ib.PortNum
	island []int32

	home  []int32      // by LID: the switch it is behind, -1
	out   []ib.PortNum // by LID: Target.Out
	lead  []int32      // by home: position of the lead in its targets, -1
	depth []uint8      // by switch, then home: links on the way of the lead, farDepth without
	odd   []bool       // by LID

	deps *dependencies
	load []int64 // by edge

	anyOdd bool // some LID is odd
}

func newSurvey(g *Graph, t *Tables, rows [][]ib.PortNum) *survey {
	n := len(g.IDs)
	v := &survey{
		g: g, t: t, rows: rows, island: islands(g),
		home: make([]int32, int(g.MaxLID)+1), out: make([]ib.PortNum, int(g.MaxLID)+1),
		lead: make([]int32, n), odd: make([]bool, int(g.MaxLID)+1),
		deps: newDependencies(g), load: make([]int64, len(g.To)),
	}
	for l := range v.home {
		v.home[l] = -1
	}
	for s, targets := range g.Targets {
		v.lead[s] = leadOf(targets)
		for _, t := range targets {
			v.home[t.LID], v.out[t.LID] = int32(s), t.Out
		}
	}
	return v
}

// leadOf returns the first LID whose owner is there, or the first if there is none.
func leadOf(targets []Target) int32 {
	for i, t := range targets {
		if t.Out != ib.NoPort {
			return int32(i)
		}
	}
	return int32(min(len(targets), 1) - 1)
}

// forCores divides 0 to n-1 among the cores in contiguous ranges. work gets the number of the core, from 0, with its range.
func forCores(n int, work func(core, from, to int)) { forSome(coresFor(n), n, work) }

// forSome is forCores for a number of cores.
func forSome(cores, n int, work func(core, from, to int)) {
	var wg sync.WaitGroup
	for c := range cores {
		wg.Go(func() { work(c, c*n/cores, (c+1)*n/cores) })
	}
	wg.Wait()
}

func coresFor(n int) int { return max(1, min(runtime.GOMAXPROCS(0), n/16)) }

// walkLeads finds the depths. judges, one for each core, count what leads carry.
func (v *survey) walkLeads(judges []*judge) {
	n := len(v.g.IDs)
	v.depth = make([]uint8, n*n)
	forCores(n, func(core, from, to int) {
		var leads []errand
		for home := int32(from); home < int32(to); home++ {
			if i := v.lead[home]; i >= 0 {
				leads = append(leads, errand{home, v.g.Targets[home][i]})
			} else {
				v.setDepth(home, nil)
			}
		}
		j := judges[core]
		j.each(leads, func(home int32, t Target, ports []ib.PortNum) {
			if j.walk1(home, t, ports) {
				j.account(t)
				v.setDepth(home, j)
				return
			}
			v.setDepth(home, nil)
			for _, t := range v.g.Targets[home] {
				v.odd[t.LID] = true
			}
		})
	})
}

// walk1 follows the routes to one LID and reports whether all is well with them.
func (j *judge) walk1(home int32, t Target, ports []ib.PortNum) bool {
	before := j.report
	j.readEntries(home, t, ports)
	j.walkAll(t)
	if j.report.Counts != before.Counts {
		j.report = before
		return false
	}
	return true
}

// setDepth notes the depths of the walk just done; a nil judge: there are none.
func (v *survey) setDepth(home int32, j *judge) {
	n := len(v.g.IDs)
	for s := range n {
		d := farDepth
		if j != nil && j.depth[s] >= 0 && j.depth[s] < farDepth {
			d = int(j.depth[s])
		}
		v.depth[s*n+int(home)] = uint8(d)
	}
}

// exit is one egress port as the row of its switch is read.
type exit struct {
	depth  []uint8      // of the switch it leads to, by home; nil: it leads to none
	row    []ib.PortNum // of that switch
	edge   int32
	follow [4]uint64 // the ports by which packets go on from there
}

// readRows reads the tables of all switches. It finds odd LIDs, and the links that are used one after the other by routes
// to CAs. strays reports whether a LID without an owner is routed.
func (v *survey) readRows() (strays bool) {
	n := len(v.g.IDs)
	cores := coresFor(n)
	odds, stray := make([][]ib.LID, cores), make([]bool, cores)
	forCores(n, func(core, from, to int) {
		exits := make([]exit, 256)
		for s := int32(from); s < int32(to); s++ {
			v.openExits(s, exits)
			var ok bool
			odds[core], ok = v.readRow(s, exits, odds[core])
			stray[core] = stray[core] || !ok
			v.closeExits(s, exits)
		}
	})
	for i := range odds {
		strays = strays || stray[i]
		for _, l := range odds[i] {
			v.odd[l] = true
		}
	}
	return strays
}

func (v *survey) openExits(s int32, exits []exit) {
	clear(exits)
	n := len(v.g.IDs)
	for e := v.g.Row[s]; e < v.g.Row[s+1]; e++ {
		to := int(v.g.To[e])
		exits[v.g.Port[e]] = exit{edge: e, depth: v.depth[to*n : (to+1)*n], row: v.rows[to]}
	}
}

// readRow reads one row, and appends the LIDs that it found odd. ok is false if there are routes to LIDs without an owner.
func (v *survey) readRow(s int32, exits []exit, odd []ib.LID) (_ []ib.LID, ok bool) {
	ok = true
	n := len(v.g.IDs)
	row, depth := v.rows[s], v.depth[int(s)*n:(int(s)+1)*n]
	home, out := v.home, v.out[:len(v.home)]
	for l, port := range row {
		if l >= len(home) || home[l] < 0 {
			ok = ok && port == ib.NoPort
			continue
		}
		h := home[l]
		if h == s {
			if port != out[l] {
				odd = append(odd, ib.LID(l))
			}
			continue
		}
		x := &exits[port]
		if x.depth == nil {
			if port != ib.NoPort || depth[h] != farDepth {
				odd = append(odd, ib.LID(l))
			}
			continue
		}
		if depth[h] == farDepth || x.depth[h]+1 != depth[h] {
			odd = append(odd, ib.LID(l))
			continue
		}
		if out[l] != 0 {
			q := x.row[l]
			x.follow[q>>6] |= 1 << (q & 63)
		}
	}
	return odd, ok
}

// closeExits notes which links follow those of a switch. No other core notes
// anything of them.
func (v *survey) closeExits(s int32, exits []exit) {
	for e := v.g.Row[s]; e < v.g.Row[s+1]; e++ {
		x := &exits[v.g.Port[e]]
		for i, w := range x.follow {
			v.deps.setPorts(e, ib.PortNum(i*64), w)
		}
	}
}
