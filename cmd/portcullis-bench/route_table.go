package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

const routingIntro = `# Routing

Three-level fat trees; of 36-port switches up to %d hosts, of %d-port switches above.
Made by

    %s

which is "make bench-route", on %s:

%s
Seconds are medians (of %d runs; OpenSM and, above %d hosts, other engines than minhop: one), of the wall clock on all cores. Ours are those of the tables and of the
checker's verdict on them; "verdict" is the part of the latter. OpenSM's are those
of one bring-up on ibsim, from the line "building routing with" of its verbose log to
"tables configured on all switches".

"Lost cable" is a cable from a leaf upwards: seconds to new tables and the verdict on
them, the blocks that differ, and on how many switches.

"Worst link" and "mean" are routes from a CA port to a LID over one direction of a
cable between switches, if all CAs send to all. Our checker counts them, in OpenSM's
tables as in ours; those it takes from the dump that OpenSM writes. Fewer are better.

`

func writeRouting(o *options, host []string, all []routedFabric) error {
	var b bytes.Buffer
	var sizes []string
	for _, n := range o.sizes {
		sizes = append(sizes, fmt.Sprint(n))
	}
	var about strings.Builder
	for _, line := range host {
		fmt.Fprintf(&about, "- %s\n", line)
	}
	command := fmt.Sprintf("go run ./cmd/portcullis-bench route --runs %d --sizes %s", o.runs, strings.Join(sizes, ","))
	fmt.Fprintf(&b, routingIntro, smallHosts, largeRadix, command, time.Now().UTC().Format("2006-01-02 15:04 UTC"), &about, o.runs, smallHosts)
	fmt.Fprintf(&b, "| hosts | switches | LIDs | engine | seconds | verdict | lost cable | blocks | tables, MiB | memory asked for, MiB | worst link | mean | hops |\n")
	fmt.Fprintf(&b, "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range all {
		for k := range all[i].rows {
			all[i].row(&b, &all[i].rows[k])
		}
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func (f *routedFabric) row(b *bytes.Buffer, r *routed) {
	verdict, lost, blocks, tables, made := "", "", "", "", ""
	if len(r.check) > 0 {
		verdict, lost = fmt.Sprintf("%.3f", median(r.check)), fmt.Sprintf("%.3f", median(r.lost))
		blocks = fmt.Sprintf("%d on %d", r.blocks, r.changed)
		tables, made = fmt.Sprintf("%.1f", r.tables), fmt.Sprintf("%.1f", r.made)
	}
	note := ""
	if r.note != "" {
		note = ": " + r.note
	}
	fmt.Fprintf(b, "| %d | %d | %d | %s | %.3f | %s | %s | %s | %s | %s | %d | %.0f | %d%s |\n",
		f.hosts, f.switches, f.lids, r.who, median(r.seconds), verdict, lost, blocks, tables, made,
		r.report.WorstLoad, r.report.MeanLoad, r.report.MaxHops, note)
}
