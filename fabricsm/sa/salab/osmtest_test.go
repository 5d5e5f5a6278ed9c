package salab_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/sa/salab"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// flow is one of osmtest.
type flow struct {
	name string
	args []string
	long time.Duration // how much of it is enough; 0: to its end
}

// flows are those that pass against OpenSM here, in this order: v reads what c writes.
// Stress goes on for minutes on a busy machine, and is broken off.
var flows = []flow{
	{"create inventory", []string{"-f", "c"}, 0},
	{"validate inventory", []string{"-f", "v"}, 0},
	{"quality of service", []string{"-f", "q"}, 0},
	{"events", []string{"-f", "e"}, 0},
	{"multicast", []string{"-f", "m"}, 0},
	{"multicast again", []string{"-f", "m"}, 0},
	{"services", []string{"-f", "s"}, 0},
	{"stress 1", []string{"-f", "f", "-s1"}, time.Second},
	{"stress 2", []string{"-f", "f", "-s2"}, time.Second},
	{"stress 3", []string{"-f", "f", "-s3"}, time.Second},
	{"stress 4", []string{"-f", "f", "-s4"}, time.Second},
}

// run runs a flow of osmtest at a host.
func (f *flow) run(t *testing.T, lab *ibsimlab.Lab, pre salab.Preload, host string) {
	t.Helper()
	long := f.long
	if long == 0 {
		long = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	cmd, err := lab.Client().Command(ctx, host, "osmtest", append([]string{"-i", filepath.Join(lab.Dir(), "osmtest.dat")}, f.args...)...)
	if err != nil {
		t.Fatal(err)
	}
	pre.Apply(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	said := string(out)
	// What it expects to go wrong stands between lines that say so.
	if strings.Contains(said, " FAIL") || !strings.Contains(said, "PASS") && f.long == 0 || err != nil && ctx.Err() == nil {
		t.Errorf("osmtest %s: %v\n%s", strings.Join(f.args, " "), err, said[max(0, len(said)-3000):])
	}
	if f.long > 0 {
		if bad := unexpected(said); bad != "" {
			t.Errorf("osmtest %s: %s", strings.Join(f.args, " "), bad)
		}
	}
}

// unexpected gives the first line of osmtest that tells of an error.
func unexpected(said string) string {
	for line := range strings.Lines(said) {
		if strings.Contains(line, "ERR ") {
			return fmt.Sprintf("unexpected %s", line)
		}
	}
	return ""
}

func TestOsmtestOnOpenSM(t *testing.T) {
	ibsimtest.Need(t, "opensm", "osmtest")
	lab := ibsimtest.Start(t, text(t, small(t)))
	pre := preload(t)
	m, err := (&salab.OpenSM{Preload: pre, Partitions: file(t, lab, "partitions.conf", openPartitions)}).Start(t.Context(), lab)
	while(t, m, err, func() {
		for i := range flows {
			begin := time.Now()
			flows[i].run(t, lab, pre, "h7")
			t.Logf("%s: %v", flows[i].name, time.Since(begin))
		}
	})
}
