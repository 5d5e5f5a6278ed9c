package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const controlIntro = `# Many clients at once

What provisioning systems, agents and readers of a cloud get from one portcullisd, which also is the Subnet Manager: three-level
fat trees of 36-port switches, simulated by portcullis-sim. Service, simulator, hosts and clients share the CPUs of one machine.
Made by

    %s

which is "make bench-control", on %s:

%s
The service has the configuration that init makes, with its store embedded and synced, but needs no second person, and limits the one
token of all clients less. Each client has an address of its own, so the other limits are those of a real site. Each tenant has
one cluster. All happens on the same site, in this order:

- **assign**: all hosts are assigned to their clusters, by %d clients at once: from the request until the answer, which is after
  the commit.
- **attest**: all agents attest their hosts at the same moment, with evidence of a TPM in software, over a connection for each,
  at most %d at once: session, evidence and hand-over. An agent that is refused comes again after a second or two.
- **admit**: of the same hosts, from the hand-over until the P_Key is in the tables of the adapter and of the switch port, as the
  simulator has them.
- **read**: %d clients read at once, each with a connection of its own and without a pause: hosts, and in one of 16 cases a
  cluster, and in another one a page of a hundred hosts.
- **churn**: %d hosts a second are released, and once that is proven, assigned, attested and admitted again. **release** and
  **assign again** end with the answer, **isolate** once the switch port does not have the P_Key, **admit again** as above.
- **ready**: from the start of the process, after a stop, until all parts of it are ready.

At the end of each storm and of each churn the simulator's tables were compared with the tenants: a wrong one ends the benchmark.
Milliseconds are **median / 99 of 100 / most**. UFM, which has such an interface, is not to be had here, and OpenSM has none, so
there is no ratio.

`

func writeControl(o *options, host []string, results []*controlResult) error {
	var b bytes.Buffer
	var about strings.Builder
	for _, line := range host {
		fmt.Fprintf(&about, "- %s\n", line)
	}
	command := fmt.Sprintf("%s --duration %v", strings.Replace(o.command("control"), " --runs 1", "", 1), o.duration)
	fmt.Fprintf(&b, controlIntro, command, time.Now().UTC().Format("2006-01-02 15:04 UTC"), &about, provisioners, inFlight, readers, churnRate)
	fmt.Fprint(&b, "| hosts | tenants | what | n | a second | ms | refused |\n|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		for _, row := range []struct {
			what string
			of   *summary
		}{
			{"assign", &r.assign},
			{"attest", &r.attest},
			{"admit", &r.admit},
			{"read", &r.read},
			{"release", &r.release},
			{"isolate", &r.isolate},
			{"assign again", &r.reassign},
			{"admit again", &r.effect},
		} {
			m := row.of
			fmt.Fprintf(&b, "| %d | %d | %s | %d | %.1f | %.1f / %.1f / %.1f | %d |\n", r.agents, r.tenants, row.what, m.n, m.perSecond, m.p50, m.p99, m.most, m.refused)
		}
	}
	fmt.Fprint(&b, "\nChanges that were late had no host that was not changing. MiB, but for the last column, are the most in each quarter of the\nchurn, without the pages of the program.\n\n")
	fmt.Fprint(&b, "| hosts | late | MiB in churn | MiB at most | ready | load |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %d | %d | %s | %.0f | %.1f s | %.1f |\n", r.agents, r.late, quarters(r.memory), r.peak, r.ready, r.load)
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// quarters are the largest samples of each quarter, in their order. Samples of a heap that is collected go up and down.
func quarters(samples []float64) string {
	var out []string
	for q := range 4 {
		if part := samples[q*len(samples)/4 : (q+1)*len(samples)/4]; len(part) > 0 {
			out = append(out, fmt.Sprintf("%.0f", slices.Max(part)))
		}
	}
	return strings.Join(out, " / ")
}
