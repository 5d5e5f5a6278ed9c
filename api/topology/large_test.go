package topology_test

import (
	"testing"

	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topospec/topospectest"
)

// BenchmarkLarge drafts, simulates and reads a revision of 16,384 adapters: what a
// person waits for.
func BenchmarkLarge(b *testing.B) {
	s := &site{now: began, rev: topospectest.Revision(b, topospectest.Large())}
	s.fabric, s.sm = topospectest.Fabric(b, s.rev)
	s.store = shared.Open(b)
	s.keep = s.service(s.store, topology.Rules{})
	file := v1.NewTopospec{Name: "rail-a.yaml", Content: text(s.rev), Reason: "planned"}
	d, err := s.keep.Draft(b.Context(), "ada", file)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("draft", func(b *testing.B) {
		for b.Loop() {
			r, err := s.keep.Draft(b.Context(), "ada", file)
			if err == nil {
				_, err = s.keep.Reject(b.Context(), "ada", r.Revision, "", v1.TopospecReject{Reason: "measured"})
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("simulate", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.keep.Simulate(b.Context(), "bob", d.Revision, v1.TopospecSimulate{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.service(s.store, topology.Rules{}).Content(b.Context(), d.Revision, "json"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
