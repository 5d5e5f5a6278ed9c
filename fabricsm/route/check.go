package route

import (
	"math"
	"runtime"
	"sync"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Check judges tables against the fabric they are for. It trusts nothing that
// the tables say about themselves but which absent LIDs they keep routes for.
//
//   - Reach: each LID of a CA port or switch is delivered to it from every
//     switch of its island. LIDs that nobody has are dropped everywhere.
//   - No forwarding loop for any LID, also not for one whose owner is away: a
//     host can send to what it likes.
//   - No credit loop: the channel dependency graph (an edge where some route
//     uses one link right after another) has no circle. Sources are CA ports,
//     to every LID, and switches, to LIDs of CAs: no switch sends data to
//     another switch. Each layer of the tables has a graph of its own, and
//     every link between switches must have as many virtual lanes.
//
// The work is one walk per LID over all switches, dealt to all cores; the
// report does not depend on how many there are.
func Check(f *topo.Fabric, t *Tables) Report {
	g, err := NewGraph(f, t)
	r := Report{Switches: len(g.IDs), Links: len(g.To), Input: err}
	rows := tableRows(g, t, &r)
	for _, targets := range g.Targets {
		r.LIDs += len(targets)
	}
	if err != nil || len(r.Findings) > 0 {
		return r
	}
	checkStrays(g, rows, &r)
	checkLanes(g, t, &r)

	judges := judgeAll(g, t, rows)
	load := make([]int64, len(g.To))
	for _, j := range judges {
		r.add(j)
		for e, n := range j.load {
			load[e] += n
		}
	}
	r.measure(g, load)
	for layer := 0; layer < t.Layers() && r.CreditLoop == nil; layer++ {
		deps := newDependencies(g)
		for _, j := range judges {
			deps.merge(j.deps[layer])
		}
		if r.CreditLoop = deps.loop(rows); r.CreditLoop != nil {
			r.CreditLoopVL = ib.VL(layer)
		}
	}
	return r
}

// checkLanes finds links between switches with fewer virtual lanes than the
// tables have layers. Ports that have not said how many they have pass.
func checkLanes(g *Graph, t *Tables, r *Report) {
	if t.Layers() == 1 {
		return
	}
	for s := range g.IDs {
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			p := g.f.Port(g.f.PortOf(g.IDs[s], g.Port[e]))
			if p.VLCap != 0 && p.VLCap.Count() < t.Layers() {
				r.find(Finding{Fault: TooFewLanes, Switch: g.GUID(int32(s)), Port: g.Port[e]})
			}
		}
	}
}

// tableRows gives the tables by switch number and reports those that are
// missing or short.
func tableRows(g *Graph, t *Tables, r *Report) [][]ib.PortNum {
	rows := make([][]ib.PortNum, len(g.IDs))
	for s, id := range g.IDs {
		rows[s] = t.rowOf(id, g.GUID(int32(s)))
		if len(rows[s]) <= int(g.MaxLID) {
			r.find(Finding{Fault: NoTable, Switch: g.GUID(int32(s))})
		}
	}
	return rows
}

// checkStrays finds entries for LIDs that are no targets.
func checkStrays(g *Graph, rows [][]ib.PortNum, r *Report) {
	target := make([]bool, math.MaxUint16+1)
	for _, targets := range g.Targets {
		for _, t := range targets {
			target[t.LID] = true
		}
	}
	for s, row := range rows {
		for l, port := range row {
			if port != ib.NoPort && !target[l] {
				r.find(Finding{Fault: Stray, Switch: g.GUID(int32(s)), LID: ib.LID(l), Port: port})
			}
		}
	}
}

// judgeAll deals contiguous ranges of home switches to one judge per core.
func judgeAll(g *Graph, t *Tables, rows [][]ib.PortNum) []*judge {
	n := len(g.IDs)
	workers := max(1, min(runtime.GOMAXPROCS(0), n/16))
	island := islands(g)
	judges := make([]*judge, workers)
	var wg sync.WaitGroup
	for w := range workers {
		judges[w] = newJudge(g, t, rows, island)
		wg.Go(func() {
			for s := w * n / workers; s < (w+1)*n/workers; s++ {
				judges[w].home(int32(s))
			}
		})
	}
	wg.Wait()
	return judges
}

// islands numbers the connected parts of the fabric, by switch.
func islands(g *Graph) []int32 {
	island := make([]int32, len(g.IDs))
	for i := range island {
		island[i] = -1
	}
	var queue []int32
	for s := range island {
		if island[s] >= 0 {
			continue
		}
		island[s] = int32(s)
		queue = append(queue[:0], int32(s))
		for len(queue) > 0 {
			u := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, v := range g.To[g.Row[u]:g.Row[u+1]] {
				if island[v] < 0 {
					island[v] = int32(s)
					queue = append(queue, v)
				}
			}
		}
	}
	return island
}

func (r *Report) find(f Finding) {
	r.Counts[f.Fault]++
	if len(r.Findings) < MaxFindings {
		r.Findings = append(r.Findings, f)
	}
}

func (r *Report) add(j *judge) {
	for i, n := range j.report.Counts {
		r.Counts[i] += n
	}
	room := min(MaxFindings-len(r.Findings), len(j.report.Findings))
	r.Findings = append(r.Findings, j.report.Findings[:room]...)
	r.MaxHops = max(r.MaxHops, j.report.MaxHops)
}

func (r *Report) measure(g *Graph, load []int64) {
	var sum int64
	for s := range g.IDs {
		for e := g.Row[s]; e < g.Row[s+1]; e++ {
			sum += load[e]
			if load[e] > r.WorstLoad {
				r.WorstLoad, r.Worst = load[e], g.channel(int32(s), e)
			}
		}
	}
	if len(load) > 0 {
		r.MeanLoad = float64(sum) / float64(len(load))
	}
}

func (g *Graph) channel(s, e int32) Channel {
	return Channel{Switch: g.GUID(s), Port: g.Port[e], Peer: g.GUID(g.To[e])}
}
