// Package expiry records that the TLS certificate and operator tokens end soon, or have ended: in the log, by events, and in
// readiness.
package expiry

import (
	"context"
	"log/slog"
	"time"

	"portcullis/api/credential"
	"portcullis/api/store"
	"portcullis/cmd/portcullisd/metrics"
)

// every is how often the end of the TLS certificate is looked at.
const every = 12 * time.Hour

// Certificate is the TLS certificate of the service.
type Certificate interface {
	Ends() time.Time
	Soon(now time.Time) error // nil while it is good for long
}

// Watcher records what ends.
type Watcher struct {
	Cert     Certificate
	Tokens   func() *credential.Tokens // that are taken now
	Reloaded <-chan struct{}           // has a token after certificate and tokens were read again
	Store    *store.Store
	Log      *slog.Logger
	Ended    func(detail string) // called with that the certificate has ended; "" while it has not
}

// Watch records what ends until ctx ends.
func (w *Watcher) Watch(ctx context.Context) {
	told, tokens := certificateTold{}, tokensTold{}
	for {
		now := time.Now()
		w.tokensEvent(ctx, now, tokens)
		w.tellCertificate(now)
		w.certificateEvent(ctx, now, &told)
		next := every
		if left := w.Cert.Ends().Sub(now); left > 0 {
			next = min(next, left+time.Second)
		}
		if end := metrics.NextTokenEnd(w.Tokens(), now); !end.IsZero() {
			next = min(next, end.Sub(now)+time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.Reloaded:
		case <-time.After(next):
		}
	}
}
