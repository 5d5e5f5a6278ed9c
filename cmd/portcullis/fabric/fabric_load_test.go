package fabric

import (
	"slices"
	"testing"

	v1 "portcullis/api/v1"
)

// A table has 50 links and JSON all, unless as many are asked for.
func TestLoadRows(t *testing.T) {
	t.Parallel()
	all := make([]v1.FabricLoad, 60)
	for _, c := range []struct{ limit, without, want uint }{{0, maxLoadRows, 50}, {0, 60, 60}, {3, maxLoadRows, 3}, {55, maxLoadRows, 55}, {70, maxLoadRows, 60}} {
		if got := len(busiest(all, c.limit, c.without)); got != int(c.want) {
			t.Errorf("--limit %d, %d without it: %d rows, want %d", c.limit, c.without, got, c.want)
		}
	}
}

// Of two links with the same share, as shares are rounded, the one with more bytes comes first, and one that is not known last.
func TestBusier(t *testing.T) {
	t.Parallel()
	of := func(name string, share float64, xmit, rcv uint64) v1.FabricLoad {
		return v1.FabricLoad{At: name, Rate: &v1.LinkRate{Share: share, Xmit: xmit, Rcv: rcv}}
	}
	all := []v1.FabricLoad{{At: "unknown"}, of("idle", 0, 0, 0), of("some", 0, 0, 9), of("much", 0.5, 1, 0), of("more", 0.5, 2, 0)}
	slices.SortStableFunc(all, busier)
	for i, want := range []string{"more", "much", "some", "idle", "unknown"} {
		if all[i].At != want {
			t.Errorf("row %d is %s, want %s", i, all[i].At, want)
		}
	}
}
