package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

const simIntro = `# Simulators

portcullis-sim beside ibsim: three-level fat trees of 36-port switches, the same netlist
and the same client on the same socket protocol, fresh processes for each run, both on
the same machine. Made by

    %s

which is "make bench-sim", on %s:

%s
The client keeps so many Get NodeInfo by directed route outstanding, of the simulators
in turn, %d times for %v each. SMPs a second are **min / median / max** of all turns;
µs are CPU time of the simulator for each SMP. The first ratio is the median of those
of two turns that follow each other, portcullis-sim to ibsim, and the second that of the
medians of CPU time: above 1 is more.
Start is from the start of the process until the client is attached; MiB is the most
that the process held.

`

func (r *simResult) rates(i, k int) (rate, cpu spread) {
	var rates, cpus []float64
	for _, s := range r.asks[i][k] {
		rates, cpus = append(rates, s.rate), append(cpus, s.cpu)
	}
	return spreadOfValues(rates), spreadOfValues(cpus)
}

// ratio is the median of the ratios of turns that followed each other.
func (r *simResult) ratio(i int) float64 {
	pairs := make([]float64, len(r.asks[i][0]))
	for turn := range pairs {
		pairs[turn] = r.asks[i][1][turn].rate / r.asks[i][0][turn].rate
	}
	return spreadOfValues(pairs).median
}

func writeSim(o *options, host []string, results []*simResult) error {
	var b bytes.Buffer
	var about strings.Builder
	for _, line := range host {
		fmt.Fprintf(&about, "- %s\n", line)
	}
	fmt.Fprintf(&b, simIntro, o.command("sim")+" --duration "+o.duration.String(), time.Now().UTC().Format("2006-01-02 15:04 UTC"), &about, turns, o.duration/turns)
	fmt.Fprintf(&b, "| hosts | asked | outstanding | ibsim, SMPs/s | portcullis-sim, SMPs/s | ratio | ibsim, µs | portcullis-sim, µs | ratio |\n")
	fmt.Fprintf(&b, "|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		for i, a := range asks {
			theirs, theirCPU := r.rates(i, 0)
			ours, ourCPU := r.rates(i, 1)
			fmt.Fprintf(&b, "| %d | %s | %d | %.0f / %.0f / %.0f | %.0f / %.0f / %.0f | %.2f | %.2f | %.2f | %.2f |\n",
				r.fabric.hosts, a.name, a.window, theirs.min, theirs.median, theirs.max, ours.min, ours.median, ours.max,
				r.ratio(i), theirCPU.median, ourCPU.median, ourCPU.median/theirCPU.median)
		}
	}
	fmt.Fprintf(&b, "\n| hosts | switches | runs | ibsim, start s | portcullis-sim, start s | ibsim, MiB | portcullis-sim, MiB | load |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %d | %d | %d | %.2f | %.2f | %.0f | %.0f | %.1f |\n", r.fabric.hosts, r.fabric.switches, o.runs,
			spreadOfValues(r.start[0]).median, spreadOfValues(r.start[1]).median, r.peak[0], r.peak[1], r.load)
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
