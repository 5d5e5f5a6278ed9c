package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/attestation"
	"portcullis/api/hostrecord"
)

// attestations counts evidence and seals by what became of them.
type attestations struct {
	of   *attestation.Service
	desc *prometheus.Desc
}

// NewAttestations creates the metric of evidence and seals that were judged.
func NewAttestations(of *attestation.Service) prometheus.Collector {
	return &attestations{of, prometheus.NewDesc("portcullis_attestations_total",
		"Evidence and seals judged since the start, by result and by what the sender had proven: its TPM answered (tpm), it knows the EK certificate (ek) or the name of a host (name).",
		[]string{"result", "proven"}, nil)}
}

// Describe implements prometheus.Collector.
func (a *attestations) Describe(ch chan<- *prometheus.Desc) { ch <- a.desc }

// Collect implements prometheus.Collector.
func (a *attestations) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(a.desc, prometheus.CounterValue, float64(a.of.Accepted()), "accepted", "tpm")
	for proven, name := range map[hostrecord.Proven]string{hostrecord.ProvenNothing: "name", hostrecord.ProvenEK: "ek", hostrecord.ProvenTPM: "tpm"} {
		ch <- prometheus.MustNewConstMetric(a.desc, prometheus.CounterValue, float64(a.of.Refused(proven)), "refused", name)
	}
}
