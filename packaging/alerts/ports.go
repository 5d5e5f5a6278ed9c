package alerts

// counters are a link of the page about metrics.
const counters = "[metrics.md](metrics.md#counters-of-ports)"

// errorsOf returns the alert about a counter of switch ports and adapters that grew by more than so much in an hour.
func errorsOf(name, counter, most, what, means string) Rule {
	expr := func(kind string) string {
		return "increase(infiniband_" + kind + "_port_" + counter + "[1h]) > " + most
	}
	const labels = `guid="0x0010000100000001",port="7"`
	return Rule{
		Name: name, Severity: Warning,
		Expr:    expr("switch") + " or " + expr("hca"),
		Summary: "Port {{ $labels.port }} of {{ $labels.guid }} has counted {{ $value | humanize }} " + what + " in an hour",
		Means:   means,
		Do: []string{
			"`portcullis fabric links` shows what is at the other end: its counters say which end is bad.",
			"Clean and reseat the cable, then replace it, then the transceiver or the port.",
		},
		More:   counters,
		Fires:  []Series{{Name: "infiniband_switch_port_" + counter, Labels: labels, Values: "0+10x60"}},
		Labels: map[string]string{"guid": "0x0010000100000001", "port": "7"}, Scrape: true,
		Says:  "Port 7 of 0x0010000100000001 has counted 600 " + what + " in an hour",
		Quiet: []Series{{Name: "infiniband_switch_port_" + counter, Labels: labels, Values: "100000x60"}, {Name: "infiniband_hca_port_" + counter, Labels: labels, Values: "0x60"}},
	}
}

// ports returns the alerts about the counters of ports.
func ports() []Rule {
	const labels = `guid="0x0010000100000001",port="7"`
	of := map[string]string{"guid": "0x0010000100000001", "port": "7"}
	return []Rule{
		errorsOf("SymbolErrors", "symbol_error_total", "100", "symbol errors", "The link garbles symbols: a bad cable, transceiver or port. Packets are lost, or forward error correction has more to do than it can."),
		errorsOf("ReceiveErrors", "receive_errors_total", "100", "packets with errors", "Packets came broken: a bad cable, transceiver or port at either end."),
		{
			Name: "LinkFlaps", Severity: Warning,
			Expr:    `increase(infiniband_switch_port_link_downed_total[1h]) > 3`,
			Summary: "The link of port {{ $labels.port }} of switch {{ $labels.guid }} went down {{ $value | humanize }} times in an hour",
			Means:   "A link goes down again and again: a bad cable or transceiver, or a host that is restarted again and again.",
			Do: []string{
				"`portcullis fabric links` shows what is at the other end.",
				"If the host is not restarted, clean and reseat the cable, then replace it.",
			},
			More:   counters,
			Fires:  []Series{{Name: "infiniband_switch_port_link_downed_total", Labels: labels, Values: "0+1x60"}},
			Labels: of, Scrape: true,
			Says:  "The link of port 7 of switch 0x0010000100000001 went down 60 times in an hour",
			Quiet: []Series{{Name: "infiniband_switch_port_link_downed_total", Labels: labels, Values: "255x30 256x30"}},
		},
		{
			Name: "Discards", Severity: Warning, For: "10m",
			Expr:    `rate(infiniband_switch_port_transmit_discards_total[10m]) > 1`,
			Summary: "Port {{ $labels.port }} of switch {{ $labels.guid }} discards {{ $value | humanize }} packets a second",
			Means:   "A switch drops packets that it cannot send in their time: the port behind the link takes none, or the way there is congested.",
			Do: []string{
				"`portcullis fabric links` shows what is at the other end. If it is a host, see whether it hangs.",
				"Compare `transmit_wait_total` of the ports on the way: where it rises is the congestion.",
			},
			More:   counters,
			Fires:  []Series{{Name: "infiniband_switch_port_transmit_discards_total", Labels: labels, Values: "0+600x60"}},
			Labels: of, Scrape: true,
			Says:  "Port 7 of switch 0x0010000100000001 discards 10 packets a second",
			Quiet: []Series{{Name: "infiniband_switch_port_transmit_discards_total", Labels: labels, Values: "0+6x60"}},
		},
		{
			Name: "CountersUnread", Severity: Warning, For: "15m",
			Expr:    `portcullis_port_counter_ports{state="unread"} > 0`,
			Summary: "The counters of {{ $value }} ports of {{ $labels.instance }} are not read",
			Means:   "Ports with a link do not answer for their counters: the device hangs, or refuses performance management. Other alerts about ports say nothing of them.",
			Do: []string{
				"`/metrics/fabric` lacks these ports: compare `infiniband_switch_port_state` with `infiniband_switch_port_transmit_packets_total`.",
				"Restart the device, or update its firmware.",
			},
			More:   counters,
			Fires:  []Series{{Name: "portcullis_port_counter_ports", Labels: `state="unread"`, Values: "3x60"}},
			Labels: map[string]string{"state": "unread"}, Scrape: true,
			Says:  "The counters of 3 ports of a:7443 are not read",
			Quiet: []Series{{Name: "portcullis_port_counter_ports", Labels: `state="unread"`, Values: "0x60"}, {Name: "portcullis_port_counter_ports", Labels: `state="current"`, Values: "9x60"}},
		},
		{
			Name: "CountersSlow", Severity: Warning, For: "15m",
			Expr:    `portcullis_port_counter_interval_seconds{kind="actual"} > ignoring (kind) (1.5 * portcullis_port_counter_interval_seconds{kind="wanted"})`,
			Summary: "The counters of {{ $labels.instance }} are read every {{ $value | humanizeDuration }}",
			Means:   "The counters of ports are read less often than `fabric.counters.every` says: `fabric.counters.rate` does not suffice for so many ports, or many devices answer late.",
			Do:      []string{"Raise `fabric.counters.rate`, or `fabric.counters.every`."},
			More:    counters,
			Fires: []Series{
				{Name: "portcullis_port_counter_interval_seconds", Labels: `kind="actual"`, Values: "60x60"},
				{Name: "portcullis_port_counter_interval_seconds", Labels: `kind="wanted"`, Values: "30x60"},
			},
			Scrape: true,
			Says:   "The counters of a:7443 are read every 1m 0s",
			Quiet: []Series{
				{Name: "portcullis_port_counter_interval_seconds", Labels: `kind="actual"`, Values: "31x60"},
				{Name: "portcullis_port_counter_interval_seconds", Labels: `kind="wanted"`, Values: "30x60"},
			},
		},
		{
			Name: "CountersSaturated", Severity: Warning, For: "1h",
			Expr:    `portcullis_port_counter_saturated > 0`,
			Summary: "{{ $value }} counters of ports of {{ $labels.instance }} are at their largest value",
			Means:   "Devices have counters of 4 to 32 bits that stay at their largest value: they count no more until they are cleared, and alerts about them say nothing.",
			Do: []string{
				"Clear the counters of the device with `perfquery -R LID PORT`. The totals in the metrics go on.",
			},
			More:   counters,
			Fires:  []Series{{Name: "portcullis_port_counter_saturated", Values: "2x120"}},
			Scrape: true,
			Says:   "2 counters of ports of a:7443 are at their largest value",
			Quiet:  []Series{{Name: "portcullis_port_counter_saturated", Values: "2x10 0x110"}},
		},
	}
}

