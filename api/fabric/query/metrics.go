package query

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/settling"
)

// desc describes a metric. Labels have few values: no GUID is one.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("portcullis_"+name, help, labels, nil)
}

// descs are the metrics of the subnet manager and of the fabric it sees.
type descs struct {
	role, epoch, settled, sweep, sweepSMPs     *prometheus.Desc
	smp, sent, retries, outstanding, window    *prometheus.Desc
	queue, traps, violations, dropped, events  *prometheus.Desc
	suppressed, unhealthy, mute                *prometheus.Desc
	nodes, ports, links, degraded, faults      *prometheus.Desc
	routeSeconds, routes, routeInfo, routeLIDs *prometheus.Desc
	drift, fill, observed                      *prometheus.Desc
	keyDevices, keyAge, keyPending, keyFailed  *prometheus.Desc
	keyUnsupported, keysReleased               *prometheus.Desc
	sight, unseen, unseenSince                 *prometheus.Desc
	topology                                   topologyDescs
	counters                                   counterDescs
	sa                                         saDescs
}

func newDescs() *descs {
	return &descs{
		role:           desc("sm_role", "1 for the SMInfo state that this subnet manager is in.", "role"),
		epoch:          desc("sm_epoch", "Times that this subnet manager became master since it was started."),
		settled:        desc("sm_settled", "1 while the fabric is as it is wanted."),
		sweep:          desc("sm_sweep_seconds", "Time from what caused work until the fabric was settled.", "kind"),
		sweepSMPs:      desc("sm_sweep_smps_total", "Requests sent from what caused work until the fabric was settled.", "kind"),
		smp:            desc("sm_smp_total", "Requests by how they ended.", "class", "result"),
		sent:           desc("sm_smp_sent_total", "Requests sent.", "method", "attribute"),
		retries:        desc("sm_smp_retries_total", "Requests that repeat one which was not answered."),
		outstanding:    desc("sm_smp_outstanding", "Requests that are out."),
		window:         desc("sm_smp_window", "Requests that may be out at once."),
		queue:          desc("sm_queue_length", "Work that waits, by what it asks for.", "work"),
		traps:          desc("sm_traps_total", "Traps received."),
		violations:     desc("violations_total", "Violations by what became of the reports: reported, of which confirmed or refuted by the device they name; repeated; and counted by devices.", "class", "verdict"),
		suppressed:     desc("violations_suppressed_total", "Reports of violations that were not logged one by one.", "class"),
		dropped:        desc("mad_dropped_total", "MADs that came and were malformed or meant nothing."),
		events:         desc("sm_events_total", "Events of the subnet manager.", "event"),
		nodes:          desc("fabric_nodes", "Nodes seen.", "type"),
		ports:          desc("fabric_ports", "Ports with a cable, by state.", "state"),
		links:          desc("fabric_links", "Cables seen."),
		degraded:       desc("fabric_links_degraded", "Links that run below what both ends offer."),
		faults:         desc("fabric_faults", "What is wrong now.", "kind"),
		mute:           desc("fabric_mute_switches", "Switches that send no trap 259 of a wrong P_Key; counters of their ports are read instead."),
		unhealthy:      desc("fabric_unhealthy", "Places that count as unhealthy now.", "condition", "action"),
		routeSeconds:   desc("route_seconds", "Time that the last routing computation took, its check included."),
		routes:         desc("route_computations_total", "Routing computations by whether their tables were taken.", "result"),
		routeInfo:      desc("route_info", "1 for the engine whose tables are in use.", "engine"),
		routeLIDs:      desc("route_lids", "LIDs with routes."),
		drift:          desc("reconcile_drift", "What differs from what is wanted and is still to be written.", "kind"),
		fill:           desc("pkey_table_fill_ratio", "Fill of the fullest P_Key table of a kind.", "table"),
		keyDevices:     desc("key_devices", "Devices by how they stand to their key.", "class", "state"),
		keyAge:         desc("key_age_seconds", "Age of the keys that devices hold.", "class", "quantile"),
		keyPending:     desc("key_rotation_pending", "Devices whose key is being changed.", "class"),
		keyFailed:      desc("key_rotation_failed", "Devices that did not take a new key when it was their turn.", "class"),
		keyUnsupported: desc("key_rotation_unsupported", "Devices that hold one key at a time, and keep an old one.", "class"),
		keysReleased:   desc("keys_released", "1 while no keys are given out because they were asked to be given back."),
		sight:          desc("fabric_sight", "1 for the state of what the subnet manager sees of the fabric that it knows.", "state"),
		unseen:         desc("fabric_out_of_sight", "What was known and is out of sight, while the subnet manager is blind or partly blind.", "kind"),
		unseenSince:    desc("fabric_out_of_sight_since_timestamp_seconds", "Since when the subnet manager is blind or partly blind; 0: it is not."),
		topology:       newTopologyDescs(),
		counters:       newCounterDescs(),
		sa:             newSADescs(),
		observed:       desc("fabric_observed_timestamp_seconds", "When the subnet manager last showed the fabric."),
	}
}

