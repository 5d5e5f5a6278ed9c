package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

const saIntro = `# Subnet administration

Paths asked for over the socket of ibsim: three-level fat trees of 36-port switches, a
fresh simulator and a fresh process for each run and each Subnet Manager, all on the
same machine. Made by

    %s

which is "make bench-sa", on %s:

%s
One host keeps so many Get of PathRecord outstanding, for the path from itself to the
other hosts in turn, of the two in turn, %d times for %v each; every answer is looked
at. "by LID" names both LIDs; "as IPoIB" names both GIDs, the P_Key and the traffic
class, as Linux does. Answers a second are **min / median / max** of all turns; the
first ratio is the median of those of two turns that follow each other. µs are CPU time
for each answer, medians: of the Subnet Manager, and of its ibsim, which both need
alike; client, simulator and Subnet Manager share the CPUs, so where the simulator's
share is the larger, answers a second say what it carries. All hosts are in one
partition, and no limit of requests is set, as OpenSM knows none.

`

const saTablesIntro = `
All paths of the fabric, asked for by one host with the SA_Key, while another asks for a
single path every millisecond. OpenSM makes the whole table in memory, then sends it;
what it writes at once is lost but for the first MAD, as libumad2sim cuts it off,
so its seconds and CPU are those of making the table alone. Portcullis sends all of it,
by RMPP, in windows. MiB are what the process held at most beyond what it held before.
"another waited" is the longest of all single paths meanwhile. No host is asked for
tables of more than %d hosts: at 10,368 OpenSM would need some 24 GiB, and the simulator
minutes to carry ours.

`

// of takes a measure of all turns.
func (r *saResult) of(i, k int, measure func(*saSample) float64) spread {
	v := make([]float64, len(r.asks[i][k]))
	for n := range v {
		v[n] = measure(&r.asks[i][k][n])
	}
	return spreadOfValues(v)
}

// ratio is the median of the ratios of turns that followed each other.
func (r *saResult) ratio(i int) float64 {
	pairs := make([]float64, len(r.asks[i][0]))
	for turn := range pairs {
		pairs[turn] = r.asks[i][1][turn].rate / r.asks[i][0][turn].rate
	}
	return spreadOfValues(pairs).median
}

func writeSA(o *options, host []string, results []*saResult) error {
	var b bytes.Buffer
	var about strings.Builder
	for _, line := range host {
		fmt.Fprintf(&about, "- %s\n", line)
	}
	fmt.Fprintf(&b, saIntro, o.command("sa")+" --duration "+o.duration.String(), time.Now().UTC().Format("2006-01-02 15:04 UTC"), &about, turns, o.duration/turns)
	fmt.Fprintf(&b, "| hosts | asked | outstanding | OpenSM, answers/s | Portcullis, answers/s | ratio | OpenSM, µs | Portcullis, µs | ratio | ibsim, µs |\n")
	fmt.Fprintf(&b, "|---|---|---|---|---|---|---|---|---|---|\n")
	rate := func(s *saSample) float64 { return s.rate }
	cpu := func(s *saSample) float64 { return s.cpu }
	for _, r := range results {
		for i := range saAsks {
			theirs, ours := r.of(i, 0, rate), r.of(i, 1, rate)
			theirCPU, ourCPU := r.of(i, 0, cpu).median, r.of(i, 1, cpu).median
			simCPU := r.of(i, 1, func(s *saSample) float64 { return s.simCPU }).median
			fmt.Fprintf(&b, "| %d | %s | %d | %.0f / %.0f / %.0f | %.0f / %.0f / %.0f | %.2f | %.2f | %.2f | %.3f | %.2f |\n",
				r.fabric.hosts, saAsks[i].name, saAsks[i].window, theirs.min, theirs.median, theirs.max, ours.min, ours.median, ours.max,
				r.ratio(i), theirCPU, ourCPU, ourCPU/theirCPU, simCPU)
		}
	}
	fmt.Fprintf(&b, saTablesIntro, mostForTables)
	fmt.Fprintf(&b, "| hosts | Subnet Manager | runs | seconds | until the first | CPU | MiB more | segments | paths | another waited, ms | and got | load |\n")
	fmt.Fprintf(&b, "|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		for k, c := range administrations() {
			r.tableRow(&b, c.name, r.tables[k])
		}
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func (r *saResult) tableRow(b *bytes.Buffer, name string, samples []tableSample) {
	if len(samples) == 0 {
		return
	}
	of := func(measure func(*tableSample) float64) float64 {
		v := make([]float64, len(samples))
		for i := range samples {
			v[i] = measure(&samples[i])
		}
		return spreadOfValues(v).median
	}
	fmt.Fprintf(b, "| %d | %s | %d | %.3f | %.4f | %.3f | %.1f | %d | %d | %.2f | %.0f | %.1f |\n", r.fabric.hosts, name, len(samples),
		of(func(s *tableSample) float64 { return s.seconds }), of(func(s *tableSample) float64 { return s.first }),
		of(func(s *tableSample) float64 { return s.cpu }), of(func(s *tableSample) float64 { return s.more }),
		samples[0].segments, samples[0].records,
		of(func(s *tableSample) float64 { return s.slowest })*1e3, of(func(s *tableSample) float64 { return float64(s.others) }), r.load)
}
