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
and the same client on the same socket protocol, a fresh process for each run, the
simulators in turn, on the same machine. Made by

    %s

which is "make bench-sim", on %s:

%s
The client keeps so many Get NodeInfo by directed route outstanding for %v. SMPs a
second are **min / median / max** of the runs; µs are CPU time of the simulator for
each SMP, and the ratios portcullis-sim to ibsim, both of medians: above 1 is more.
A client with one request outstanding waits for two wake-ups each time, and ours, by Go's
scheduler, is the slower one; who keeps more outstanding, as OpenSM and portcullisd do,
is served faster than by ibsim.
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

func writeSim(o *options, host []string, results []*simResult) error {
	var b bytes.Buffer
	var about strings.Builder
	for _, line := range host {
		fmt.Fprintf(&about, "- %s\n", line)
	}
	fmt.Fprintf(&b, simIntro, o.command("sim")+" --duration "+o.duration.String(), time.Now().UTC().Format("2006-01-02 15:04 UTC"), &about, o.duration)
	fmt.Fprintf(&b, "| hosts | asked | outstanding | ibsim, SMPs/s | portcullis-sim, SMPs/s | ratio | ibsim, µs | portcullis-sim, µs | ratio |\n")
	fmt.Fprintf(&b, "|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		for i, a := range asks {
			theirs, theirCPU := r.rates(i, 0)
			ours, ourCPU := r.rates(i, 1)
			fmt.Fprintf(&b, "| %d | %s | %d | %.0f / %.0f / %.0f | %.0f / %.0f / %.0f | %.2f | %.2f | %.2f | %.2f |\n",
				r.fabric.hosts, a.name, a.window, theirs.min, theirs.median, theirs.max, ours.min, ours.median, ours.max,
				ours.median/theirs.median, theirCPU.median, ourCPU.median, ourCPU.median/theirCPU.median)
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
