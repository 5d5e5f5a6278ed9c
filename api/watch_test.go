package api

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "portcullis/api/v1"
)

// streamWriter is a response writer whose stream ends at its write deadline,
// written to or not, as that of HTTP/2 does.
type streamWriter struct {
	*httptest.ResponseRecorder

	mu          sync.Mutex
	read, write time.Time // deadlines
}

func (w *streamWriter) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = t
	return nil
}

func (w *streamWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write = t
	return nil
}

func (w *streamWriter) alive() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read.IsZero() && w.write.After(time.Now())
}

func TestQuietStreamLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &streamWriter{ResponseRecorder: httptest.NewRecorder(), read: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		hosts := make(chan *v1.Host, 1)
		hosts <- &v1.Host{ID: "h1"}
		done := make(chan struct{})
		go func() { defer close(done); (&Server{}).stream(ctx, w, hosts) }()
		for range 100 {
			synctest.Wait()
			if !w.alive() {
				t.Fatal("the stream is past a deadline")
			}
			time.Sleep(time.Second)
		}
		cancel()
		<-done
		body := w.Body.String()
		if !strings.HasPrefix(body, "event: host\ndata: {\"id\":\"h1\"") || strings.Count(body, ": still here") != 6 {
			t.Errorf("stream of 100 quiet seconds: %q; want the host, and 6 signs of life", body)
		}
	})
}

func TestStreamEndsWithItsSource(t *testing.T) {
	w := &streamWriter{ResponseRecorder: httptest.NewRecorder()}
	hosts := make(chan *v1.Host)
	close(hosts)
	(&Server{}).stream(t.Context(), w, hosts)
	if w.Body.Len() != 0 {
		t.Errorf("stream of nothing: %q", w.Body)
	}
}
