package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/alerts"
	"portcullis/packaging/testenv"
)

// series are samples by name with labels, as Prometheus reads them.
type series map[string]float64

// scrape gets metrics.
func scrape(t *testing.T, address, path string) series {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", path, resp.Status, err, body)
	}
	all := series{}
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok {
			name, value, ok = strings.Cut(strings.TrimSpace(line), " ")
		} else {
			name += "}"
		}
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			all[name] = v
		}
	}
	return all
}

// Metrics have the counters that perfquery reads, and do not go back when perfquery clears them.
func TestCountersInMetrics(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "perfquery")
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	lab := ibsimtest.Start(t, text.Bytes())
	address := testenv.Address(t)
	_, d, _ := alone(t, lab, len(l.Nodes), "--metrics", address, "--counters-every", "5s")
	for i, name := range []string{"SymbolErrorCounter", "LinkDownedCounter", "PortRcvErrors"} {
		ibsimtest.Console(t, lab, fmt.Sprintf(`PerformanceSet "leaf2"[2] PortCounters.%s=%d`, name, 7+i))
	}
	var guid string
	for i := range l.Nodes {
		if l.Nodes[i].Name == "leaf2" {
			guid = l.Nodes[i].GUID.String()
		}
	}
	of := func(counter string) string {
		return fmt.Sprintf(`infiniband_switch_port_%s{guid="%s",port="2"}`, counter, guid)
	}
	counted := func(symbols, downed, errors float64) {
		t.Helper()
		eventually(t, "counters in metrics", func() (bool, string) {
			m := scrape(t, address, "/metrics/fabric")
			return m[of("symbol_error_total")] == symbols && m[of("link_downed_total")] == downed && m[of("receive_errors_total")] == errors &&
				m[of("transmit_packets_total")] > 0 && m[of("receive_data_bytes_total")] > 0, fmt.Sprint(m, d.lines)
		})
	}
	counted(7, 8, 9)
	lid := regexp.MustCompile(`infiniband_switch_info\{guid="` + guid + `",switch="[^"]*",lid="(\d+)"`)
	var at string
	for name := range scrape(t, address, "/metrics/fabric") {
		if m := lid.FindStringSubmatch(name); m != nil {
			at = m[1]
		}
	}
	ibsimtest.Diag(t, lab, "sm", "perfquery", "-R", at, "2")
	ibsimtest.Console(t, lab, `PerformanceSet "leaf2"[2] PortCounters.SymbolErrorCounter=3`)
	counted(10, 8, 9)
	devices := scrape(t, address, "/metrics/fabric")
	for _, used := range alerts.OfPorts() { // by rules and dashboards
		if !slices.ContainsFunc(slices.Collect(maps.Keys(devices)), func(name string) bool {
			return regexp.MustCompile(`^` + used.Name + `\{guid="0x[0-9a-f]{16}",port="\d+"\}$`).MatchString(name)
		}) {
			t.Errorf("%s is not served", used.Name)
		}
	}
	m := scrape(t, address, "/metrics")
	for name, holds := range map[string]bool{
		"resets":   m["portcullis_port_counter_resets_total"] >= 1,
		"ports":    m[`portcullis_port_counter_ports{state="current"}`] > 10 && m[`portcullis_port_counter_ports{state="unread"}`] == 0,
		"answered": m[`portcullis_port_counter_requests_total{result="answered"}`] > 40,
		"timeout":  m[`portcullis_port_counter_requests_total{result="timeout"}`] == 0,
		"interval": m[`portcullis_port_counter_interval_seconds{kind="wanted"}`] == 5,
	} {
		if !holds {
			t.Errorf("%s: %v", name, m)
		}
	}
}

// The service serves counters to operators, and says how the reading goes.
func TestServiceReadsCounters(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	dir, address := install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm")
	edit(t, dir, map[string]string{"    every: 30s\n": "    every: 5s\n"})
	start(t, dir)
	eventually(t, "counters of switch ports and adapters", func() (bool, string) {
		text := fetch(t, dir, address, "/metrics/fabric")
		return strings.Contains(text, "infiniband_switch_port_transmit_packets_total{") && strings.Contains(text, "infiniband_hca_port_receive_data_bytes_total{"), text
	})
	if text := fetch(t, dir, address, "/metrics"); !strings.Contains(text, `portcullis_port_counter_interval_seconds{kind="wanted"} 5`) {
		t.Errorf("metrics:\n%s", text)
	}
	links := knownLoad(t, operator(t, dir, address))
	if len(links) != strings.Count(oneSwitch, "caguid=") {
		t.Errorf("%d links have a load: %+v", len(links), links)
	}
	for _, l := range links {
		if r := l.Rate; r.Span < 4 || r.Span > 15 || r.Age > 15 || r.Share > 0.01 || l.To == "sm/1" && (r.Xmit == 0 || r.Rcv == 0) {
			t.Errorf("%s to %s: %+v", l.At, l.To, r)
		}
	}
}

// knownLoad waits until the load of all links is known, and returns it.
func knownLoad(t *testing.T, c *client.Client) (all []v1.FabricLoad) {
	t.Helper()
	eventually(t, "the load of all links", func() (bool, string) {
		all = nil
		for page, err := range c.Fabric().Load(t.Context(), v1.LoadQuery{}) {
			if err != nil {
				return false, err.Error()
			}
			all = append(all, page.Items...)
		}
		return len(all) > 0 && !slices.ContainsFunc(all, func(l v1.FabricLoad) bool { return l.Rate == nil }), fmt.Sprintf("%+v", all)
	})
	return all
}
