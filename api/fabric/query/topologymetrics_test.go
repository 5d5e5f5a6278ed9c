package query_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// underLaw is the settled fabric of seentest.Tree with a declared topology.
func underLaw(t *testing.T, law *declared.TopologyView) *query.Observer {
	t.Helper()
	v := *seentest.Run(t, seentest.Tree, seentest.Grants(), nil).Settled()
	v.Topology = law
	o := query.New(query.Options{})
	o.OnView(&v)
	return o
}

func TestTopologyMetrics(t *testing.T) {
	law := &declared.TopologyView{
		Revision: 42, Mode: topospec.Warn, Wanted: topospec.Enforce, Rooted: true, Verified: 7, Expected: 9, Missing: 1,
		Since: time.Unix(1_800_000_000, 0), Pages: 1, Told: map[verify.Verdict]uint64{verify.Spoof: 3, verify.Missing: 1},
	}
	law.Verdicts[verify.Spoof], law.Verdicts[verify.Missing] = 1, 2
	law.States[verify.StateDisabled], law.States[verify.StateDark] = 1, 2
	got := values(t, underLaw(t, law))
	want := map[string]float64{
		"revision": 42, "in_force_timestamp_seconds": 1.8e9, "protected_violations": 1, "rooted": 1,
		"mode observe": 0, "mode warn": 1, "mode enforce": 0, "wanted_mode observe": 0, "wanted_mode warn": 0, "wanted_mode enforce": 1,
		"links expected": 9, "links verified": 7, "links missing": 1,
		"port_states dark": 2, "port_states disabled": 1, "port_states drift": 0, "port_states held": 0, "port_states released": 0,
		"port_states seen": 0, "port_states verified": 0,
	}
	for v := verify.Unseen + 2; v < verify.NumVerdicts; v++ {
		want["ports "+v.String()], want["findings_total "+v.String()] = float64(law.Verdicts[v]), float64(law.Told[v])
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("metrics of the topology (-got +want):\n%s", d)
	}
}

// values returns the metrics of the declared topology, by name and label.
func values(t *testing.T, o *query.Observer) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(o); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		name, ok := strings.CutPrefix(f.GetName(), "portcullis_topology_")
		if !ok {
			continue
		}
		for _, m := range f.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			out[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// TestTopologyMetricsAreBounded: their number does not depend on what is found.
func TestTopologyMetricsAreBounded(t *testing.T) {
	count := func(law *declared.TopologyView) (n int) {
		for name, all := range gather(t, underLaw(t, law)) {
			if strings.HasPrefix(name, "portcullis_topology_") {
				n += len(all)
			}
		}
		return n
	}
	full := &declared.TopologyView{Told: map[verify.Verdict]uint64{}, Ports: make([]declared.TopologyPort, declared.MaxTopologyPorts), More: 1 << 20}
	for v := range verify.NumVerdicts {
		full.Told[v], full.Verdicts[v] = 1, 1
	}
	if a, b := count(&declared.TopologyView{}), count(full); a != b || a == 0 {
		t.Errorf("%d series when nothing is wrong, %d when all is", a, b)
	}
	if n := count(nil); n != 0 {
		t.Errorf("%d series without a declared topology", n)
	}
}
