package query_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
)

// gather returns every series of an Observer by the name of its metric.
func gather(t *testing.T, o *query.Observer) map[string][]map[string]string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(o); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
	out := map[string][]map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out[f.GetName()] = append(out[f.GetName()], labels)
		}
	}
	return out
}

// families are the metrics that dashboards are made of. To rename one breaks
// them.
var families = []string{
	"portcullis_sm_role", "portcullis_sm_epoch", "portcullis_sm_sweep_seconds", "portcullis_sm_smp_total",
	"portcullis_violations_total", "portcullis_violations_suppressed_total", "portcullis_pkey_table_fill_ratio", "portcullis_reconcile_drift",
	"portcullis_sm_settled", "portcullis_sm_sweep_smps_total", "portcullis_sm_smp_sent_total", "portcullis_sm_smp_retries_total",
	"portcullis_sm_smp_outstanding", "portcullis_sm_smp_window", "portcullis_sm_queue_length", "portcullis_sm_traps_total",
	"portcullis_mad_dropped_total", "portcullis_sm_events_total", "portcullis_fabric_nodes", "portcullis_fabric_ports",
	"portcullis_fabric_mute_switches",
	"portcullis_fabric_links", "portcullis_fabric_links_degraded", "portcullis_fabric_faults", "portcullis_route_seconds",
	"portcullis_route_computations_total", "portcullis_route_info", "portcullis_route_lids", "portcullis_fabric_observed_timestamp_seconds",
}

func TestMetrics(t *testing.T) {
	got := gather(t, tree(t, map[string]sim.Fault{"h3": {Silent: true}}))
	for _, name := range families {
		if len(got[name]) == 0 {
			t.Errorf("there is no %s", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is not among those that are held", name)
	}
}

// TestMetricsOfSight: there are none before it was judged, and also while the fabric is lost.
func TestMetricsOfSight(t *testing.T) {
	o := query.New(query.Options{})
	if got := gather(t, o); len(got["portcullis_fabric_sight"]) != 0 {
		t.Errorf("before the first judgement: %v", got)
	}
	o.OnSight(v1.Sight{State: v1.SightBlind, Cause: v1.SightOwnPort, Since: time.Unix(1000, 0), Nodes: 7, Ports: 9, Hosts: 3})
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(o)
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if name := f.GetName(); name == "portcullis_fabric_sight" || strings.HasPrefix(name, "portcullis_fabric_out_of_sight") {
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				got[name] = m.GetGauge().GetValue()
			}
		}
	}
	want := map[string]float64{
		"portcullis_fabric_sight blind": 1, "portcullis_fabric_sight clear": 0, "portcullis_fabric_sight partly-blind": 0,
		"portcullis_fabric_out_of_sight nodes": 7, "portcullis_fabric_out_of_sight ports": 9, "portcullis_fabric_out_of_sight hosts": 3,
		"portcullis_fabric_out_of_sight_since_timestamp_seconds": 1000,
	}
	if !maps.Equal(got, want) {
		t.Errorf("metrics %v, want %v", got, want)
	}
}

// TestMetricsDoNotGrowWithTheFabric: no label has a value for each device.
func TestMetricsDoNotGrowWithTheFabric(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 72, Radix: 12})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	show := seentest.Run(t, text.String(), seentest.Grants(), nil)
	big := query.New(query.Options{})
	for _, e := range show.Events {
		big.OnEvent(e)
	}
	big.OnView(show.Settled())
	series := func(o *query.Observer) (n int) {
		for name, all := range gather(t, o) {
			if name == "portcullis_sm_smp_sent_total" || name == "portcullis_sm_events_total" || name == "portcullis_fabric_faults" {
				continue // by kinds, of which not all occur everywhere
			}
			n += len(all)
			for _, labels := range all {
				for _, v := range slices.Collect(maps.Values(labels)) {
					if strings.Contains(v, "0x") {
						t.Errorf("%s has the label value %s", name, v)
					}
				}
			}
		}
		return n
	}
	if small, large := series(tree(t, nil)), series(big); small != large {
		t.Errorf("%d series of 5 hosts, %d of 72", small, large)
	}
}

// TestMetricsBeforeAnythingIsSeen: the role says so, and nothing is made up.
func TestMetricsBeforeAnythingIsSeen(t *testing.T) {
	got := gather(t, query.New(query.Options{}))
	if len(got["portcullis_sm_role"]) != 5 || len(got["portcullis_fabric_nodes"]) != 0 {
		t.Errorf("metrics %v", got)
	}
}
