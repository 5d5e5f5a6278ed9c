package driver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestQoSLikeOpenSM runs OpenSM and ours with the same options on the same
// fabric, and compares the tables that smpquery reads from all ports.
func TestQoSLikeOpenSM(t *testing.T) {
	ibsimtest.Need(t, "opensm", "smpquery")
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Leaves: 2, Spines: 2, Radix: 6})
	list := text(t, l, err)
	for name, options := range map[string]string{
		"defaults": "qos TRUE\n",
		"by kind of port": "qos TRUE\nqos_high_limit 5\nqos_sl2vl 1,0,3,2,5,4,7,6,0,1,2,3,4,5,6,15\n" +
			"qos_vlarb_high 0:4,3:9,11:1\nqos_ca_vlarb_low 0:1,1:2,2:3,3:4,4:5,5:6,6:7,7:8\n" +
			"qos_swe_sl2vl 0,0,0,0,1,1,1,1,9,9,9,9,14,14,14,15\n",
	} {
		t.Run(name, func(t *testing.T) {
			theirs := ibsimtest.Start(t, list)
			openSM(t, theirs, options)
			ours := ibsimtest.Start(t, list)
			var o qos.Options
			for line := range strings.Lines(options) {
				option, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				if known, err := o.Set(option, value); !known || err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
			store := &driver.Memory{}
			m := manageAs(t, ours, store, sm.Config{Enforcement: sm.Accepted, QoS: o})
			v := m.until("a settled fabric", settled)
			if len(v.Problems) > 0 {
				t.Errorf("problems: %q", v.Problems)
			}
			t.Logf("%d SMPs, Sets %v", total(v), sets(v))
			if d := cmp.Diff(qosTables(t, theirs, l), qosTables(t, ours, l)); d != "" {
				t.Errorf("tables (-OpenSM +ours):\n%s", d)
			}
			m.stop()
			m = manageAs(t, ours, store, sm.Config{Enforcement: sm.Accepted, QoS: o})
			v = m.until("a settled fabric after a restart", settled)
			if s := sets(v); len(s) > 0 {
				t.Errorf("a restart wrote: %v", s)
			}
		})
	}
}

// openSM brings a fabric up with OpenSM.
func openSM(t *testing.T, lab *ibsimlab.Lab, options string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "opensm.conf")
	if err := os.WriteFile(file, []byte(options), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := lab.Client().OpenSM(ctx, "sm", dir, "-F", file); err != nil {
		t.Fatal(err)
	}
}

// qosTables reads the SL-to-VL and arbitration tables of all cabled ports, by
// direct route from the subnet manager's host.
func qosTables(t *testing.T, lab *ibsimlab.Lab, l *netlist.Netlist) map[string]string {
	t.Helper()
	tables := make(map[string]string)
	route := map[string]string{"sm": "0"}
	for queue := []string{"sm"}; len(queue) > 0; queue = queue[1:] {
		n := l.Find(queue[0])
		for num := 1; num < len(n.Ports); num++ {
			p := n.Ports[num]
			if p.Peer == "" {
				continue
			}
			ask := func(query string) string {
				out := ibsimtest.Diag(t, lab, "sm", "smpquery", "-D", query, route[n.Name], strconv.Itoa(num))
				return afterHead(out)
			}
			at := fmt.Sprintf("%s/%d", n.Name, num)
			tables[at+" sl2vl"], tables[at+" vlarb"] = ask("sl2vl"), ask("vlarb")
			if route[p.Peer] == "" && (n.Type == ib.NodeSwitch || n.Name == "sm") {
				route[p.Peer] = fmt.Sprintf("%s,%d", route[n.Name], num)
				queue = append(queue, p.Peer)
			}
		}
	}
	return tables
}

// afterHead drops the lines that name the port asked, which have LIDs in them.
func afterHead(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "# ") || strings.Contains(line, "VLArbitration tables:") {
			b.WriteString(strings.ReplaceAll(line, "Lid ", ""))
		}
	}
	return b.String()
}
