package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

const eventsIntro = `# Changes of a running fabric

Three-level fat trees of 36-port switches, simulated by ibsim; hosts dealt over %d
partitions; each subnet manager in turn, on the same machine. Made by

    %s

which is "make bench-events", on %s:

%s
Seconds are of the wall clock, **min / median / max**, from just before the change
(the console command of the simulator, or the signal after the partitions were
rewritten): OpenSM's to the *first* SUBNET UP of its log after it, ours to the *last*
time "portcullisd sm --json" said settled. SMPs are all that follow until nothing
happens for a second; they and the manager's CPU seconds are medians. After each
change unchanged tools judged: smpquery the P_Key tables of a host that moved and of
its switch port, iblinkinfo that all cabled ports are Active but those unplugged.
OpenSM looks every ten seconds whether something changed, as it does by default; that
is how it finds a spine that is back when it has dropped the traps. A host reboot is
its cable pulled and put back at once.

`

func writeEvents(o *options, host []string, results []eventResult) error {
	var b bytes.Buffer
	var about strings.Builder
	for _, line := range host {
		fmt.Fprintf(&about, "- %s\n", line)
	}
	fmt.Fprintf(&b, eventsIntro, tenants, o.command("events"), time.Now().UTC().Format("2006-01-02 15:04 UTC"), &about)
	fmt.Fprint(&b, "| hosts | change | manager | runs | seconds | SMPs | CPU | load |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		for i := range r.changes {
			for k, c := range contenders() {
				s := r.samples[k][i]
				w := spreadOf(s, wall)
				fmt.Fprintf(&b, "| %d | %s | %s | %d | %.4f / %.4f / %.4f | %.0f | %.3f | %.1f |\n", r.fabric.hosts, r.changes[i].name,
					c.name, len(s), w.min, w.median, w.max, spreadOf(s, smps).median, spreadOf(s, cpu).median, spreadOf(s, load).median)
			}
		}
	}
	fmt.Fprint(&b, "\nPortcullis beside the others, by medians:\n\n")
	fmt.Fprint(&b, "| hosts | change | times faster than OpenSM | than -n 32 -A | SMPs | of OpenSM's |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		for i := range r.changes {
			median := func(k int, of func(*sample) float64) float64 { return spreadOf(r.samples[k][i], of).median }
			last := len(r.samples) - 1
			fmt.Fprintf(&b, "| %d | %s | %.0f | %.0f | %.0f | %.0f |\n", r.fabric.hosts, r.changes[i].name,
				median(0, wall)/median(last, wall), median(1, wall)/median(last, wall), median(last, smps), median(0, smps))
		}
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
