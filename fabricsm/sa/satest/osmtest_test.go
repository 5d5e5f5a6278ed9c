package satest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// flow is one of osmtest.
type flow struct {
	name  string
	args  []string
	long  time.Duration // how much of it is enough; 0: to its end
	first bool          // it may fail: it finds the leftovers of the run before
	fails string        // the output that stops it against us; empty: it passes
}

// flows are the flows that pass against OpenSM here. Another flow, which validates the inventory, shows the SA_Key 1, which
// we do not accept. Stress goes on for minutes on a busy machine, and is interrupted. It registers services under a GID
// whose prefix has the wrong byte order, which belongs to another subnet. In the end it deletes them without their
// ServiceKeys, which we refuse too.
var flows = []flow{
	{"create inventory", []string{"-f", "c"}, 0, false, ""},
	{"quality of service", []string{"-f", "q"}, 0, false, ""},
	{"events", []string{"-f", "e"}, 0, false, ""},
	{"multicast", []string{"-f", "m"}, 0, true, ""},
	{"multicast again", []string{"-f", "m"}, 0, false, ""},
	{"services", []string{"-f", "s"}, 0, false, "Remote error = IB_SA_MAD_STATUS_INVALID_GID"},
	{"stress 1", []string{"-f", "f", "-s1"}, time.Second, false, ""},
	{"stress 2", []string{"-f", "f", "-s2"}, time.Second, false, ""},
	{"stress 3", []string{"-f", "f", "-s3"}, time.Second, false, ""},
	{"stress 4", []string{"-f", "f", "-s4"}, time.Second, false, ""},
}

const (
	// openOptions are the options that osmtest, which shows no key, needs with us.
	openOptions = "sa_enhanced_trust_model FALSE\nsa_pr_full_world_queries_allowed TRUE\n"
	// closedPartitions has no group of IP.
	closedPartitions = "Default=0x7fff: ALL=limited, SELF=full;\n"
)

// osmtestTimeout is how long osmtest waits for an answer, in milliseconds. By default that is a second, which a busy machine may need.
const osmtestTimeout = "10000"

// run runs a flow of osmtest at a host, and returns the problems.
func (f *flow) run(t *testing.T, fabric ibsimlab.Client, pre satest.Preload, host string) (wrong string) {
	t.Helper()
	long := f.long
	if long == 0 {
		long = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	cmd, err := fabric.Command(ctx, host, "osmtest", append([]string{"-t", osmtestTimeout, "-i", filepath.Join(fabric.Dir, "osmtest.dat")}, f.args...)...)
	if err != nil {
		t.Fatal(err)
	}
	pre.Apply(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	said := string(out)
	// Errors that osmtest expects are between lines that say so.
	if f.first {
		return ""
	}
	if strings.Contains(said, " FAIL") || !strings.Contains(said, "PASS") && f.long == 0 || err != nil && ctx.Err() == nil {
		return fmt.Sprintf("%v\n%s", err, said[max(0, len(said)-3000):])
	}
	if f.long > 0 {
		return unexpected(said)
	}
	return ""
}

// late is its message about an answer to the flow before, which was interrupted.
const late = "ERR 541A"

// unexpected returns the first line of osmtest that reports an unexpected error.
func unexpected(said string) string {
	for line := range strings.Lines(said) {
		if strings.Contains(line, "ERR ") && !strings.Contains(line, late) {
			return fmt.Sprintf("unexpected %s", line)
		}
	}
	return ""
}

// TestOsmtest lets osmtest judge both managers. It shows no key, so the enhanced trust model is off, and it asks for all
// paths at once. It joins other ports to the groups of the default partition, and must be a full member there for that: the
// host of the Subnet Manager.
func TestOsmtest(t *testing.T) {
	ibsimtest.Need(t, "opensm", "osmtest")
	s := newSite(t, ibsimtest.Start(t, text(t, small(t))), openPartitions)
	options := filepath.Join(t.TempDir(), "opensm.conf")
	if err := os.WriteFile(options, []byte(openOptions), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ours.Args = append(s.ours.Args, "--sa-options", options)
	s.both(t, func(ours bool) {
		for i := range flows {
			f := &flows[i]
			wrong := f.run(t, s.lab.Client(), s.preload, "sm")
			switch {
			case ours && f.fails != "" && wrong == "":
				t.Errorf("osmtest %s passes against us now", f.name)
			case wrong != "" && !(ours && f.fails != "" && strings.Contains(wrong, f.fails)):
				t.Errorf("ours %t, osmtest %s: %s", ours, f.name, wrong)
			}
		}
	})
}

// TestOsmtestMulticast runs osmtest's flow of multicast groups against us on the simulator, on links of several speeds. It
// runs twice, so that it finds its own leftovers. Without a group of IP it knows no MTU and rate, and asks for an MTU and a
// rate greater than 0. It assumes that no link has more than 300 Gb/s: where links have, it needs max_rate_enum.
func TestOsmtestMulticast(t *testing.T) {
	ibsimtest.Need(t, "osmtest")
	program, pre := portcullisd(t), preload(t)
	for _, tt := range []struct {
		link, partitions, options string
		fails                     string // the output that stops it; empty: it passes
	}{
		{"4xSDR", openPartitions, "", ""},
		{"4xSDR", closedPartitions, "", ""},
		{"4xQDR", closedPartitions, "", ""},
		{"4xEDR", closedPartitions, "", ""},
		{"4xHDR", openPartitions, "", ""},
		{"4xHDR", closedPartitions, "", ""},
		{"4xNDR", closedPartitions, "", "ERR 0208"}, // "Checking Join with unrealistic rate 300GB"
		{"4xNDR", openPartitions, "max_rate_enum 20\n", ""},
		{"4xNDR", closedPartitions, "max_rate_enum 20\n", ""},
	} {
		t.Run(fmt.Sprintf("%s, group of IP %t, %s", tt.link, tt.partitions == openPartitions, strings.TrimSpace(tt.options)), func(t *testing.T) {
			l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4, Link: tt.link})
			if err != nil {
				t.Fatal(err)
			}
			fabric := simtest.Serve(t, sim.New(l))
			conf, options := filepath.Join(fabric.Dir, "partitions.conf"), filepath.Join(fabric.Dir, "sa.conf")
			for path, text := range map[string]string{conf: tt.partitions, options: openOptions + tt.options} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ours := satest.Portcullis{Program: program, Partitions: conf, Args: []string{"--sa-options", options}}
			m, err := ours.StartOn(t.Context(), fabric)
			while(t, m, err, func() {
				for i, args := range []string{"c", "m", "m"} {
					fails := tt.fails
					if args != "m" {
						fails = ""
					}
					f := &flow{args: []string{"-f", args}}
					if wrong := f.run(t, fabric, pre, "sm"); (wrong != "") != (fails != "") || !strings.Contains(wrong, fails) {
						t.Errorf("osmtest -f %s, number %d, is to end with %q: %s", args, i, fails, wrong)
					}
				}
			})
		})
	}
}
