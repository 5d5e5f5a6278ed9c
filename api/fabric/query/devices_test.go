package query_test

import (
	"strings"
	"testing"

	"portcullis/fabricsm/sim"
)

func TestDevices(t *testing.T) {
	write, err := tree(t, map[string]sim.Fault{"h3": {Silent: true}}).Devices()
	must(t, write, err)
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`infiniband_switch_info{guid="0x0010000100000001",switch="leaf1",lid="1"} 1`,
		`infiniband_switch_up{guid="0x0010000200000001",switch="spine1"} 1`,
		`infiniband_switch_rate_bytes_per_second{guid="0x0010000100000001"} 1.25e+10`,
		`infiniband_switch_uplink_info{guid="0x0010000100000001",port="7",switch="leaf1",uplink="spine1",uplink_guid="0x0010000200000001",uplink_type="SW",uplink_port="1",uplink_lid="3"} 1`,
		`infiniband_hca_info{guid="0x0020000000000100",hca="h1 mlx5_0",lid="5"} 1`,
		`infiniband_hca_uplink_info{guid="0x0020000000000100",port="1",hca="h1 mlx5_0",uplink="leaf1",uplink_guid="0x0010000100000001",uplink_type="SW",uplink_port="2",uplink_lid="1"} 1`,
		`infiniband_switch_port_state{guid="0x0010000100000001",port="2",switch="leaf1"} 1`,
		`infiniband_switch_port_state{guid="0x0010000100000001",port="3",switch="leaf1"} 0`,
		"# TYPE infiniband_switch_port_state gauge",
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("lacks %s:\n%s", want, &b)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		if seen[line] {
			t.Errorf("twice: %s", line)
		}
		seen[line] = true
	}
}
