package query

import (
	"testing"
	"time"

	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/topo"
)

// TestViolationSum: the sum is another one exactly when rows, counts, times or verdicts are.
func TestViolationSum(t *testing.T) {
	t.Parallel()
	o := New(Options{})
	if _, err := o.ViolationSum(); err == nil {
		t.Error("a sum of what was never seen")
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	show := func(rows ...violation.Violation) uint64 {
		t.Helper()
		o.OnView(&sm.View{Fabric: &topo.Fabric{}, Violations: &violation.List{Rows: rows}})
		sum, err := o.ViolationSum()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := o.ViolationSum(); err != nil || again != sum {
			t.Errorf("%d, then %d, %v", sum, again, err)
		}
		return sum
	}
	row := violation.Violation{ID: 1, Count: 1, Last: noon}
	base := show(row)
	if again := show(row); again != base {
		t.Error("the same rows in another view have another sum")
	}
	seen := map[uint64]bool{base: true}
	differs := func(what string, sum uint64) {
		t.Helper()
		if seen[sum] {
			t.Errorf("%s: the sum is one of before", what)
		}
		seen[sum] = true
	}
	count, verdict, last, repeats, counted := row, row, row, row, row
	count.Count, verdict.Verdict, last.Last, repeats.Repeats, counted.Counted = 2, row.Verdict+1, noon.Add(1), 1, 1
	differs("a count", show(count))
	differs("a verdict", show(verdict))
	differs("a time", show(last))
	differs("a repetition", show(repeats))
	differs("the device's count", show(counted))
	differs("another row", show(row, violation.Violation{ID: 2, Count: 1, Last: noon}))
	differs("no row", show())
	status := func(s *sa.Status) uint64 {
		t.Helper()
		o.OnSA(s)
		sum, err := o.ViolationSum()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	asked := []trust.Violation{{ID: 1, Count: 1, Last: noon}}
	differs("a request", status(&sa.Status{Violations: asked}))
	flood := &sa.Status{}
	flood.Front.Violations = asked
	differs("a flood", status(flood))
	o.Gone()
	if _, err := o.ViolationSum(); err == nil {
		t.Error("a sum of what was lost")
	}
}
