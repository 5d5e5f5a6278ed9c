package query

import "portcullis/fabricsm/sm"

// settleKinds are the kinds of work that end with a settled fabric, as the
// metric sm_sweep_seconds has them.
var settleKinds = [...]string{"bringup", "change", "audit"}

// settleBuckets are the upper bounds of the histogram in seconds, from what one
// tenant's move takes to the bring-up of a large fabric.
var settleBuckets = [...]float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 100}

// settleTimes is a histogram of how long work took until the fabric was
// settled, by kind.
type settleTimes struct {
	sum     [len(settleKinds)]float64
	count   [len(settleKinds)]uint64
	buckets [len(settleKinds)][len(settleBuckets)]uint64 // cumulative
	smps    [len(settleKinds)]uint64
}

func (t *settleTimes) add(e *sm.Settled) {
	kind := 1
	switch e.Cause {
	case "start":
		kind = 0
	case "audit":
		kind = 2
	}
	took := e.Took.Seconds()
	t.sum[kind] += took
	t.count[kind]++
	t.smps[kind] += e.Work
	for i, bound := range settleBuckets {
		if took <= bound {
			t.buckets[kind][i]++
		}
	}
}
