package proof_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

// comparePorts compares each port of an adapter with the judge, who followed every packet from port to port.
func (g *gardener) comparePorts(t *testing.T, seed uint64, planted []string, r *proof.Result, best, worst *judge) {
	t.Helper()
	for dev := range g.b.Devices {
		d := &g.b.Devices[dev]
		for num := 1; num < len(d.Ports) && d.Type == ib.NodeCA; num++ {
			here := at(dev, num)
			if d.Ports[num].Owner.Kind != proof.Tenant {
				continue
			}
			got := r.Port(here)
			far, placed := worst.peer(here)
			placed = placed && (worst.isSwitch(far.Device) || g.b.Devices[far.Device].Type != ib.NodeSwitch) && g.b.Devices[far.Device].Ports[far.Port].Owner.Kind != proof.Spare
			for assume, status := range got.Verdict {
				bit := mask(1) << assume
				want := proof.Isolated
				switch {
				case (best.from[here]|best.to[here])&bit != 0:
					want = proof.Leaks
				case (worst.from[here]|worst.to[here])&bit != 0, !placed:
					want = proof.Unproven
				}
				cautious := g.unread && want == proof.Isolated && status == proof.Unproven
				if status != want && !cautious {
					t.Errorf("seed %d %v: port %v under %v: prover %v, judge %v", seed, planted, here, proof.Assumption(assume), status, want)
				}
			}
			seen := best
			if got.Verdict[proof.Both] == proof.Unproven {
				seen = worst
			}
			if sends, receives := seen.from[here]&both != 0, seen.to[here]&both != 0; !g.unread && (got.Sends != sends || got.Receives != receives) {
				t.Errorf("seed %d %v: port %v sends %v and receives %v, judge %v and %v", seed, planted, here, got.Sends, got.Receives, sends, receives)
			}
			if v := r.Pair(d.Ports[num].Owner, got.Other); (got.Sends || got.Receives) && v[proof.Both] == proof.Isolated {
				t.Errorf("seed %d %v: port %v is accused of %v, from which its owner is isolated", seed, planted, here, got.Other)
			}
		}
	}
}

// A port that is at no declared switch, or at a place that is declared spare, is unproven, and so is one that is none.
func TestPortElsewhere(t *testing.T) {
	t.Parallel()
	g := newGardener(t, 1)
	host := g.b.hosts[2]
	front := g.b.front(host)
	unproven := proof.Verdict{}
	for name, place := range map[string]proof.Place{"no such device": at(len(g.b.Devices), 1), "no such port": at(host, 9), "negative": at(-1, 1)} {
		if got := prove(t, g.b.Fabric).Port(place); got != (proof.PortVerdict{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := prove(t, g.b.Fabric).Port(at(host, 1)); got.Verdict != held {
		t.Errorf("of a clean fabric: %+v", got)
	}
	front.Owner = spare
	if got := prove(t, g.b.Fabric).Port(at(host, 1)); got.Verdict != unproven {
		t.Errorf("at a spare port: %+v", got)
	}
	front.Owner = proof.Owner{}
	g.b.Devices[g.b.Devices[host].Ports[1].Cable.Device].Owner = proof.Owner{}
	if got := prove(t, g.b.Fabric).Port(at(host, 1)); got.Verdict != unproven {
		t.Errorf("at an undeclared switch: %+v", got)
	}
}

// BenchmarkPorts asks for the verdict of each port of a large fabric, after the proof.
func BenchmarkPorts(b *testing.B) {
	bed := large(b)
	for _, dev := range bed.hosts {
		bed.front(dev).Check.Value = proof.Checks{}
	}
	r, err := proof.Prove(bed.Fabric)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		leaks := 0
		for _, dev := range bed.hosts[2:] {
			if r.Port(at(dev, 1)).Verdict == (proof.Verdict{proof.Leaks, proof.Leaks, proof.Isolated}) { // raw packets pass
				leaks++
			}
		}
		if leaks != len(bed.hosts)-2 {
			b.Fatalf("%d ports leak, want %d", leaks, len(bed.hosts)-2)
		}
	}
}
