package declared

import (
	"time"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// TopologyView is the declared topology in force, and where the fabric differs.
type TopologyView struct {
	Fabric   string
	Revision uint64
	Digest   topospec.Digest
	Mode     topospec.Mode // in force
	Wanted   topospec.Mode // as requested: enforcement begins when its guards allow it
	Rooted   bool          // the subnet manager is where it is declared
	Verified int           // links
	Backbone int           // of these, links of which no tenant has an end
	Expected int           // links
	Missing  int           // expected links of which no end was seen
	Score    topospec.Permille
	Since    time.Time // when this revision, or this mode of it, was put into force

	// Verdicts and States count the ports at which the fabric is not as declared, all of
	// them.
	Verdicts [verify.NumVerdicts]int
	States   [verify.NumStates]int
	Pages    int // of these, ports that are protected: a person is needed at once
	// Ports are where the fabric is not as declared, by place, at most
	// MaxTopologyPorts; More is how many there are beyond those.
	Ports []TopologyPort
	More  int
	// Told counts findings that were reported, by verdict, since the start.
	Told map[verify.Verdict]uint64
}

// MaxTopologyPorts bounds the ports that a view lists.
const MaxTopologyPorts = 4096

// Show returns what a view shows of the declared topology, nil without one.
func (l *Law) Show() *TopologyView {
	if !l.IsOn() {
		return nil
	}
	j := l.judge
	if v := l.rows.shown; v != nil && !l.rows.stale && v.Verified == j.Verified() && v.Backbone == j.Backbone() && v.Mode == j.Mode() {
		return v
	}
	spec := j.Spec()
	v := &TopologyView{
		Fabric: spec.Revision().Fabric, Revision: spec.Revision().Number, Digest: spec.Digest(), Mode: j.Mode(), Wanted: l.wanted,
		Rooted: j.Rooted(), Verified: j.Verified(), Backbone: j.Backbone(), Expected: spec.NumActive(), Missing: j.NumMissing(), Score: j.Score(),
		Since: l.since, Ports: l.rows.list(), Told: make(map[verify.Verdict]uint64),
	}
	for i := range v.Ports {
		v.Verdicts[v.Ports[i].Verdict]++
		v.States[v.Ports[i].State]++
		if v.Ports[i].Page {
			v.Pages++
		}
	}
	if len(v.Ports) > MaxTopologyPorts {
		v.Ports, v.More = v.Ports[:MaxTopologyPorts:MaxTopologyPorts], len(v.Ports)-MaxTopologyPorts
	}
	for i, n := range l.rows.told {
		if n > 0 {
			v.Told[verify.Verdict(i)] = n
		}
	}
	l.rows.shown, l.rows.stale = v, false
	return v
}
