package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

const failoverIntro = `# Failover

What it takes to replace a Subnet Manager: three-level fat trees of 36-port switches, each
rival with a fresh simulator and fresh processes, one after the other, all on one machine.
Made by

    %s

which is "make bench-failover", on %s:

%s
**Portcullis** is three instances of portcullisd on one store with three members, each on an
adapter of its own, with the configuration that init makes: a lease of 2 s, M_Keys, and
enforcement that is read back. All hosts but those three are admitted. **OpenSM** is two
processes with one SM_Key, priorities 14 and 13, as it comes: a standby asks its master every
10 s, and takes over after 4 tries. **OpenSM, polled** takes over after 2 s of silence, as ours
does (sminfo_polling_timeout 500, polling_retry_number 4), and has 32 requests on the wire.
Hosts are dealt over partitions of 18 hosts or more, 32 at most.

- **killed**: SIGKILL. **paused**: SIGSTOP; the process goes on once another one has taken
  over. **planned**: "portcullis sm step-down", and SIGTERM of OpenSM, which knows no other
  way. **stopped**: SIGTERM of ours. Where it ends on purpose, our former leader answers from what it
  saw last until the next one has settled the fabric.
- **first answer**: seconds by the monotonic clock from the signal until a host has a right
  answer to Get of PathRecord, GIDs and P_Key given, from another Subnet Manager. The host, no
  part of either product, asks every 10 ms and reads before each question in its own port
  which LID the Subnet Manager has. **without**: the longest time meanwhile without any
  right answer, also of the old one. Both are **min / median / max**.
- **CPU**: seconds, until that answer, of the processes that could take over.
- **lost**: packets of up to 100 flows between hosts of one partition, each 20 a second, from
  the signal until the fabric is settled again.
- Sets that devices took in that time, as the simulator counts them, medians: **LIDs** that
  changed, **routes** and **groups** (blocks of linear and multicast forwarding tables),
  **P_Keys** (blocks), **PortInfo** in all, of which **again** ask clients to register again,
  and all others. **hosts changed**: those whose LID, or P_Keys in adapter or switch port, are
  not as before. **woken**: Sets of the one that was paused, in the %v after it went on.

Three instances, three members of the store, the simulator and the host that asks share the
CPUs. ibsim counts neither Sets nor packets, so its rows have times alone; once the socket of
a client that stands still is full, ibsim stands still, too, so no manager is paused there. Where a master is
paused, no OpenSM takes over here: on a simulator a request that a process took and
does not answer never times out, so the standby waits. On hardware the kernel ends the wait;
for how long that goes on is not measured. The same now and then befalls a standby whose
master ends: such runs were repeated.

`

const restartIntro = `
## Restart of one service

One portcullisd with its store beside it, and nothing that stands in for it: SIGTERM, then
from the start of the process until /readyz says that part sm is ready, until all parts are,
and until that host has a right answer. **min / median / max** seconds; CPU is that of the
service, without its store's, until all parts are ready. The records of the site, inventory,
assignments, accepted evidence, grants and what was read back of them, are written by the
benchmark with the store's own packages: a software TPM for each host would take hours. The
service then brought the fabric up, and programmed the P_Keys; the simulator's tables were
compared with the tenants before anything was measured.

`

