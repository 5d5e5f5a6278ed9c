package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/isolation/standing"
	v1 "portcullis/api/v1"
)

// isolation is how the isolation of all tenants stands.
type isolation struct {
	now                                                                             func() (standing.Standing, bool)
	ofPorts                                                                         func() map[string]int
	bound, read, proven, verdict, pairs, absent, ghosts, unread, asked, told, ports *prometheus.Desc
}

// NewIsolation creates the metrics of the newest examination of all tenants. now reports false while this instance does not lead: there
// is no value then. Before the first examination there is the bound alone.
func NewIsolation(now func() (standing.Standing, bool), ports func() map[string]int) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("portcullis_isolation_"+name, help, labels, nil)
	}
	return &isolation{
		now: now, ofPorts: ports,
		bound:   desc("max_age_seconds", "How old an examination of all tenants may be that still counts."),
		read:    desc("examined_timestamp_seconds", "When the isolation of all tenants was examined last, in Unix time."),
		proven:  desc("proven_timestamp_seconds", "When the newest examination began that found all tenants isolated, in Unix time."),
		verdict: desc("verdict", "1 for the verdict of the newest examination of all tenants, 0 for the others.", "verdict"),
		pairs:   desc("pairs", "Pairs of tenants, or of a tenant and other hosts, by the verdict of that examination.", "verdict"),
		absent:  desc("ports_missing", "Declared ports that were not found where they are declared, so that nothing is proven of them."),
		ghosts:  desc("ghost_members", "Ports that hold a P_Key of a tenant which no membership explains."),
		asked:   desc("administration_examined", "1 if what subnet administration answers to ports without its key was examined, too, 0 if not."),
		told:    desc("disclosures", "Names of ports and partitions of others, and keys, that subnet administration disclosed to ports without its key."),
		unread:  desc("values_unread", "Values of devices that were not read. Tables and settings of them count as letting every packet pass."),
		ports:   desc("ports", "Declared ports of hosts by what the newest examination that this instance made proves of them.", "verdict"),
	}
}

// Describe implements prometheus.Collector.
func (i *isolation) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{i.bound, i.read, i.proven, i.verdict, i.pairs, i.absent, i.ghosts, i.unread, i.asked, i.told, i.ports} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (i *isolation) Collect(ch chan<- prometheus.Metric) {
	s, leads := i.now()
	if !leads {
		return
	}
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	put(i.bound, s.MaxAge.Seconds())
	if !s.Proven.IsZero() {
		put(i.proven, float64(s.Proven.Unix()))
	}
	if s.Examined.IsZero() {
		return
	}
	put(i.read, float64(s.Examined.Unix()))
	c := &s.Counts
	for verdict, n := range map[string]int{v1.Isolated: c.Pairs.Isolated, v1.Leaks: c.Pairs.Leaks, v1.IsolationUnknown: c.Pairs.Unknown} {
		put(i.pairs, float64(n), verdict)
		is := 0.0
		if verdict == s.Verdict {
			is = 1
		}
		put(i.verdict, is, verdict)
	}
	put(i.absent, float64(c.Missing))
	put(i.ghosts, float64(c.Ghosts))
	put(i.unread, float64(c.Unread))
	asked := 0.0
	if c.Asked {
		asked = 1
		put(i.told, float64(c.Disclosed))
	}
	put(i.asked, asked)
	for verdict, n := range i.ofPorts() {
		put(i.ports, float64(n), verdict)
	}
}
