package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/results"
	"portcullis/attest/result"
	"portcullis/cmd/internal/version"
)

// resultsConfig says how attestation results are signed.
type resultsConfig struct {
	Root    string        `yaml:"root"`
	Issuer  string        `yaml:"issuer"`
	KeyLife time.Duration `yaml:"key_life"`
}

func (k *checker) results(r *resultsConfig) {
	if r.KeyLife != 0 {
		k.between("results.key_life", r.KeyLife, time.Hour, 10*365*24*time.Hour)
	}
	if (r.Root == "") != (r.Issuer == "") {
		k.wrong("results.issuer", "%q with root %q: root and issuer belong together: name both, or none", r.Issuer, r.Root)
	}
	if len(r.Issuer) > 256 || strings.ContainsFunc(r.Issuer, func(c rune) bool { return c <= ' ' || c > '~' }) {
		k.wrong("results.issuer", "%.64q: want at most 256 printable ASCII characters without blanks, such as https://HOST:PORT", r.Issuer)
	}
}

// loadResults reads what the section names. Without a root nothing is signed.
func loadResults(c *config) (*results.Options, error) {
	r := &c.Results
	if r.Root == "" {
		return nil, nil
	}
	root, err := readRoot(r.Root, c.path)
	if err != nil {
		return nil, hint(fmt.Errorf("results.root: %w", err),
			"bring it back from where it is kept; if it is lost, make another (portcullis keys root FILE), and give up the keys before (portcullis result rotate --drop)")
	}
	return &results.Options{Root: root, Issuer: r.Issuer, Build: version.Short(), Period: r.KeyLife}, nil
}

// newResults makes what signs attestation results; nil without a root. Keys that do not
// open hold up nothing else: hosts are admitted without a result.
func (s *service) newResults(ctx context.Context) (*results.Service, error) {
	o := s.parts.results
	if o == nil {
		return nil, nil
	}
	o.Store, o.Log, o.Now = s.store, s.log, s.clock.Now
	svc, err := results.New(*o)
	if err != nil {
		return nil, err
	}
	if err := svc.Prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		s.log.Error("no attestation result can be signed", "err", err)
	}
	return svc, nil
}

// signedResults counts attestation results for metrics.
type signedResults struct {
	of   *results.Service
	desc *prometheus.Desc
}

func newSignedResults(of *results.Service) *signedResults {
	return &signedResults{of, prometheus.NewDesc("portcullis_attestation_results_total",
		"Attestation results signed since the start, by the status in them.", []string{"status"}, nil)}
}

// Describe implements prometheus.Collector.
func (r *signedResults) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// Collect implements prometheus.Collector.
func (r *signedResults) Collect(ch chan<- prometheus.Metric) {
	for _, t := range []result.Tier{result.None, result.Affirming, result.Warning, result.Contraindicated} {
		ch <- prometheus.MustNewConstMetric(r.desc, prometheus.CounterValue, float64(r.of.Signed(t)), t.String())
	}
}