func writeFailover(o *options, host []string, results []*failoverResult) error {
	var b bytes.Buffer
	var about strings.Builder
	for _, line := range host {
		fmt.Fprintf(&about, "- %s\n", line)
	}
	fmt.Fprintf(&b, failoverIntro, o.command("failover"), time.Now().UTC().Format("2006-01-02 15:04 UTC"), &about, wakes)
	fmt.Fprint(&b, "| hosts | simulator | leader is | rival | runs | first answer | without | CPU | lost | of packets | LIDs | routes | groups | P_Keys | PortInfo | again | others | hosts changed | woken | load |\n")
	fmt.Fprint(&b, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		r.rows(&b)
	}
	fmt.Fprint(&b, "\nPortcullis beside the others, by medians of the time without an answer and of all Sets:\n\n")
	fmt.Fprint(&b, "| hosts | simulator | leader is | beside | times shorter | Sets | of its Sets |\n|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		r.ratios(&b)
	}
	fmt.Fprint(&b, restartIntro)
	fmt.Fprint(&b, "| hosts | admitted | simulator | runs | part sm | all parts | first answer | CPU | Sets | P_Keys | lost | of packets | hosts changed | load |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		r.restartRow(&b)
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// spreadOfAll takes a measure of all runs.
func spreadOfAll[T any](all []T, of func(*T) float64) spread {
	v := make([]float64, len(all))
	for i := range all {
		v[i] = of(&all[i])
	}
	return spreadOfValues(v)
}

func (s spread) String() string { return fmt.Sprintf("%.3f / %.3f / %.3f", s.min, s.median, s.max) }

// medianCount is the median of a count.
func medianCount[T any](all []T, of func(*T) uint64) float64 {
	return spreadOfAll(all, func(t *T) float64 { return float64(of(t)) }).median
}

func total[T any](all []T, of func(*T) uint64) (n uint64) {
	for i := range all {
		n += of(&all[i])
	}
	return n
}

// took reports whether another manager took over in every run.
func took(all []takeover) bool {
	for i := range all {
		if all[i].none {
			return false
		}
	}
	return len(all) > 0
}

func (r *failoverResult) rows(b *bytes.Buffer) {
	for _, how := range []string{killed, paused, planned, stopped} {
		for k, by := range r.takeovers {
			t := by[how]
			if len(t) == 0 {
				continue
			}
			fmt.Fprintf(b, "| %d | %s | %s | %s | %d | ", r.fabric.hosts, r.simulator, how, rivals()[k].name, len(t))
			if took(t) {
				fmt.Fprintf(b, "%v | %v | ", spreadOfAll(t, func(t *takeover) float64 { return t.sa }), spreadOfAll(t, func(t *takeover) float64 { return t.silent }))
			} else {
				fmt.Fprintf(b, "none in %.0[1]f | %.0[1]f | ", spreadOfAll(t, func(t *takeover) float64 { return t.silent }).median)
			}
			fmt.Fprintf(b, "%.2f | ", spreadOfAll(t, func(t *takeover) float64 { return t.cpu }).median)
			r.counts(b, t, how)
			fmt.Fprintf(b, "%.1f |\n", spreadOfAll(t, func(t *takeover) float64 { return t.load }).median)
		}
	}
}

// counts writes what a simulator that counts has counted.
func (r *failoverResult) counts(b *bytes.Buffer, t []takeover, how string) {
	if r.simulator != ownSimulator {
		fmt.Fprint(b, strings.Repeat("– | ", 11))
		return
	}
	fmt.Fprintf(b, "%d | %d | ", total(t, func(t *takeover) uint64 { return t.lost }), total(t, func(t *takeover) uint64 { return t.sent }))
	for _, of := range []func(*takeover) uint64{
		func(t *takeover) uint64 { return t.wrote.lids },
		func(t *takeover) uint64 { return t.wrote.routes },
		func(t *takeover) uint64 { return t.wrote.groups },
		func(t *takeover) uint64 { return t.wrote.pkeys },
		func(t *takeover) uint64 { return t.wrote.portInfo },
		func(t *takeover) uint64 { return t.wrote.renewals },
		func(t *takeover) uint64 { return t.wrote.election + t.wrote.others },
	} {
		fmt.Fprintf(b, "%.0f | ", medianCount(t, of))
	}
	fmt.Fprintf(b, "%d | ", total(t, func(t *takeover) uint64 { return uint64(t.changed) }))
	if how == paused {
		fmt.Fprintf(b, "%.0f | ", medianCount(t, func(t *takeover) uint64 { return t.woken.all() }))
		return
	}
	fmt.Fprint(b, "| ")
}

func (r *failoverResult) ratios(b *bytes.Buffer) {
	if len(r.takeovers) < len(rivals()) {
		return
	}
	last := len(r.takeovers) - 1
	for _, how := range []string{killed, planned} {
		own := r.takeovers[last][how]
		for k, by := range r.takeovers[:last] {
			if !took(by[how]) || !took(own) {
				continue
			}
			without := func(t []takeover) float64 {
				return spreadOfAll(t, func(t *takeover) float64 { return t.silent }).median
			}
			all := func(t *takeover) uint64 { return t.wrote.all() }
			fmt.Fprintf(b, "| %d | %s | %s | %s | %.1f | ", r.fabric.hosts, r.simulator, how, rivals()[k].name, without(by[how])/without(own))
			if r.simulator != ownSimulator {
				fmt.Fprint(b, "– | – |\n")
				continue
			}
			fmt.Fprintf(b, "%.0f | %.0f |\n", medianCount(own, all), medianCount(by[how], all))
		}
	}
}

func (r *failoverResult) restartRow(b *bytes.Buffer) {
	t := r.restarts
	if len(t) == 0 {
		return
	}
	fmt.Fprintf(b, "| %d | %d | %s | %d | %v | %v | %v | %.2f | ", r.fabric.hosts, r.fabric.hosts-seats, r.simulator, len(t),
		spreadOfAll(t, func(t *restart) float64 { return t.sm }), spreadOfAll(t, func(t *restart) float64 { return t.ready }),
		spreadOfAll(t, func(t *restart) float64 { return t.sa }), spreadOfAll(t, func(t *restart) float64 { return t.cpu }).median)
	if r.simulator == ownSimulator {
		fmt.Fprintf(b, "%.0f | %.0f | %d | %d | %d | ", medianCount(t, func(t *restart) uint64 { return t.wrote.all() }), medianCount(t, func(t *restart) uint64 { return t.wrote.pkeys }),
			total(t, func(t *restart) uint64 { return t.lost }), total(t, func(t *restart) uint64 { return t.sent }), total(t, func(t *restart) uint64 { return uint64(t.changed) }))
	} else {
		fmt.Fprint(b, strings.Repeat("– | ", 5))
	}
	fmt.Fprintf(b, "%.1f |\n", spreadOfAll(t, func(t *restart) float64 { return t.load }).median)
}
