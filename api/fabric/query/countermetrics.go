package query

import "github.com/prometheus/client_golang/prometheus"

// counterDescs are the metrics of the reading of port counters.
type counterDescs struct {
	requests, strays, resets, implausible   *prometheus.Desc
	ports, silent, saturated                *prometheus.Desc
	passSeconds, intervalSeconds, readSince *prometheus.Desc
}

func newCounterDescs() counterDescs {
	return counterDescs{
		requests:        desc("port_counter_requests_total", "Requests for counters of ports by how they ended.", "result"),
		strays:          desc("port_counter_strays_total", "Answers with counters that no request was out for."),
		resets:          desc("port_counter_resets_total", "Answers in which a counter was less than before: it was cleared, or the device restarted."),
		implausible:     desc("port_counter_implausible_total", "Answers in which a counter grew by more than any link carries; that growth is not in the totals."),
		ports:           desc("port_counter_ports", "Ports with a link by whether their counters were read in the last two passes.", "state"),
		silent:          desc("port_counter_silent_devices", "Devices that do not answer for counters, and are asked less and less often."),
		saturated:       desc("port_counter_saturated", "Counters of ports that are at their largest value, and count no more until they are cleared."),
		passSeconds:     desc("port_counter_pass_seconds", "Time that the last reading of all ports took."),
		intervalSeconds: desc("port_counter_interval_seconds", "Time from one reading of a port to the next: wanted, and actual.", "kind"),
		readSince:       desc("port_counter_read_timestamp_seconds", "When the last reading of all ports began that is over; 0: none is."),
	}
}

func (d *counterDescs) describe(ch chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{
		d.requests, d.strays, d.resets, d.implausible, d.ports, d.silent, d.saturated, d.passSeconds, d.intervalSeconds, d.readSince,
	} {
		ch <- one
	}
}

// counters sends how the reading of counters goes; nothing where none are read.
func (g *gauges) counters(c Counters) {
	if c == nil {
		return
	}
	d, s := &g.d.counters, c.Stats()
	for result, n := range map[string]uint64{"answered": s.Answered, "refused": s.Refused, "timeout": s.TimedOut, "invalid": s.Invalid} {
		g.counter(d.requests, n, result)
	}
	g.counter(d.strays, s.Strays)
	g.counter(d.resets, s.Resets)
	g.counter(d.implausible, s.Implausible)
	g.gauge(d.ports, float64(s.Current), "current")
	g.gauge(d.ports, float64(s.Ports-s.Current), "unread")
	g.gauge(d.silent, float64(s.Silent))
	g.gauge(d.saturated, float64(s.Saturated))
	g.gauge(d.passSeconds, s.Took.Seconds())
	g.gauge(d.intervalSeconds, s.Interval.Seconds(), "wanted")
	g.gauge(d.intervalSeconds, s.Between.Seconds(), "actual")
	since := 0.0
	if !s.Begun.IsZero() {
		since = float64(s.Begun.UnixMilli()) / 1000
	}
	g.gauge(d.readSince, since)
}