// Describe implements prometheus.Collector.
func (o *Observer) Describe(ch chan<- *prometheus.Desc) {
	d := o.descs
	for _, one := range []*prometheus.Desc{
		d.role, d.epoch, d.settled, d.sweep, d.sweepSMPs, d.smp, d.sent, d.retries, d.outstanding, d.window, d.queue,
		d.traps, d.violations, d.suppressed, d.dropped, d.events, d.nodes, d.ports, d.links, d.degraded, d.faults, d.unhealthy, d.mute, d.routeSeconds, d.routes,
		d.routeInfo, d.routeLIDs, d.drift, d.fill, d.observed,
		d.keyDevices, d.keyAge, d.keyPending, d.keyFailed, d.keyUnsupported, d.keysReleased,
		d.sight, d.unseen, d.unseenSince,
	} {
		ch <- one
	}
	d.topology.describe(ch)
	d.counters.describe(ch)
	d.sa.describe(ch)
}

// Collect implements prometheus.Collector. It reads the newest view; before the
// first there is nothing but events.
func (o *Observer) Collect(ch chan<- prometheus.Metric) {
	g := gauges{ch: ch, d: o.descs}
	o.log.collect(&g)
	x := o.newest.Load()
	role := "lost"
	if x != nil {
		role = strings.ToLower(x.State.String())
	}
	for _, r := range []string{"lost", "notactive", "discovering", "standby", "master"} {
		g.gauge(o.descs.role, truth(r == role), r)
	}
	g.sight(o.judged())
	if x == nil {
		return
	}
	g.manager(x)
	g.fabric(x.ready())
	g.keys(x)
	g.topology(x.Topology)
	g.counters(o.counters)
	if s := o.administration.Load(); s != nil {
		g.administration(s)
	}
}

// sight sends whether the subnet manager sees what it knows, once that was judged. A subnet manager that runs alone
// does not.
func (g *gauges) sight(s v1.Sight) {
	if s.State == "" {
		return
	}
	for _, state := range []string{v1.SightClear, v1.SightPartly, v1.SightBlind} {
		g.gauge(g.d.sight, truth(s.State == state), state)
	}
	since := 0.0
	if !s.Since.IsZero() {
		since = float64(s.Since.UnixNano()) / 1e9
	}
	g.gauge(g.d.unseen, float64(s.Nodes), "nodes")
	g.gauge(g.d.unseen, float64(s.Ports), "ports")
	g.gauge(g.d.unseen, float64(s.Hosts), "hosts")
	g.gauge(g.d.unseenSince, since)
}

// gauges sends metrics.
type gauges struct {
	ch chan<- prometheus.Metric
	d  *descs
}

