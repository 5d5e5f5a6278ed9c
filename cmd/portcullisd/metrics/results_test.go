package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/apitest"
	"portcullis/attest/result"
)

func TestSignedResultsAreCounted(t *testing.T) {
	t.Parallel()
	svc := apitest.NewResults(t, nil)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewResults(svc))
	c := &result.Claims{Submods: map[string]result.Appraisal{result.Platform: {Status: result.Warning}}}
	c.Conclude()
	if _, err := svc.Sign(t.Context(), c, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "portcullis_attestation_results_total" {
		t.Fatalf("%v, %v", families, err)
	}
	for _, m := range families[0].GetMetric() {
		want := 0.0
		if m.GetLabel()[0].GetValue() == "warning" {
			want = 1
		}
		if got := m.GetCounter().GetValue(); got != want {
			t.Errorf("%v: %v, want %v", m.GetLabel(), got, want)
		}
	}
}
