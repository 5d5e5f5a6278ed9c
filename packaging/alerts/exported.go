package alerts

import (
	"slices"
	"strings"
)

// Metric is a metric of the service that rules and dashboards use.
type Metric struct {
	Name   string
	Type   string   // counter, gauge or histogram
	Labels []string // sorted
}

// Exported returns the metrics that rules and dashboards may use. A test of the service compares them with what it exports.
func Exported() []Metric {
	var all []Metric
	for _, m := range []struct {
		kind, name string
		labels     []string
	}{
		{"gauge", "admission_brake_engaged", []string{"class"}},
		{"gauge", "admission_brake_held_hosts", []string{"class"}},
		{"counter", "admissions_lost_total", nil},
		{"counter", "attestation_results_total", []string{"status"}},
		{"counter", "attestations_total", []string{"proven", "result"}},
		{"gauge", "audit_anchor_behind_seconds", []string{"anchor"}},
		{"gauge", "audit_verified_timestamp_seconds", nil},
		{"gauge", "audit_whole", nil},
		{"gauge", "backup_newest_timestamp_seconds", nil},
		{"gauge", "clock_believed", nil},
		{"counter", "events_total", []string{"event"}},
		{"gauge", "fabric_faults", []string{"kind"}},
		{"gauge", "fabric_links", nil},
		{"gauge", "fabric_links_degraded", nil},
		{"gauge", "fabric_nodes", []string{"type"}},
		{"gauge", "fabric_ports", []string{"state"}},
		{"gauge", "fabric_sight", []string{"state"}},
		{"gauge", "fabric_unhealthy", []string{"action", "condition"}},
		{"histogram", "host_admit_seconds", nil},
		{"histogram", "host_isolate_seconds", nil},
		{"gauge", "history_bytes", nil},
		{"gauge", "history_failing", nil},
		{"gauge", "history_seconds", nil},
		{"gauge", "hosts", []string{"phase"}},
		{"counter", "http_limited_total", []string{"limit"}},
		{"histogram", "http_request_seconds", []string{"route"}},
		{"counter", "http_requests_total", []string{"method", "route", "status"}},
		{"gauge", "isolation_disclosures", nil},
		{"gauge", "isolation_examined_timestamp_seconds", nil},
		{"gauge", "isolation_ghost_members", nil},
		{"gauge", "isolation_max_age_seconds", nil},
		{"gauge", "isolation_pairs", []string{"verdict"}},
		{"gauge", "isolation_ports", []string{"verdict"}},
		{"gauge", "isolation_ports_missing", nil},
		{"gauge", "isolation_proven_timestamp_seconds", nil},
		{"gauge", "isolation_values_unread", nil},
		{"gauge", "isolation_verdict", []string{"verdict"}},
		{"gauge", "key_age_seconds", []string{"class", "quantile"}},
		{"gauge", "key_devices", []string{"class", "state"}},
		{"gauge", "key_rotation_failed", []string{"class"}},
		{"gauge", "key_rotation_pending", []string{"class"}},
		{"gauge", "keys_released", nil},
		{"gauge", "leader", nil},
		{"gauge", "leader_epoch", nil},
		{"gauge", "leader_lease_seconds", nil},
		{"counter", "mad_dropped_total", nil},
		{"counter", "mad_limited_total", []string{"lane", "verdict"}},
		{"gauge", "pkey_table_fill_ratio", []string{"table"}},
		{"gauge", "port_counter_interval_seconds", []string{"kind"}},
		{"gauge", "port_counter_ports", []string{"state"}},
		{"counter", "port_counter_requests_total", []string{"result"}},
		{"counter", "port_counter_resets_total", nil},
		{"gauge", "port_counter_saturated", nil},
		{"gauge", "port_counter_silent_devices", nil},
		{"gauge", "ready", []string{"part"}},
		{"gauge", "reconcile_drift", []string{"kind"}},
		{"gauge", "reference_waivers", []string{"state"}},
		{"counter", "route_computations_total", []string{"result"}},
		{"counter", "sa_answers_total", nil},
		{"counter", "sa_limited_total", []string{"lane", "verdict"}},
		{"counter", "sa_packets_total", nil},
		{"counter", "sa_refused_total", []string{"verdict"}},
		{"gauge", "sm_queue_length", []string{"work"}},
		{"gauge", "sm_role", []string{"role"}},
		{"gauge", "sm_settled", nil},
		{"gauge", "sm_smp_outstanding", nil},
		{"counter", "sm_smp_sent_total", []string{"attribute", "method"}},
		{"counter", "sm_smp_total", []string{"class", "result"}},
		{"gauge", "sm_smp_window", nil},
		{"histogram", "sm_sweep_seconds", []string{"kind"}},
		{"gauge", "state_in_review", []string{"cause"}},
		{"gauge", "store_disk_free_bytes", nil},
		{"gauge", "store_in_use_bytes", nil},
		{"gauge", "store_owed", []string{"kind"}},
		{"gauge", "store_quota_bytes", nil},
		{"gauge", "store_restarts", nil},
		{"gauge", "store_size_bytes", nil},
		{"gauge", "store_takes_all", nil},
		{"gauge", "store_up", nil},
		{"gauge", "tls_certificate_end_timestamp_seconds", nil},
		{"gauge", "tokens", []string{"state"}},
		{"gauge", "topology_links", []string{"state"}},
		{"gauge", "topology_mode", []string{"mode"}},
		{"gauge", "topology_ports", []string{"verdict"}},
		{"gauge", "topology_protected_violations", nil},
		{"gauge", "topology_rooted", nil},
		{"gauge", "topology_wanted_mode", []string{"mode"}},
		{"counter", "violations_total", []string{"class", "verdict"}},
		{"gauge", "webhook_behind_seconds", []string{"webhook"}},
		{"gauge", "webhook_failing_seconds", []string{"kind", "webhook"}},
		{"counter", "webhook_messages_total", []string{"result", "webhook"}},
	} {
		all = append(all, Metric{"portcullis_" + m.name, m.kind, m.labels})
	}
	return all
}

// OfPorts returns the series of /metrics/fabric that rules and dashboards may use, of switches and adapters.
func OfPorts() []Metric {
	var all []Metric
	for _, kind := range []string{"switch", "hca"} {
		for _, name := range []string{
			"excessive_buffer_overrun_errors", "link_downed", "link_error_recovery", "local_link_integrity_errors", "receive_data_bytes",
			"receive_errors", "symbol_error", "transmit_data_bytes", "transmit_discards", "transmit_wait", "vl15_dropped",
		} {
			all = append(all, Metric{"infiniband_" + kind + "_port_" + name + "_total", "counter", []string{"guid", "port"}})
		}
	}
	return all
}

// FindMetric returns a metric by its name; of a histogram that is the name of its buckets. The series that Prometheus itself makes of each target is one.
func FindMetric(name string) (Metric, bool) {
	if name == "up" {
		return Metric{Name: "up", Type: "gauge"}, true
	}
	bucket := strings.HasSuffix(name, "_bucket")
	name = strings.TrimSuffix(name, "_bucket")
	all := append(Exported(), OfPorts()...)
	i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if i < 0 || bucket != (all[i].Type == "histogram") {
		return Metric{}, false
	}
	m := all[i]
	if bucket {
		m.Labels = append([]string{"le"}, m.Labels...)
	}
	return m, true
}
