package query_test

import (
	"bytes"
	"io"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/packaging/testenv"
)

// read are counters as a test sets them.
type read struct {
	all   []perfmgr.Reading
	rates map[ib.Place]perfmgr.Rate
	stats perfmgr.Stats
}

func (r *read) Append(to []perfmgr.Reading) []perfmgr.Reading { return append(to, r.all...) }
func (r *read) Stats() perfmgr.Stats                          { return r.stats }

func (r *read) Rates(of []ib.Place, to []perfmgr.Rate) []perfmgr.Rate {
	for _, pl := range of {
		to = append(to, r.rates[pl])
	}
	return to
}

// counting returns an observer of the tree, and counters of a switch port, an adapter and a node that is not in the fabric.
func counting(t *testing.T) (*query.Observer, *read) {
	t.Helper()
	all := perfmgr.Set(1<<perfmgr.NumCounters - 1)
	one := perfmgr.Reading{GUID: 0x0010000100000001, Port: 12, Has: all}
	for c := range one.Totals {
		one.Totals[c] = 1000 + uint64(c)
	}
	big := perfmgr.Reading{GUID: 0x0010000100000001, Port: 2, Has: all}
	big.Totals[perfmgr.XmitData] = math.MaxUint64
	hca := perfmgr.Reading{GUID: 0x0020000000000100, Port: 1, Has: 1 << perfmgr.XmitDiscards}
	hca.Totals[perfmgr.XmitDiscards] = 7
	r := &read{all: []perfmgr.Reading{one, {GUID: 0xDEAD, Port: 1, Has: all}, hca, big}}
	o := query.New(query.Options{Counters: r})
	o.OnView(seentest.Run(t, seentest.Tree, seentest.Grants(), nil).Settled())
	return o, r
}

// Counters have the names, labels and units of treydock's exporter.
func TestDeviceCounters(t *testing.T) {
	o, _ := counting(t)
	write, err := o.Devices()
	must(t, write, err)
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"# TYPE infiniband_switch_port_transmit_data_bytes_total counter",
		`infiniband_switch_port_transmit_data_bytes_total{guid="0x0010000100000001",port="2"} 18446744073709551612`,
		`infiniband_switch_port_transmit_data_bytes_total{guid="0x0010000100000001",port="12"} 4000`,
		`infiniband_switch_port_receive_data_bytes_total{guid="0x0010000100000001",port="12"} 4004`,
		`infiniband_switch_port_transmit_packets_total{guid="0x0010000100000001",port="12"} 1002`,
		`infiniband_switch_port_receive_packets_total{guid="0x0010000100000001",port="12"} 1003`,
		`infiniband_switch_port_unicast_transmit_packets_total{guid="0x0010000100000001",port="12"} 1004`,
		`infiniband_switch_port_unicast_receive_packets_total{guid="0x0010000100000001",port="12"} 1005`,
		`infiniband_switch_port_multicast_transmit_packets_total{guid="0x0010000100000001",port="12"} 1006`,
		`infiniband_switch_port_multicast_receive_packets_total{guid="0x0010000100000001",port="12"} 1007`,
		`infiniband_switch_port_symbol_error_total{guid="0x0010000100000001",port="12"} 1008`,
		`infiniband_switch_port_link_error_recovery_total{guid="0x0010000100000001",port="12"} 1009`,
		`infiniband_switch_port_link_downed_total{guid="0x0010000100000001",port="12"} 1010`,
		`infiniband_switch_port_receive_errors_total{guid="0x0010000100000001",port="12"} 1011`,
		`infiniband_switch_port_receive_remote_physical_errors_total{guid="0x0010000100000001",port="12"} 1012`,
		`infiniband_switch_port_receive_switch_relay_errors_total{guid="0x0010000100000001",port="12"} 1013`,
		`infiniband_switch_port_transmit_discards_total{guid="0x0010000100000001",port="12"} 1014`,
		`infiniband_switch_port_transmit_constraint_errors_total{guid="0x0010000100000001",port="12"} 1015`,
		`infiniband_switch_port_receive_constraint_errors_total{guid="0x0010000100000001",port="12"} 1016`,
		`infiniband_switch_port_local_link_integrity_errors_total{guid="0x0010000100000001",port="12"} 1017`,
		`infiniband_switch_port_excessive_buffer_overrun_errors_total{guid="0x0010000100000001",port="12"} 1018`,
		`infiniband_switch_port_vl15_dropped_total{guid="0x0010000100000001",port="12"} 1019`,
		`infiniband_switch_port_transmit_wait_total{guid="0x0010000100000001",port="12"} 1020`,
		`infiniband_switch_port_qp1_dropped_total{guid="0x0010000100000001",port="12"} 1021`,
		`infiniband_hca_port_transmit_discards_total{guid="0x0020000000000100",port="1"} 7`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
	if strings.Contains(text, "dead") || strings.Contains(text, "infiniband_hca_port_transmit_wait") {
		t.Error("there are counters of what is not there")
	}
	families := map[string]bool{}
	last := ""
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, "{"); ok && name != last {
			if families[name] {
				t.Errorf("%s is in two places", name)
			}
			families[name], last = true, name
		}
	}
	check := exec.CommandContext(t.Context(), testenv.Program(t, "promtool"), "check", "metrics")
	check.Stdin = &b
	out, err := check.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "_info ") && !strings.Contains(line, "metric names should not contain abbreviated units") {
			t.Errorf("promtool: %s", line)
		}
	}
	if err != nil && len(out) == 0 {
		t.Error(err)
	}
}

