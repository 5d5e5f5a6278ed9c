package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api"
)

// certificateEvery is how often the end of the TLS certificate is looked at.
const certificateEvery = 12 * time.Hour

// newCertificateEnd makes the metric of when the TLS certificate ends.
func newCertificateEnd(cert *api.Certificate) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "portcullis_tls_certificate_end_timestamp_seconds",
		Help: "When the first certificate of the API's TLS chain ends, in Unix time.",
	}, func() float64 { return float64(cert.Ends().Unix()) })
}

// watchCertificate logs, until ctx ends, that the TLS certificate ends soon or has ended.
func (s *service) watchCertificate(ctx context.Context) error {
	every := time.NewTicker(certificateEvery)
	defer every.Stop()
	for {
		s.tellCertificate(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

func (s *service) tellCertificate(now time.Time) {
	switch err := s.parts.cert.Soon(now); {
	case err == nil:
	case now.After(s.parts.cert.Ends()):
		s.log.Error("TLS certificate", "error", err)
	default:
		s.log.Warn("TLS certificate", "error", err)
	}
}
