package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// saKey makes requests trusted in both subjects.
const saKey = 0x0a5a0b5b0c5c0d5d

// saUnlimited lifts limits that OpenSM does not have: one host asks for all.
const saUnlimited = `fabric:
  sa:
    sa_pr_full_world_queries_allowed: true
    limits:
      requests: {all: unlimited, node: unlimited}
      others: {all: unlimited, node: unlimited}
`

// administrations are measured side by side, each on a simulator of its own with the
// same netlist.
func administrations() [2]contender {
	return [2]contender{
		{"OpenSM", func(ctx context.Context, lab *ibsimlab.Lab, program, partitions string) (subject, error) {
			conf := filepath.Join(lab.Dir(), "opensm.conf")
			if err := os.WriteFile(conf, fmt.Appendf(nil, "sa_key %#016x\n", uint64(saKey)), 0o600); err != nil {
				return nil, fmt.Errorf("write opensm.conf: %w", err)
			}
			return startOpenSM("-F", conf, "-s", "0")(ctx, lab, program, partitions)
		}},
		{"Portcullis", func(ctx context.Context, lab *ibsimlab.Lab, program, partitions string) (subject, error) {
			key := filepath.Join(lab.Dir(), "sa.key")
			if err := os.WriteFile(key, fmt.Appendf(nil, "%#016x\n", uint64(saKey)), 0o600); err != nil {
				return nil, fmt.Errorf("write key: %w", err)
			}
			conf := filepath.Join(lab.Dir(), "portcullisd.yaml")
			if err := os.WriteFile(conf, []byte(saUnlimited), 0o600); err != nil {
				return nil, fmt.Errorf("write configuration: %w", err)
			}
			return startPortcullisWith("--config", conf, "--sa-key-file", key)(ctx, lab, program, partitions)
		}},
	}
}

// saAsk is what the client asks, again and again.
type saAsk struct {
	name   string
	window int
	gids   bool // as IPoIB asks; else by LIDs
}

var saAsks = []saAsk{
	{"by LID", 1, false},
	{"by LID", 16, false},
	{"by LID", 64, false},
	{"by LID", 256, false},
	{"as IPoIB", 1, true},
	{"as IPoIB", 16, true},
	{"as IPoIB", 64, true},
	{"as IPoIB", 256, true},
}

// saSample is one turn.
type saSample struct {
	rate   float64 // answers a second
	cpu    float64 // microseconds of the Subnet Manager for each
	simCPU float64 // and of the simulator
}

// tableSample is one whole table of paths.
type tableSample struct {
	asked    bool
	seconds  float64 // until the last of it was there
	first    float64 // until the first
	cpu      float64 // seconds of the Subnet Manager
	more     float64 // MiB that it held at most, more than before
	segments int
	records  int
	slowest  float64 // seconds that another host waited for one path meanwhile
	others   int     // paths that it got
}

// saResult is what was measured on one fabric; the last index of asks is that of the
// subject.
type saResult struct {
	fabric *fabric
	load   float64
	asks   [][2][]saSample
	tables [2][]tableSample
	memory [2]float64 // MiB at rest
}

// mostForTables is the size of the largest fabric for which all paths are requested. OpenSM makes all of them in memory,
// 172 bytes for each pair of ports. Our answer for 10,368 hosts, 34 million MADs, takes the simulator minutes.
const mostForTables = 4000

// administer measures subnet administration over the socket of ibsim.
func administer(ctx context.Context, o *options, progress io.Writer) error {
	return eachSize(ctx, o, func(f *fabric, load float64) *saResult {
		return &saResult{fabric: f, load: load, asks: make([][2][]saSample, len(saAsks))}
	}, func(r *saResult) error { return r.once(ctx, o, progress) }, writeSA)
}

// once measures both in fresh processes.
func (r *saResult) once(ctx context.Context, o *options, progress io.Writer) (err error) {
	var both [2]*saClient
	for k, c := range administrations() {
		if both[k], err = r.attach(ctx, o, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		defer func() { err = errors.Join(err, both[k].close()) }()
		r.memory[k] = max(r.memory[k], memoryOf(both[k].subject.pid()).peak)
	}
	for i := range saAsks {
		took, err := inTurns(func(k int) (float64, error) {
			got, err := both[k].measure(&saAsks[i], o.duration/turns)
			if err != nil {
				return 0, fmt.Errorf("%s, %s, %d outstanding: %w", administrations()[k].name, saAsks[i].name, saAsks[i].window, err)
			}
			r.asks[i][k] = append(r.asks[i][k], got)
			return got.rate, nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "%d hosts, paths %s, %d outstanding: OpenSM %.0f/s, Portcullis %.0f/s\n",
			r.fabric.hosts, saAsks[i].name, saAsks[i].window, took[0], took[1])
	}
	for k := range both {
		if r.fabric.hosts > mostForTables {
			continue
		}
		got, err := both[k].table(ctx)
		if err != nil {
			return fmt.Errorf("%s, all paths: %w", administrations()[k].name, err)
		}
		r.tables[k] = append(r.tables[k], got)
		fmt.Fprintf(progress, "%d hosts, all paths from %s: %.3f s, CPU %.3f s, %.0f MiB more, %d segments; another host waited %.4f s at most\n",
			r.fabric.hosts, administrations()[k].name, got.seconds, got.cpu, got.more, got.segments, got.slowest)
	}
	return nil
}
