package expiry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/audit"
	"portcullis/api/credential"
	"portcullis/api/events"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
)

// certificate ends at a time, and soon within 30 days of it.
type certificate struct{ ends time.Time }

func (c certificate) Ends() time.Time { return c.ends }

func (c certificate) Soon(now time.Time) error {
	if c.ends.Sub(now) > 30*24*time.Hour {
		return nil
	}
	return errors.New("ends at " + c.ends.Format(time.RFC3339))
}

func told(t *testing.T, st *store.Store) (all []string) {
	t.Helper()
	list, err := events.Book{Store: st}.List(t.Context(), v1.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		all = append(all, fmt.Sprintf("%s %s, %d times: %s", e.Type, e.Cause, e.Count, e.Seen))
		if e.Severity != events.Warning {
			t.Errorf("event %+v, want a warning", e)
		}
	}
	slices.Sort(all)
	return all
}

// The end of the certificate is reported once when it comes near, and once when it has come.
func TestCertificateEvents(t *testing.T) {
	t.Parallel()
	c := certificate{time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	w := &Watcher{Cert: c, Store: store.New(memory.New(time.Now), ""), Log: slog.New(slog.DiscardHandler)}
	last := certificateTold{}
	for _, left := range []time.Duration{31 * 24 * time.Hour, 29 * 24 * time.Hour, 28 * 24 * time.Hour, -time.Second, -time.Hour} {
		w.certificateEvent(t.Context(), c.ends.Add(-left), &last)
	}
	want := []string{"certificate.ends ended, 1 times: ends at 2027-01-01T00:00:00Z", "certificate.ends soon, 1 times: ends at 2027-01-01T00:00:00Z"}
	if d := cmp.Diff(want, told(t, w.Store)); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

// A certificate that has ended is an error in the log, and the API is not ready.
func TestTellCertificate(t *testing.T) {
	t.Parallel()
	c := certificate{time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, tt := range []struct {
		left         time.Duration
		level, ended string
	}{
		{40 * 24 * time.Hour, "", ""},
		{24 * time.Hour, "level=WARN", ""},
		{-time.Second, "level=ERROR", "ends at 2027-01-01T00:00:00Z"},
	} {
		var log bytes.Buffer
		ended := "not called"
		w := &Watcher{Cert: c, Log: slog.New(slog.NewTextHandler(&log, nil)), Ended: func(detail string) { ended = detail }}
		w.tellCertificate(c.ends.Add(-tt.left))
		if ended != tt.ended || (log.Len() == 0) != (tt.level == "") || !strings.Contains(log.String(), tt.level) {
			t.Errorf("%v before the end: readiness %q, and the log says %q", tt.left, ended, &log)
		}
	}
}

// A token that ends is named ahead and when it has ended, each once, while the service runs. One without an end is not. What was
// read again is looked at at once.
func TestTokensEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, short := credential.New()
		_, endless := credential.New()
		_, later := credential.New()
		ends := time.Now().Add(20 * 24 * time.Hour).UTC()
		entry := func(name, digest string, ends time.Time) string {
			return fmt.Sprintf("- {name: %s, role: viewer, sha256: %s, expires: %s}\n", name, digest, ends.Format(time.RFC3339))
		}
		text := "tokens:\n- {name: endless, role: viewer, sha256: " + endless + "}\n"
		read := func(more string) *credential.Tokens {
			tokens, err := credential.Parse("tokens.yaml", []byte(text+more))
			if err != nil {
				t.Fatal(err)
			}
			return tokens
		}
		tokens := read(entry("short", short, ends))
		reloaded := make(chan struct{}, 1)
		w := &Watcher{
			Cert: certificate{time.Now().Add(10 * 365 * 24 * time.Hour)}, Tokens: func() *credential.Tokens { return tokens }, Reloaded: reloaded,
			Store: store.New(memory.New(time.Now), ""), Log: slog.New(slog.DiscardHandler), Ended: func(string) {},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Watch(ctx); close(done) }()
		want := []string{fmt.Sprintf("token.ends soon, 1 times: %q at %s", "short", ends.Format(time.RFC3339))}
		check := func(when string) {
			t.Helper()
			synctest.Wait()
			if d := cmp.Diff(want, told(t, w.Store)); d != "" {
				t.Errorf("%s (-want +got):\n%s", when, d)
			}
		}
		check("at first")
		<-time.After(20*24*time.Hour + time.Second)
		want = append([]string{fmt.Sprintf("token.ends ended, 1 times: %q at %s", "short", ends.Format(time.RFC3339))}, want...)
		check("at its end")
		tokens = read(entry("later", later, ends.Add(24*time.Hour)))
		reloaded <- struct{}{}
		want[1] = fmt.Sprintf("token.ends soon, 2 times: %q at %s", "later", ends.Add(24*time.Hour).Format(time.RFC3339))
		check("with other tokens")
		cancel()
		<-done
	})
}

// A refused token is in log and audit log by its name.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := &Refusals{Store: store.New(memory.New(time.Now), ""), Log: slog.New(slog.NewTextHandler(&log, nil))}
	r.RefusedToken(t.Context(), "short", "192.0.2.9", time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	page, err := audit.Book{Store: r.Store}.List(t.Context(), v1.AuditQuery{Action: "token.refuse"})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("audit log %+v, %v", page, err)
	}
	e := page.Items[0]
	if e.Actor != "short" || e.Object != "token/short" || e.Code != "token_ended" || e.Detail != "shown from 192.0.2.9; it ended at 2026-11-01T00:00:00Z" {
		t.Errorf("audit entry %+v", e)
	}
	if !strings.Contains(log.String(), "a token that has ended was refused") {
		t.Errorf("the log says %q", &log)
	}
}
