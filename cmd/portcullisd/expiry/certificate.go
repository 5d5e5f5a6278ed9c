package expiry

import (
	"context"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// certificateTold is the certificate of the last event, and what it said.
type certificateTold struct {
	ends  time.Time
	cause string
}

// certificateEvent records an event that the certificate ends soon or has ended, once for each.
func (w *Watcher) certificateEvent(ctx context.Context, now time.Time, told *certificateTold) {
	err := w.Cert.Soon(now)
	if err == nil {
		return
	}
	next := certificateTold{w.Cert.Ends(), "soon"}
	if now.After(next.ends) {
		next.cause = "ended"
	}
	if next == *told {
		return
	}
	_, failed := w.Store.Update(ctx, func(tx *store.Tx) error {
		return events.Record(ctx, tx, now, v1.Event{
			Type: events.CertificateEnds, By: events.ByService, Cause: next.cause,
			Expected: "a certificate that is valid for 30 days more, or for a third of its life", Seen: err.Error(),
			Do: "portcullisd certificate renew, or have its authority issue the next one; then: systemctl reload portcullisd",
		})
	})
	if failed != nil {
		w.Log.Error("that the TLS certificate ends was not recorded", "error", failed)
		return
	}
	*told = next
}

// tellCertificate logs that the TLS certificate ends soon or has ended, and reports to readiness whether it has.
func (w *Watcher) tellCertificate(now time.Time) {
	err := w.Cert.Soon(now)
	switch {
	case err == nil:
		w.Ended("")
	case now.After(w.Cert.Ends()):
		w.Ended(err.Error())
		w.Log.Error("TLS certificate", "error", err)
	default:
		w.Ended("")
		w.Log.Warn("TLS certificate", "error", err)
	}
}
