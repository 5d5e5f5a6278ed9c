package verify_test

import (
	"testing"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/topospectest"
	"portcullis/fabricsm/topospec/verify"
)

// BenchmarkLink is the cost of one fact of a settled fabric of 16384 hosts.
func BenchmarkLink(b *testing.B) {
	r := topospectest.Revision(b, topospectest.Large())
	spec := topospectest.Spec(b, r)
	f, sm := topospectest.Fabric(b, r)
	j := verify.New(spec, topospec.Enforce, nil)
	verify.Sweep(j, f, sm)
	changes := j.Changes()
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if j.Link(changes[i%len(changes)].Seen).Verdict != verify.Verified {
			b.Fatal("not verified")
		}
	}
}

// BenchmarkSweep judges a whole fabric of 16384 hosts from nothing.
func BenchmarkSweep(b *testing.B) {
	r := topospectest.Revision(b, topospectest.Large())
	spec := topospectest.Spec(b, r)
	f, sm := topospectest.Fabric(b, r)
	for b.Loop() {
		j := verify.New(spec, topospec.Enforce, nil)
		judged := verify.Sweep(j, f, sm)
		if j.Score() != 1000 {
			b.Fatalf("score %v", j.Score())
		}
		b.ReportMetric(float64(judged), "ends")
	}
}