func (g *gauges) gauge(d *prometheus.Desc, v float64, labels ...string) {
	g.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (g *gauges) counter(d *prometheus.Desc, v uint64, labels ...string) {
	g.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (g *gauges) manager(x *index) {
	d, c, p := g.d, &x.Counters, &x.View.Progress
	g.gauge(d.epoch, float64(c.Masterships))
	g.gauge(d.settled, truth(x.Settled))
	g.gauge(d.observed, float64(x.Time.UnixMilli())/1000)
	for result, n := range map[string]uint64{
		"answered": c.Answered - c.Refused, "refused": c.Refused, "timeout": c.TimedOut, "undelivered": c.Undelivered,
	} {
		g.counter(d.smp, n, "subn_directed", result)
	}
	for _, k := range x.SMPs {
		g.counter(d.sent, k.Sent, k.Method.String(), k.Attr.String())
	}
	g.counter(d.retries, c.Repeated)
	g.gauge(d.outstanding, float64(x.Pending))
	g.gauge(d.window, float64(p.Window))
	for i, n := range p.Waiting {
		g.gauge(d.queue, float64(n), settling.WorkName(i))
	}
	g.counter(d.traps, c.Traps)
	g.violations(x)
	g.counter(d.dropped, x.Dropped)
	g.counter(d.routes, c.Routed, "taken")
	g.counter(d.routes, c.Unrouted, "refused")
	g.gauge(d.drift, float64(p.LFTBlocks), "lft_blocks")
	g.gauge(d.drift, float64(p.LFTSwitches), "lft_switches")
	g.gauge(d.drift, float64(p.Activating), "ports_waiting")
	g.gauge(d.drift, float64(p.Urgent), "p_keys_to_take_away")
}

func (g *gauges) fabric(x *index) {
	d := g.d
	nodes, ports := x.counts()
	for kind, n := range map[string]int{"switch": nodes.Switches, "ca": nodes.CAs, "router": nodes.Routers} {
		g.gauge(d.nodes, float64(n), kind)
	}
	for state, n := range map[string]int{
		"active": ports.Active, "armed": ports.Armed, "init": ports.Init, "down": ports.Down, "unread": ports.Unread,
	} {
		g.gauge(d.ports, float64(n), state)
	}
	_, links, degraded := x.kinds()
	g.gauge(d.links, float64(links))
	g.gauge(d.degraded, float64(degraded))
	kinds := map[string]int{}
	for _, f := range x.Faults {
		kinds[f.Kind.String()]++
	}
	for kind, n := range kinds {
		g.gauge(d.faults, float64(n), kind)
	}
	g.health(x)
	g.gauge(d.mute, float64(len(x.MuteSwitches())))
	r := x.routing()
	g.gauge(d.routeSeconds, r.Seconds)
	g.gauge(d.routeLIDs, float64(r.LIDs))
	if r.Engine != "" {
		g.gauge(d.routeInfo, 1, r.Engine)
	}
	hca, port := x.fill()
	g.gauge(d.fill, hca, "hca")
	g.gauge(d.fill, port, "switch_port")
}

// health counts the places that are unhealthy.
func (g *gauges) health(x *index) {
	type why struct {
		condition health.Condition
		action    health.Action
	}
	n := map[why]int{}
	for i := range x.View.Health {
		if h := &x.View.Health[i]; h.Unhealthy {
			n[why{h.Condition, h.Action}]++
		}
	}
	for w, n := range n {
		g.gauge(g.d.unhealthy, float64(n), w.condition.String(), w.action.String())
	}
}

// fill returns how full the fullest P_Key tables are.
func (x *index) fill() (hca, port float64) {
	f := x.Fabric
	for i := range f.Ports() {
		id := i
		keys, _ := x.PKeys(id)
		if len(keys) == 0 {
			continue
		}
		n := f.NodeOf(id)
		if n.Type == ib.NodeSwitch && f.Port(id).Num != 0 {
			if n.PartitionEnforcementCap > 0 {
				port = max(port, float64(len(keys))/float64(n.PartitionEnforcementCap))
			}
			continue
		}
		hca = max(hca, float64(len(keys))/float64(max(1, n.PartitionCap)))
	}
	return hca, port
}

// collect sends what was counted of events.
func (h *history) collect(g *gauges) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for kind, n := range h.counts {
		g.counter(g.d.events, n, typeName(kind))
	}
	for i, kind := range settleKinds {
		buckets := make(map[float64]uint64, len(settleBuckets))
		for b, bound := range settleBuckets {
			buckets[bound] = h.times.buckets[i][b]
		}
		g.ch <- prometheus.MustNewConstHistogram(g.d.sweep, h.times.count[i], h.times.sum[i], buckets, kind)
		g.counter(g.d.sweepSMPs, h.times.smps[i], kind)
	}
}
