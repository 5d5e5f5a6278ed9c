package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// All hosts of a small fabric are proven to be isolated, and the table has the figures.
func TestProof(t *testing.T) {
	t.Parallel()
	f, err := newFabric(36)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	o := &options{runs: 2, sizes: []int{36}, program: portcullisd(t), out: filepath.Join(t.TempDir(), "proof.md")}
	r := &proofResult{fabric: f}
	if err := r.measure(t.Context(), o, &said); err != nil {
		t.Fatalf("%v, after\n%s", err, &said)
	}
	for i := range r.runs {
		b := &r.runs[i].report.Bounds
		if b.Requests == 0 || b.Ends != 36 || b.Switches != f.switches || b.Missing+b.Undeclared+b.Unread > 0 {
			t.Errorf("bounds %+v, want all %d switches and 36 ends read", b, f.switches)
		}
		if p := r.runs[i].report.Pairs; p.Isolated != r.tenants*(r.tenants-1)/2 || p.Leaks+p.Unknown > 0 {
			t.Errorf("pairs %+v, want those of %d tenants", p, r.tenants)
		}
	}
	if err := writeProof(o, []string{"a machine"}, []*proofResult{r}); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "\n| 36 | ") {
		t.Errorf("no row of 36 hosts in\n%s", out)
	}
}
