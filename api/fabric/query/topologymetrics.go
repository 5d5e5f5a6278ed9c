package query

import (
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// topologyDescs are the metrics of the declared topology. There are none without one.
type topologyDescs struct {
	revision, mode, wanted, since, rooted *prometheus.Desc
	links, ports, states, found, pages    *prometheus.Desc
}

func newTopologyDescs() topologyDescs {
	return topologyDescs{
		revision: desc("topology_revision", "Number of the revision of the declared topology in force."),
		mode:     desc("topology_mode", "1 for the mode in which the declared topology is in force.", "mode"),
		wanted:   desc("topology_wanted_mode", "1 for the mode that was asked for: enforcement begins when its guards allow it.", "mode"),
		since:    desc("topology_in_force_timestamp_seconds", "When this revision, or this mode of it, was put into force."),
		rooted:   desc("topology_rooted", "1 while the subnet manager is where it is declared: else nothing can be verified."),
		links:    desc("topology_links", "Links that are declared to be up: all that are expected, those that are verified, and those of which no end is seen.", "state"),
		ports:    desc("topology_ports", "Ports at which the fabric is not as declared, by what is the matter.", "verdict"),
		states:   desc("topology_port_states", "Ports at which the fabric is not as declared, by what became of them.", "state"),
		found:    desc("topology_findings_total", "Ports that were found not to be as declared, by what was the matter.", "verdict"),
		pages:    desc("topology_protected_violations", "Ports that would be switched off and are not, since they are the only way to something: a person is needed at once."),
	}
}

func (d *topologyDescs) describe(ch chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{d.revision, d.mode, d.wanted, d.since, d.rooted, d.links, d.ports, d.states, d.found, d.pages} {
		ch <- one
	}
}

// topology sends what is known by the declared topology. Every label has the same
// values at all times.
func (g *gauges) topology(v *declared.TopologyView) {
	if v == nil {
		return
	}
	d := &g.d.topology
	g.gauge(d.revision, float64(v.Revision))
	for m := topospec.Observe; m <= topospec.Enforce; m++ {
		g.gauge(d.mode, truth(m == v.Mode), m.String())
		g.gauge(d.wanted, truth(m == v.Wanted), m.String())
	}
	g.gauge(d.since, float64(v.Since.UnixMilli())/1000)
	g.gauge(d.rooted, truth(v.Rooted))
	g.gauge(d.pages, float64(v.Pages))
	for state, n := range map[string]int{"expected": v.Expected, "verified": v.Verified, "missing": v.Missing} {
		g.gauge(d.links, float64(n), state)
	}
	for verdict := verify.Unseen + 1; verdict < verify.NumVerdicts; verdict++ {
		if verdict == verify.Verified {
			continue // with a field that differs and is not enforced; the alarm is an event
		}
		g.gauge(d.ports, float64(v.Verdicts[verdict]), verdict.String())
		g.counter(d.found, v.Told[verdict], verdict.String())
	}
	for state := verify.StateDark; state < verify.NumStates; state++ {
		g.gauge(d.states, float64(v.States[state]), state.String())
	}
}
