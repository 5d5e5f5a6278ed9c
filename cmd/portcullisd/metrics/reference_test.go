package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/admission/admissiontest"
	"portcullis/api/measuredboot"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/attest/reference"
)

// TestWaiverGauge, T106: waivers that let boots in are counted, and so are those that ended and that no operator has ended
// since.
func TestWaiverGauge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	records := store.New(memory.New(func() time.Time { return now }), "")
	waiver := func(version uint64, state reference.State, expires time.Time) reference.Set {
		return reference.Set{
			Class: "gpu-node", Version: version, State: state, Waiver: true, Owner: "ann", Reason: "INC-7",
			Made: now.AddDate(0, 0, -7), Expires: expires,
		}
	}
	admissiontest.Trust(t, records,
		waiver(1, reference.Approved, now.AddDate(0, 0, 1)), waiver(2, reference.Approved, now.AddDate(0, 0, 2)),
		waiver(3, reference.Approved, now), waiver(4, reference.Draft, now.AddDate(0, 0, 1)), waiver(5, reference.Ended, now),
		reference.Set{Class: "gpu-node", Version: 6, State: reference.Approved})
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewWaivers(measuredboot.New(measuredboot.Options{Store: records, Now: func() time.Time { return now }})))
	families, err := r.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "portcullis_reference_waivers" {
		t.Fatalf("%v, %v", families, err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
	}
	if len(got) != 2 || got["in_force"] != 2 || got["expired"] != 1 {
		t.Errorf("counted %v, want 2 in force and 1 expired", got)
	}
}
