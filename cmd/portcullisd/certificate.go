package main

import (
	"context"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/metrics"
	"portcullis/cmd/portcullisd/readiness"
)

// certificateEvery is how often the end of the TLS certificate is looked at.
const certificateEvery = 12 * time.Hour

// watchCertificate records, until ctx ends, that the TLS certificate or tokens end soon or have ended.
func (s *service) watchCertificate(ctx context.Context) error {
	told, tokens := certificateTold{}, tokensTold{}
	for {
		now := time.Now()
		s.tokensEvent(ctx, now, tokens)
		s.tellCertificate(now)
		s.certificateEvent(ctx, now, &told)
		next := certificateEvery
		if left := s.parts.Cert.Ends().Sub(now); left > 0 {
			next = min(next, left+time.Second)
		}
		if end := metrics.NextTokenEnd(s.tokens.Load(), now); !end.IsZero() {
			next = min(next, end.Sub(now)+time.Second)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.reloaded:
		case <-time.After(next):
		}
	}
}

// certificateTold is the certificate of the last event, and what it said.
type certificateTold struct {
	ends  time.Time
	cause string
}

// certificateEvent records an event that the certificate ends soon or has ended, once for each.
func (s *service) certificateEvent(ctx context.Context, now time.Time, told *certificateTold) {
	err := s.parts.Cert.Soon(now)
	if err == nil {
		return
	}
	next := certificateTold{s.parts.Cert.Ends(), "soon"}
	if now.After(next.ends) {
		next.cause = "ended"
	}
	if next == *told {
		return
	}
	_, failed := s.store.Update(ctx, func(tx *store.Tx) error {
		return events.Tell(ctx, tx, now, v1.Event{
			Type: events.CertificateEnds, By: events.ByService, Cause: next.cause,
			Expected: "a certificate that is valid for 30 days more, or for a third of its life", Seen: err.Error(),
			Do: "portcullisd certificate renew, or have its authority issue the next one; then: systemctl reload portcullisd",
		})
	})
	if failed != nil {
		s.log.Error("that the TLS certificate ends was not recorded", "error", failed)
		return
	}
	*told = next
}

// tellCertificate logs that the TLS certificate ends soon or has ended, and says whether the API is ready.
func (s *service) tellCertificate(now time.Time) {
	ended := ""
	if err := s.parts.Cert.Soon(now); err != nil && now.After(s.parts.Cert.Ends()) {
		ended = err.Error()
	}
	s.status.Set(readiness.API, ended)
	switch err := s.parts.Cert.Soon(now); {
	case err == nil:
	case now.After(s.parts.Cert.Ends()):
		s.log.Error("TLS certificate", "error", err)
	default:
		s.log.Warn("TLS certificate", "error", err)
	}
}
