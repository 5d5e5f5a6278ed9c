package query

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/topo"
)

// Counters are the counters of ports, as they were read last. It is safe for concurrent use.
type Counters interface {
	// Append appends the totals of all ports that were read lately.
	Append(to []perfmgr.Reading) []perfmgr.Reading
	// Rates appends what ports of switches carried lately, in the order of the ports.
	Rates(of []ib.Place, to []perfmgr.Rate) []perfmgr.Rate
	Stats() perfmgr.Stats
}

// countSeries are the series of counters: after "infiniband_switch_port_" or "infiniband_hca_port_".
var countSeries = [perfmgr.NumCounters]struct{ name, help string }{
	perfmgr.XmitData:                     {"transmit_data_bytes_total", "Bytes sent: PortXmitData times four."},
	perfmgr.RcvData:                      {"receive_data_bytes_total", "Bytes received: PortRcvData times four."},
	perfmgr.XmitPkts:                     {"transmit_packets_total", "PortXmitPkts."},
	perfmgr.RcvPkts:                      {"receive_packets_total", "PortRcvPkts."},
	perfmgr.UnicastXmitPkts:              {"unicast_transmit_packets_total", "PortUnicastXmitPkts."},
	perfmgr.UnicastRcvPkts:               {"unicast_receive_packets_total", "PortUnicastRcvPkts."},
	perfmgr.MulticastXmitPkts:            {"multicast_transmit_packets_total", "PortMulticastXmitPkts."},
	perfmgr.MulticastRcvPkts:             {"multicast_receive_packets_total", "PortMulticastRcvPkts."},
	perfmgr.SymbolErrors:                 {"symbol_error_total", "SymbolErrorCounter."},
	perfmgr.LinkErrorRecovery:            {"link_error_recovery_total", "LinkErrorRecoveryCounter."},
	perfmgr.LinkDowned:                   {"link_downed_total", "LinkDownedCounter."},
	perfmgr.RcvErrors:                    {"receive_errors_total", "PortRcvErrors."},
	perfmgr.RcvRemotePhysicalErrors:      {"receive_remote_physical_errors_total", "PortRcvRemotePhysicalErrors."},
	perfmgr.RcvSwitchRelayErrors:         {"receive_switch_relay_errors_total", "PortRcvSwitchRelayErrors."},
	perfmgr.XmitDiscards:                 {"transmit_discards_total", "PortXmitDiscards."},
	perfmgr.XmitConstraintErrors:         {"transmit_constraint_errors_total", "PortXmitConstraintErrors."},
	perfmgr.RcvConstraintErrors:          {"receive_constraint_errors_total", "PortRcvConstraintErrors."},
	perfmgr.LocalLinkIntegrityErrors:     {"local_link_integrity_errors_total", "LocalLinkIntegrityErrors."},
	perfmgr.ExcessiveBufferOverrunErrors: {"excessive_buffer_overrun_errors_total", "ExcessiveBufferOverrunErrors."},
	perfmgr.VL15Dropped:                  {"vl15_dropped_total", "VL15Dropped."},
	perfmgr.XmitWait:                     {"transmit_wait_total", "PortXmitWait: ticks with data to send and no credit."},
	perfmgr.QP1Dropped:                   {"qp1_dropped_total", "QP1Dropped."},
}

// counted is a port with its labels.
type counted struct {
	*perfmgr.Reading
	labels string // such as {guid="0x...",port="1"} and a space
}

// counters writes the counters of ports.
func (d *devices) counters(all []perfmgr.Reading) {
	slices.SortFunc(all, func(a, b perfmgr.Reading) int {
		return cmp.Or(cmp.Compare(a.GUID, b.GUID), cmp.Compare(a.Port, b.Port))
	})
	var switches, others []counted
	for i := range all {
		r := &all[i]
		id := d.Fabric.NodeByGUID(r.GUID)
		if id == topo.None {
			continue // it has gone since
		}
		c := counted{r, `{guid="` + r.GUID.String() + `",port="` + strconv.Itoa(int(r.Port)) + `"} `}
		if d.Fabric.Node(id).Type == ib.NodeSwitch {
			switches = append(switches, c)
		} else {
			others = append(others, c)
		}
	}
	d.counts("infiniband_switch_port_", switches)
	d.counts("infiniband_hca_port_", others)
}

// counts writes the families of one kind of node.
func (d *devices) counts(prefix string, all []counted) {
	for c := range perfmgr.Counter(perfmgr.NumCounters) {
		name := prefix + countSeries[c].name
		begun := false
		for i := range all {
			r := &all[i]
			if !r.Has.Has(c) {
				continue
			}
			if !begun {
				begun = true
				d.b.WriteString("# HELP " + name + " " + countSeries[c].help + "\n# TYPE " + name + " counter\n")
			}
			v := r.Totals[c]
			if c == perfmgr.XmitData || c == perfmgr.RcvData {
				v = 4 * min(v, math.MaxUint64/4)
			}
			d.b.WriteString(name)
			d.b.WriteString(r.labels)
			_, _ = d.b.Write(strconv.AppendUint(d.b.AvailableBuffer(), v, 10)) // Flush returns the error
			d.b.WriteByte('\n')
		}
	}
}
