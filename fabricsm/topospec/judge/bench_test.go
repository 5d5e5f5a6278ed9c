package judge_test

import (
	"testing"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/judge"
	"portcullis/fabricsm/topospec/topospectest"
)

// BenchmarkLink is the cost of one fact of a settled fabric of 16384 hosts.
func BenchmarkLink(b *testing.B) {
	r := topospectest.Revision(b, topospectest.Large())
	spec := topospectest.Spec(b, r)
	f, sm := topospectest.Fabric(b, r)
	j := judge.New(spec, topospec.Enforce, nil)
	judge.Sweep(j, f, sm)
	changes := j.Changes()
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if j.Link(changes[i%len(changes)].Seen).Verdict != judge.Verified {
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
		j := judge.New(spec, topospec.Enforce, nil)
		judged := judge.Sweep(j, f, sm)
		if j.Score() != 1000 {
			b.Fatalf("score %v", j.Score())
		}
		b.ReportMetric(float64(judged), "ends")
	}
}
