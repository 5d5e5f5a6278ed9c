package route

import (
	"math"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Check judges tables against the fabric they are for. It trusts nothing that the tables say about themselves but which
// absent LIDs they keep routes for.
//
//   - Reach: each LID of a CA port or switch is delivered to it from every
//     switch of its island. LIDs without an owner are dropped everywhere.
//   - No forwarding loop for any LID, also not for one whose owner is away: a
//     host can send to any LID.
//   - No credit loop: the channel dependency graph (an edge where some route
//     uses one link right after another) has no cycle. Sources are CA ports,
//     to every LID, and switches, to LIDs of CAs: no switch sends data to
//     another switch. Each layer of the tables has a graph of its own; where
//     packets change lanes on their way, one graph has a node for each lane
//     of each link. Every link between switches must have as many virtual
//     lanes.
//
// With one layer, one LID behind each switch is walked and the others are compared with it; with several, each LID is
// walked. The work is divided among all cores; the report does not depend on their number.
func Check(f *topo.Fabric, t *Tables) Report {
	r, _ := check(f, t, t.manyLanes())
	return r
}

// manyLanes reports whether routes are assigned to lanes, so that each must be walked.
func (t *Tables) manyLanes() bool { return t.Layers() > 1 || t.LanesByPort() }

// check judges tables. everyLID: each LID is walked, which several layers need,
// and there is no proof then.
func check(f *topo.Fabric, t *Tables, everyLID bool) (Report, *proof) {
	g, err := t.graphFor(f)
	r := Report{Switches: len(g.IDs), Links: len(g.To), Input: err}
	rows := tableRows(g, t, &r)
	for _, targets := range g.Targets {
		r.LIDs += len(targets)
	}
	if err != nil || len(r.Findings) > 0 {
		return r, nil
	}
	checkLanes(g, t, &r)

	v := newSurvey(g, t, rows)
	judges := v.judges()
	if everyLID {
		checkStrays(g, rows, &r)
		v.walk(judges, func(Target) bool { return true })
	} else {
		v.walkLeads(judges)
		if v.readRows() {
			checkStrays(g, rows, &r)
		}
		v.countFlows(judges)
		v.walk(judges, func(t Target) bool { return v.odd[t.LID] })
	}
	for _, j := range judges {
		r.add(j)
		for e, n := range j.load {
			v.load[e] += n
		}
	}
	r.measure(g, v.load)
	for layer := 0; layer < t.Layers() && r.CreditLoop == nil; layer++ {
		deps := v.deps
		if layer > 0 {
			deps = newDependencies(g)
		}
		for _, j := range judges {
			deps.merge(j.deps[layer])
		}
		r.Waits = append(r.Waits, Waits{deps})
		if r.CreditLoop = deps.loop(rows); r.CreditLoop != nil {
			r.CreditLoopVL = ib.VL(layer)
		}
	}
	if t.LanesByPort() {
		r.laneLoop(judges, rows)
		r.Waits = nil // what waits for what crosses lanes
	}
	if r.Err() != nil {
		r.Waits = nil
	}
	if everyLID {
		return r, nil
	}
	if r.CreditLoop != nil && len(r.Findings) > 0 {
		return check(f, t, true) // rows were read as if every LID were delivered, so the links that follow may be too many
	}
	v.anyOdd = slices.Contains(v.odd, true)
	return r, &proof{v}
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

// tableRows returns the tables by switch number and reports those that are missing or short.
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

// judges returns one judge for each core.
func (v *survey) judges() []*judge { return v.newJudges(coresFor(len(v.g.IDs))) }

// someJudges returns as many judges as a number of LIDs needs.
func (v *survey) someJudges(lids int) []*judge {
	return v.newJudges(min(coresFor(len(v.g.IDs)), (lids+gatherLIDs-1)/gatherLIDs))
}

func (v *survey) newJudges(n int) []*judge {
	judges := make([]*judge, n)
	for i := range judges {
		judges[i] = newJudge(v.g, v.t, v.rows, v.island)
	}
	return judges
}

// walk has the LIDs that are wanted walked, by contiguous ranges of homes.
func (v *survey) walk(judges []*judge, wanted func(Target) bool) {
	forCores(len(v.g.IDs), func(core, from, to int) {
		j := judges[core]
		var errands []errand
		for home := from; home < to; home++ {
			for _, t := range v.g.Targets[home] {
				if wanted(t) {
					errands = append(errands, errand{int32(home), t})
				}
			}
		}
		j.each(errands, func(home int32, t Target, ports []ib.PortNum) {
			j.readEntries(home, t, ports)
			j.walkAll(t)
			j.startLanes(home, t)
			j.account(t)
			if j.byPort != nil {
				j.byPort.account(j, home, t)
			}
		})
	})
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
