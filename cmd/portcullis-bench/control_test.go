package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// All that control measures happens on a small fabric, and the table has the figures.
func TestControl(t *testing.T) {
	t.Parallel()
	f, err := newFabric(18)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	o := &options{runs: 1, sizes: []int{18}, duration: 2 * time.Second, program: portcullisd(t), out: filepath.Join(t.TempDir(), "control.md")}
	r := &controlResult{fabric: f}
	if err := r.measure(t.Context(), o, &said); err != nil {
		t.Fatalf("%v, after\n%s", err, &said)
	}
	t.Logf("\n%s", &said)
	hosts := 18 - seats
	for what, n := range map[string][2]int{
		"assigned": {r.assign.n, hosts}, "attested": {r.attest.n, hosts}, "admitted": {r.admit.n, hosts},
		"isolated": {r.isolate.n, r.release.n}, "assigned again": {r.reassign.n, r.release.n}, "admitted again": {r.effect.n, r.release.n},
	} {
		if n[0] != n[1] {
			t.Errorf("%s %d times, want %d", what, n[0], n[1])
		}
	}
	if r.release.n == 0 || r.read.n < readers || r.ready <= 0 || len(r.memory) == 0 || r.peak <= 0 {
		t.Errorf("%+v", r)
	}
	if err := writeControl(o, []string{"a machine"}, []*controlResult{r}); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"control --sizes 18 --duration 2s\n", "\n| 15 | 2 | admit again | ", "- a machine\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestTimings(t *testing.T) {
	t.Parallel()
	var empty timings
	if s := empty.summary(); s != (summary{}) {
		t.Errorf("nothing is %+v", s)
	}
	began := time.Now()
	x := timings{began: began, ended: began.Add(2 * time.Second)}
	for i := range 200 {
		x.took = append(x.took, time.Duration(200-i)*time.Millisecond)
	}
	x.refuse()
	if s, want := x.summary(), (summary{n: 200, refused: 1, all: 2, p50: 100, p99: 198, most: 200, perSecond: 100}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	x = timings{took: []time.Duration{time.Second}, began: began, ended: began.Add(time.Second)}
	if s := x.summary(); s.p50 != 1000 || s.p99 != 1000 {
		t.Errorf("one: %+v", s)
	}
	if got := quarters([]float64{1, 3, 2, 2, 5, 4, 7, 1}); got != "3 / 2 / 5 / 7" {
		t.Errorf("quarters %s", got)
	}
	if got := quarters([]float64{4}); got != "4" {
		t.Errorf("quarters of one sample: %s", got)
	}
}