func portsBoard() Dashboard {
	top := func(kind, counter string) Query {
		return Query{`topk(10, rate(infiniband_` + kind + `_port_` + counter + `_total{$F}[$__rate_interval]))`, "{{guid}}/{{port}}"}
	}
	both := func(title, help, counter string) Panel {
		return Panel{Title: title, Help: help, Unit: "ops", Queries: []Query{top("switch", counter), top("hca", counter)}}
	}
	return Dashboard{
		File: "portcullis-ports", Title: "Ports", Help: "Traffic, errors and congestion, of the counters of ports. Needs the job of /metrics/fabric.",
		Panels: []Panel{
			{Title: "Ports read", Help: "Ports whose counters were read lately.", Unit: "short", Now: true, Queries: []Query{{`max(portcullis_port_counter_ports{state="current",$F})`, ""}}},
			{Title: "Ports not read", Help: "Ports with a link whose counters were not read lately: want 0.", Unit: "short", Now: true, Queries: []Query{{`max(portcullis_port_counter_ports{state="unread",$F})`, ""}}},
			{Title: "Saturated counters", Help: "Counters at their largest value, which count no more: want 0.", Unit: "short", Now: true, Queries: []Query{{`max(portcullis_port_counter_saturated{$F})`, ""}}},
			{Title: "Silent devices", Help: "Devices that do not answer for counters: want 0.", Unit: "short", Now: true, Queries: []Query{{`max(portcullis_port_counter_silent_devices{$F})`, ""}}},
			{Title: "Traffic of adapters", Help: "Bytes a second, of all adapters.", Unit: "Bps", Queries: []Query{
				{`sum(rate(infiniband_hca_port_transmit_data_bytes_total{$F}[$__rate_interval]))`, "sent"},
				{`sum(rate(infiniband_hca_port_receive_data_bytes_total{$F}[$__rate_interval]))`, "received"},
			}},
			{Title: "Busiest switch ports", Help: "Bytes a second that they send.", Unit: "Bps", Queries: []Query{top("switch", "transmit_data_bytes")}},
			both("Congestion", "Ticks a second in which a port had data to send and no credit.", "transmit_wait"),
			both("Discards", "Packets a second that were to leave and could not.", "transmit_discards"),
			both("Symbol errors", "A second.", "symbol_error"),
			both("Receive errors", "Packets with errors, a second.", "receive_errors"),
			both("Links down", "Times a second that a link went down.", "link_downed"),
			both("Link recoveries", "Times a second that a link recovered from an error.", "link_error_recovery"),
			both("Link integrity", "Local link integrity errors a second.", "local_link_integrity_errors"),
			both("Buffer overruns", "A second.", "excessive_buffer_overrun_errors"),
			both("Dropped on VL 15", "Packets of subnet management that were dropped, a second.", "vl15_dropped"),
			{Title: "Requests for counters", Help: "A second, by how they ended, and answers in which a counter was less than before.", Unit: "ops", Queries: []Query{
				{`sum by (result) (rate(portcullis_port_counter_requests_total{$F}[$__rate_interval]))`, "{{result}}"},
				{`sum(rate(portcullis_port_counter_resets_total{$F}[$__rate_interval]))`, "resets"},
			}},
			{Title: "Interval", Help: "From one reading of a port to the next.", Unit: "s", Queries: []Query{{`max by (kind) (portcullis_port_counter_interval_seconds{$F})`, "{{kind}}"}}},
		},
	}
}
