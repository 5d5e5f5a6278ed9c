package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

const proofIntro = `# Proof of isolation

What it costs to read all tables of a fabric and to prove from them that its tenants are isolated ("portcullis verify
--assume-membership"): three-level fat trees of 36-port switches, simulated by portcullis-sim, on one machine. Made by

    %s

which is "make bench-proof", on %s:

%s
One portcullisd with the configuration that init makes brought the fabric up. All hosts but three are admitted, and each
tenant has one partition; the simulator's tables were compared with the tenants before anything was measured. The
verdict was "isolated" in each run: another one ends the benchmark.

- **tenants**: each must be isolated from each other. **requests**: Gets to devices; everything is asked twice.
- **read**: seconds from the first request to the last answer, over the socket of the simulator, which shares the CPUs; at
  most 10,000 requests are sent in a second. **all**: seconds until the client has the report. Both are **min / median / max**.
- **proof**: seconds of "all" without "read", median: records of hosts and tenants are read before and after, keys are
  opened, the proof is made three times, with different devices counted on, and the report of all pairs is made and sent.
- **CPU**: seconds of portcullisd meanwhile, median, with its Subnet Manager. With a low **load** they are more, as fewer
  answers come at once each time that the service wakes up.
- **before**, **MiB**: the most memory that portcullisd held before the first proof, and in all.

No other product that is known to us makes such a proof, so there is no ratio.

`

func writeProof(o *options, host []string, results []*proofResult) error {
	var b bytes.Buffer
	var about strings.Builder
	for _, line := range host {
		fmt.Fprintf(&about, "- %s\n", line)
	}
	fmt.Fprintf(&b, proofIntro, o.command("proof"), time.Now().UTC().Format("2006-01-02 15:04 UTC"), &about)
	fmt.Fprint(&b, "| hosts | switches | tenants | runs | requests | read | all | proof | CPU | before | MiB | load |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		if len(r.runs) > 0 {
			r.row(&b)
		}
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func (r *proofResult) row(b *bytes.Buffer) {
	of := func(measure func(*proofRun) float64) spread { return spreadOfAll(r.runs, measure) }
	fmt.Fprintf(b, "| %d | %d | %d | %d | %.0f | %v | %v | %.3f | %.2f | %.0f | %.0f | %.1f |\n",
		r.fabric.hosts, r.fabric.switches, r.tenants, len(r.runs),
		of(func(p *proofRun) float64 { return float64(p.report.Bounds.Requests) }).median,
		of(func(p *proofRun) float64 { return p.read }), of(func(p *proofRun) float64 { return p.all }),
		of(func(p *proofRun) float64 { return p.all - p.read }).median, of(func(p *proofRun) float64 { return p.cpu }).median,
		r.before, of(func(p *proofRun) float64 { return p.peak }).max, of(func(p *proofRun) float64 { return p.load }).median)
}