// How the reading goes is in the metrics that are few.
func TestCounterMetrics(t *testing.T) {
	o, r := counting(t)
	r.stats = perfmgr.Stats{
		Answered: 1, Refused: 2, TimedOut: 3, Invalid: 4, Strays: 5, Resets: 6, Implausible: 7, Passes: 8, Interval: 30 * time.Second,
		Took: 27 * time.Second, Between: 31 * time.Second, Begun: time.Unix(1000, 0), Ports: 12, Current: 11, Silent: 9, Saturated: 10,
	}
	want := `
portcullis_port_counter_implausible_total 7
portcullis_port_counter_interval_seconds{kind="actual"} 31
portcullis_port_counter_interval_seconds{kind="wanted"} 30
portcullis_port_counter_pass_seconds 27
portcullis_port_counter_ports{state="current"} 11
portcullis_port_counter_ports{state="unread"} 1
portcullis_port_counter_read_timestamp_seconds 1000
portcullis_port_counter_requests_total{result="answered"} 1
portcullis_port_counter_requests_total{result="invalid"} 4
portcullis_port_counter_requests_total{result="refused"} 2
portcullis_port_counter_requests_total{result="timeout"} 3
portcullis_port_counter_resets_total 6
portcullis_port_counter_saturated 10
portcullis_port_counter_silent_devices 9
portcullis_port_counter_strays_total 5
`
	if got := gathered(t, o); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
	if got := gathered(t, tree(t, nil)); got != "" {
		t.Errorf("where no counters are read:\n%s", got)
	}
}

// gathered returns the metrics of the reading of counters.
func gathered(t *testing.T, o *query.Observer) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(o)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "portcullis_port_counter_") {
			continue
		}
		for _, m := range f.GetMetric() {
			got.WriteString(f.GetName())
			if l := m.GetLabel(); len(l) == 1 {
				got.WriteString("{" + l[0].GetName() + `="` + l[0].GetValue() + `"}`)
			}
			got.WriteString(" " + strconv.FormatFloat(m.GetGauge().GetValue()+m.GetCounter().GetValue(), 'f', -1, 64) + "\n")
		}
	}
	return got.String()
}

// BenchmarkDeviceCounters writes the counters of 62,208 ports.
func BenchmarkDeviceCounters(b *testing.B) {
	l, err := netlist.Single(netlist.Shape{Hosts: 2})
	if err != nil {
		b.Fatal(err)
	}
	stage, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm"})
	if err != nil {
		b.Fatal(err)
	}
	stage.Start()
	stage.Want(sm.Intent{Revision: 1})
	if err := stage.Settle(time.Minute); err != nil {
		b.Fatal(err)
	}
	r := &read{}
	for range 62_208 {
		one := perfmgr.Reading{GUID: stage.View().Fabric.Node(stage.View().Fabric.Switches()[0]).GUID, Port: 2, Has: 1<<perfmgr.NumCounters - 1}
		for c := range one.Totals {
			one.Totals[c] = 1 << 50
		}
		r.all = append(r.all, one)
	}
	o := query.New(query.Options{Counters: r})
	o.OnView(stage.View())
	for b.Loop() {
		write, err := o.Devices()
		if err != nil {
			b.Fatal(err)
		}
		n := size(0)
		if err := write(io.Writer(&n)); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n)/1e6, "MB")
	}
}

// size counts what is written.
type size int

func (s *size) Write(p []byte) (int, error) { *s += size(len(p)); return len(p), nil }
