package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// result is what was measured on one fabric, by manager.
type result struct {
	fabric  *fabric
	samples [][]sample
}

// spread is a measure over several runs.
type spread struct{ min, median, max float64 }

func spreadOf(samples []sample, of func(*sample) float64) spread {
	v := make([]float64, len(samples))
	for i := range samples {
		v[i] = of(&samples[i])
	}
	return spreadOfValues(v)
}

// spreadOfValues sorts the values.
func spreadOfValues(v []float64) spread {
	slices.Sort(v)
	middle := len(v) / 2
	s := spread{min: v[0], median: v[middle], max: v[len(v)-1]}
	if len(v)%2 == 0 {
		s.median = (v[middle-1] + v[middle]) / 2
	}
	return s
}

// measures that the table shows.
func wall(s *sample) float64   { return s.wall }
func cpu(s *sample) float64    { return s.cpu }
func simCPU(s *sample) float64 { return s.simCPU }
func rss(s *sample) float64    { return s.memory.peak }
func own(s *sample) float64    { return s.memory.private }
func smps(s *sample) float64   { return float64(s.smps) }
func load(s *sample) float64   { return s.load }

const intro = `# Bring-up

Three-level fat trees of 36-port switches, simulated by ibsim: a fresh simulator and
a fresh process for each run, the managers in turn, on the same machine. Made by

    %s

which is "make bench-sm", on %s:

%s
Seconds are of the wall clock, **min / median / max**. OpenSM's end with the line
SUBNET UP of its log; ours with the end of the whole process, "portcullisd sm --once".
After every run iblinkinfo counted all cabled switch ports as Active. CPU seconds,
SMPs, peak resident memory and load (of the minute before, other work included) are
medians. "own MiB" is what of the memory is no page of the program's file: ours is a
service that keeps a dozen MiB of those. Of OpenSM it is what it held at the end.
OpenSM runs with "-s 0", from a cold cache.

Of a fabric that is n times as large each switch has n times as many blocks of its
forwarding table, and there are n times as many switches: requests for each host grow
with the fabric, not with the sender, and "µs a host" with them. "µs an SMP" is the time
by the number of requests.

Both end with all ports Active and all forwarding tables written. What no host waits for,
Portcullis leaves for later: names of nodes, and blocks of P_Key tables that nothing is
wanted in and that a reset has emptied. A Subnet Manager that runs on reads them in the
background, some thousand a second: here one SMP for each node and two for each host
more. "portcullisd sm --once" ends before that, so the table does not count them; OpenSM
reads both in its sweep.

`

// command is what makes the table again.
func (o *options) command(benchmark string) string {
	sizes := make([]string, len(o.sizes))
	for i, n := range o.sizes {
		sizes[i] = strconv.Itoa(n)
	}
	return fmt.Sprintf("go run ./cmd/portcullis-bench %s --runs %d --sizes %s", benchmark, o.runs, strings.Join(sizes, ","))
}

func write(o *options, host []string, results []result) error {
	var b bytes.Buffer
	var about strings.Builder
	for _, line := range host {
		fmt.Fprintf(&about, "- %s\n", line)
	}
	fmt.Fprintf(&b, intro, o.command("bringup"), time.Now().UTC().Format("2006-01-02 15:04 UTC"), &about)
	fmt.Fprintf(&b, "| hosts | switches | cables | manager | runs | seconds | CPU | ibsim CPU | SMPs | MiB | own MiB | µs a host | µs an SMP | load |\n")
	fmt.Fprintf(&b, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		for k := range managers {
			r.row(&b, k)
		}
	}
	fmt.Fprintf(&b, "\nPortcullis beside the others, by medians:\n\n")
	fmt.Fprintf(&b, "| hosts | beside | times faster | SMPs | memory | own memory | CPU |\n|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		for k := range ours {
			r.ratio(&b, k)
		}
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func (r *result) row(b *bytes.Buffer, k int) {
	s := r.samples[k]
	w := spreadOf(s, wall)
	fmt.Fprintf(b, "| %d | %d | %d | %s | %d | %.3f / %.3f / %.3f | %.2f | %.2f | %.0f | %.0f | %.0f | %.0f | %.1f | %.1f |\n",
		r.fabric.hosts, r.fabric.switches, r.fabric.cables, managers[k].name, len(s), w.min, w.median, w.max,
		spreadOf(s, cpu).median, spreadOf(s, simCPU).median, spreadOf(s, smps).median, spreadOf(s, rss).median, spreadOf(s, own).median,
		w.median/float64(r.fabric.hosts)*1e6, w.median/spreadOf(s, smps).median*1e6, spreadOf(s, load).median)
}

func (r *result) ratio(b *bytes.Buffer, k int) {
	share := func(of func(*sample) float64) float64 {
		return spreadOf(r.samples[ours], of).median / spreadOf(r.samples[k], of).median
	}
	fmt.Fprintf(b, "| %d | %s | %.1f | %.3f | %.2f | %.2f | %.2f |\n",
		r.fabric.hosts, managers[k].name, 1/share(wall), share(smps), share(rss), share(own), share(cpu))
}
